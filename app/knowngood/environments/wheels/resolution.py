"""The torch that an installer would take beside some packages: asked of uv's resolver and the package index of this
machine, as if it were installed. Nothing is built, installed or kept.
"""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import monotonic

from knowngood.domain.builds.platforms import LINUX, WINDOWS, platform_words
from knowngood.domain.errors import BadRequest, IndexUnusable
from knowngood.domain.message import Message, Quoted
from knowngood_workers.provision.provisioner import choose_cache
from knowngood_workers.provision.resolver import trouble_of
from knowngood_workers.provision.uv_cli import Cancelled, Fault, Installer, InstallerFailed, ProcessObserver

TRIPLES = {
    LINUX: "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
    WINDOWS: "x86_64-pc-windows-msvc",
}
"""The platforms as uv calls them."""

RESOLUTION_S = 120
"""The longest that one dry resolution may take; a second is usual (2026-11-29)."""

_OF_TORCH = re.compile(r"torch|triton|cuda-.*|nvidia-.*")  # they move with it
_TORCH = re.compile(r'^name = "torch"\nversion = "(.*)"', re.MULTILINE)
_HOLDS = re.compile(r"([\w.-]+?)(?:[=<>!~]=?\S*)? depends? on torch([=<>!~]\S*?)(?=,? |\.?$)")


def patient() -> ProcessObserver:
    """Ends a resolution that takes longer than RESOLUTION_S."""
    end = monotonic() + RESOLUTION_S
    return ProcessObserver(is_cancelled=lambda: monotonic() > end)


def torch_beside(packages: Mapping[str, str], python: str, platform: str) -> Message:
    """The torch that would come with packages, by canonical name with their versions (empty: any), and the one that
    holds it back where it is not the newest. Raises IndexUnusable, and BadRequest where no package is known.
    """
    pins = {name: version.partition("+")[0] for name, version in packages.items() if not _OF_TORCH.fullmatch(name)}
    wanted = [f"{name}=={version}" if version else name for name, version in pins.items()]
    if not wanted:
        raise BadRequest("--resolve asks which torch comes beside other packages; give a file that names some")
    with tempfile.TemporaryDirectory(prefix="knowngood-") as scratch:
        resolve = partial(_resolve, Path(scratch), python, platform)
        newest, _ = resolve("torch")
        torch, why = resolve("torch", *wanted)
        if torch not in {"", newest}:
            _, why = resolve(f"torch>{torch}", *wanted)  # it fails, and says which package is in the way
    held = _HOLDS.search(why) if torch else None
    said = (
        Message("holds_torch", name=" ".join(filter(None, (held[1], pins.get(held[1])))), specifier=held[2])
        if held
        else Quoted(why or "by its own preference")
    )
    key = "resolves_to_nothing" if not torch else "resolves_to_newest" if torch == newest else "resolves_to_older"
    return Message(key, where=f"Python {python} on {platform_words(platform)}", torch=torch, newest=newest, said=said)


def _resolve(scratch: Path, python: str, platform: str, *requirements: str) -> tuple[str, str]:
    """The version of torch among what these resolve to, or why they do not. Raises IndexUnusable."""
    installer, target = Installer(choose_cache(scratch, os.environ), scratch), ("--python-platform", TRIPLES[platform])
    options = ("--only-binary", ":all:", "--python", sys.executable, "--python-version", python, *target)
    try:
        output = installer.lock(scratch, requirements, *options, observer=patient())
    except InstallerFailed as failed:
        if failed.fault is Fault.UNSATISFIABLE:
            return "", str(failed)
        raise IndexUnusable(trouble_of(failed).sentence) from None
    except Cancelled:
        raise IndexUnusable(f"a resolution took longer than {RESOLUTION_S} s") from None
    return _TORCH.findall(output)[0], ""
