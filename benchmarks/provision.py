"""The cost of a second environment of a cached torch, beside bare `uv pip sync` of the same lock.

Ours resolves nothing anew but makes the venv, installs, links the bytecode of the first, checks what was installed and
seals it. Bare is `uv venv` and `uv pip sync` of the same pins, without bytecode: once before ours and once after it, so
that neither finds the cache's folders warmed by the other.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from uv import find_uv_bin

from knowngood.catalogue.loader import read_catalogue, shipped_catalogue
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import EnvironmentRequest
from knowngood_workers.provision.provisioner import Environment, Provisioner
from knowngood_workers.provision.resolver import Resolver, environment_key, print_pins

BUILD = "torch-2.6.0+cu124"
EXTRAS = ((), ("six==1.17.0",), ("six==1.16.0",), ("six==1.15.0",), ("six==1.14.0",), ("six==1.13.0",))
_LIMIT = 200 << 30


def run() -> None:
    build = next(one for one in read_catalogue([shipped_catalogue()]).builds if one.id == BUILD)
    # On the disk of uv's cache: hard links do not cross file systems.
    with tempfile.TemporaryDirectory(dir=_same_disk()) as folder:
        provisioner = Provisioner(Path(folder) / "ours", limit_bytes=_LIMIT)
        first = _made(provisioner, build, 0)
        print(f"first environment: {first.seconds:.1f} s, its bytecode compiled", flush=True)
        bytecode = sum(1 for _ in first.root.rglob("*.pyc"))
        ratios = []
        for n in range(1, len(EXTRAS)):
            pins = _pins(provisioner, build, n)
            _bare(provisioner, pins, Path(folder) / f"cached-{n}", offline=False)
            before_s = _bare(provisioner, pins, Path(folder) / f"before-{n}")
            ours = _made(provisioner, build, n)
            bare_s = (before_s + _bare(provisioner, pins, Path(folder) / f"after-{n}")) / 2
            linked = sum(1 for _ in ours.root.rglob("*.pyc"))
            ratios.append(ours.seconds / bare_s)
            print(
                f"ours {ours.seconds:.2f} s with {linked} of {bytecode} bytecode files, bare {bare_s:.2f} s: "
                f"{ratios[-1]:.2f}x",
                flush=True,
            )
    print(f"median {statistics.median(ratios):.2f}x, spread {min(ratios):.2f} to {max(ratios):.2f}")


def _same_disk() -> Path:
    cache = subprocess.run([find_uv_bin(), "cache", "dir"], capture_output=True, text=True, check=True)
    return Path(cache.stdout.strip()).parent


def _request(build: Build, n: int) -> EnvironmentRequest:
    """The n-th environment of the same torch: first the bare one, then each with another six."""
    return EnvironmentRequest(build.id, EXTRAS[n], (), mutates=False)


def _pins(provisioner: Provisioner, build: Build, n: int) -> Path:
    """The lock's pins, resolved now so that neither side has to."""
    request = _request(build, n)
    provisioner.look_up([(build, request)], {}, seconds=60, on_asked=lambda *_: None)
    lock = Resolver(provisioner.root / "locks", provisioner.installer).load(environment_key(build, request))
    if lock is None:
        raise SystemExit(f"{BUILD} cannot be resolved here")
    pins = provisioner.root / f"pins-{n}.txt"
    pins.write_text(print_pins(lock), encoding="utf-8")
    return pins


def _made(provisioner: Provisioner, build: Build, n: int) -> Environment:
    with provisioner.provision(build, _request(build, n), lambda *_: None) as environment:
        return environment


def _bare(provisioner: Provisioner, pins: Path, folder: Path, *, offline: bool = True) -> float:
    """What is timed finds everything in the cache; `offline=False` puts it there."""
    begun = time.perf_counter()
    run = provisioner.installer.run
    run("venv", "-q", "--no-project", "--python", sys.executable, str(folder))
    options = ("--require-hashes", "--python", str(folder / "bin" / "python"))
    run("pip", "sync", "-q", *(["--offline"] if offline else []), str(pins), *options)
    return time.perf_counter() - begun
