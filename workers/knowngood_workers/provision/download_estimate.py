"""Estimates of a run's downloads and disk space, before it starts. No wheel is fetched for it."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.outcome import Trouble
from knowngood_workers.common.files import read_json, write_whole
from knowngood_workers.provision.index_config import open_url
from knowngood_workers.provision.resolver import Lock, Wheel

# Bytes on disk for each byte downloaded: torch 2.6.0 with all it needs is 2.9 GB of wheels and 5.2 GB unpacked
# (measured 2026-11); bytecode adds under 2 %.
UNPACKED = 1.85

_MB = 1_000_000
# What is taken where nobody has told a size: between torch 2.1 and 2.15 an environment is 2.6 to 4.2 GB of wheels, of
# which these packages are all but 0.1 GB. The guess is 0.8 to 1.2 of it, and 1.07 of all together (120 locks, 2026-11).
_ENVIRONMENT = 2_900 * _MB
_LARGE = {
    "torch": 780 * _MB,
    "nvidia-cudnn": 680 * _MB,
    "nvidia-cublas": 450 * _MB,
    "nvidia-nccl": 220 * _MB,
    "nvidia-cusparse": 220 * _MB,
    "nvidia-cusolver": 180 * _MB,
    "nvidia-cusparselt": 180 * _MB,
    "triton": 170 * _MB,
    "nvidia-cufft": 160 * _MB,
    "nvidia-nvshmem": 130 * _MB,
    "torch-xla": 85 * _MB,
    "nvidia-curand": 60 * _MB,
    "nvidia-cuda-nvrtc": 50 * _MB,
    "nvidia-nvjitlink": 25 * _MB,
}
_SMALL = 2 * _MB
_EXTRAS = 10 * _MB  # what an issue asks for beside torch, mostly pure Python

_CUDA = re.compile(r"-cu\d+$")
_SHA256 = re.compile(rb"[0-9a-f]{64}")
_HEAD_S = 10
_ASKED_AT_ONCE = 8


class Fit(StrEnum):
    """Whether there is room for what would be put on disk."""

    FITS = "fits"
    OVER_LIMIT = "over_limit"  # more than environments may take together
    IN_TURNS = "in_turns"  # not all at once
    NEVER = "never"  # not even one of them


@dataclass(frozen=True)
class Space:
    """Of the disk where environments are kept: what is free, what environments take (which may be removed for others),
    and what they may take together; in bytes.
    """

    free_bytes: int
    kept_bytes: int
    limit_bytes: int


@dataclass(frozen=True)
class Estimate:
    """`environments` would be made anew, `ready` are there. `download_bytes` counts the wheels whose size is known;
    `guessed_bytes` is a guess at the others (`unknown` names them) and at what `unresolved` environments hold, of which
    nobody knows the wheels yet. `largest_bytes` is the most that one environment alone would download. `troubles` maps
    environments that cannot be made at all, by name, to why.
    """

    space: Space
    environments: int = 0
    ready: int = 0
    download_bytes: int = 0
    guessed_bytes: int = 0
    largest_bytes: int = 0
    unknown: tuple[str, ...] = ()
    unresolved: int = 0
    troubles: Mapping[str, Trouble] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether asking the index would tell more."""
        return bool(self.unknown or self.unresolved)

    @property
    def disk_bytes(self) -> int:
        return int((self.download_bytes + self.guessed_bytes) * UNPACKED)

    @property
    def largest_on_disk(self) -> int:
        return int(self.largest_bytes * UNPACKED)

    @property
    def fit(self) -> Fit:
        if self.largest_on_disk > self.space.free_bytes + self.space.kept_bytes:
            return Fit.NEVER
        if self.disk_bytes > self.space.free_bytes:
            return Fit.IN_TURNS
        return Fit.OVER_LIMIT if self.space.kept_bytes + self.disk_bytes > self.space.limit_bytes else Fit.FITS


def find_cached(cache: Path, names: Collection[str]) -> frozenset[str]:
    """The SHA-256 of the wheels of these packages that lie unpacked in uv's cache, as far as uv has checked them.

    Read from uv's own pointers, 0.02 s for all of them where a dry run of uv takes 0.1 s for each environment. Should
    they look otherwise one day nothing is found: too much is announced then, never too little.
    """
    wanted = frozenset(names)
    folders = (
        folder for depth in ("*/*", "*/*/*") for folder in cache.glob(f"wheels-v*/{depth}") if folder.name in wanted
    )
    digests: set[str] = set()
    for pointer in (path for folder in folders for path in folder.glob("*") if path.suffix in {".http", ".rev"}):
        with suppress(OSError):  # uv tidies up meanwhile
            if pointer.with_name(pointer.name.removesuffix(pointer.suffix)).exists():
                digests |= {digest.decode() for digest in _SHA256.findall(pointer.read_bytes())}
    return frozenset(digests)


def guess_bytes(name: str) -> int:
    """A guess at the size of a package's wheel, where nobody has told it."""
    return _LARGE.get(_CUDA.sub("", name), _SMALL)


def measure_wheels(
    wheels: Iterable[Wheel], variables: Mapping[str, str], is_over: Callable[[], bool] = lambda: False
) -> dict[str, int | None]:
    """The bytes of each wheel by its key: from the lock, else by asking the index; None where nobody tells, or nobody
    was asked because it `is_over`.
    """
    distinct = {wheel.key: wheel for wheel in wheels}

    def measure(wheel: Wheel) -> int | None:
        return wheel.size or (None if is_over() else _ask(wheel.url, variables))

    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return dict(zip(distinct, pool.map(measure, distinct.values()), strict=True))


def load_sizes(file: Path) -> dict[str, int]:
    """The sizes of wheels that an index told only when it was asked for each, by key."""
    return dict(read_json(file) or {})


def ask_sizes(file: Path, wheels: Iterable[Wheel], variables: Mapping[str, str], is_over: Callable[[], bool]) -> None:
    """Ask for those that the file does not have, and keep them there."""
    known = load_sizes(file)
    measured = measure_wheels((wheel for wheel in wheels if wheel.key not in known), variables, is_over)
    if new := {key: size for key, size in measured.items() if size is not None}:
        write_whole(file, json.dumps({**known, **new}))


def _ask(url: str, variables: Mapping[str, str]) -> int | None:
    scheme, path = urlsplit(url).scheme, urlsplit(url).path
    if scheme == "file":
        local = Path(url2pathname(path))
        return local.stat().st_size if local.is_file() else None
    try:
        with open_url(url, variables, method="HEAD", timeout_s=_HEAD_S) as answer:
            length = answer.headers.get("Content-Length", "")
    except (OSError, HTTPException, ValueError):
        return None
    return int(length) if length.isdigit() else None


def sum_up(
    environments: Sequence[tuple[Build, Lock | None]],
    sizes: Mapping[str, int],
    cached: frozenset[str],
    *,
    ready: int,
    space: Space,
    troubles: Mapping[str, Trouble],
) -> Estimate:
    """One estimate for environments to make; a wheel that several want is downloaded once, one that is `cached` never.

    `sizes` are by the wheels' keys. A lock that is None is not known.
    """
    missing = [
        [wheel for wheel in lock.wheels if cached.isdisjoint(wheel.hashes)]
        for _, lock in environments
        if lock is not None
    ]
    distinct = {wheel.key: wheel for wheels in missing for wheel in wheels}
    unknown = [wheel for key, wheel in distinct.items() if key not in sizes]
    unresolved = [build for build, lock in environments if lock is None]
    known = {(build.torch, build.python) for build, lock in environments if lock is not None}
    whole = [sum(sizes.get(wheel.key, guess_bytes(wheel.name)) for wheel in wheels) for wheels in missing]
    return Estimate(
        space=space,
        environments=len(environments),
        ready=ready,
        download_bytes=sum(sizes.get(key, 0) for key in distinct),
        guessed_bytes=sum(guess_bytes(wheel.name) for wheel in unknown) + _guess_unresolved(unresolved, known),
        largest_bytes=max([*whole, *([_ENVIRONMENT] if unresolved else [])], default=0),
        unknown=tuple(sorted(wheel.name for wheel in unknown)),
        unresolved=len(unresolved),
        troubles=troubles,
    )


def _guess_unresolved(builds: Iterable[Build], known: Collection[tuple[str, str]]) -> int:
    """A guess at the download of environments whose wheels nobody knows. Those of one torch share all but small
    packages, and with another Python nearly all but torch itself.
    """
    seen, guessed = set(known), 0
    for build in builds:
        if (build.torch, build.python) in seen:
            guessed += _EXTRAS
        else:
            guessed += guess_bytes("torch") if build.torch in {torch for torch, _ in seen} else _ENVIRONMENT
            seen.add((build.torch, build.python))
    return guessed
