"""The stored lock: a pylock.toml (PEP 751) as uv wrote it, what is read from it, and how it is installed. Pure.

A lock names hosts, so it lives in the database and beside the environment, never in the repository.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import digest

_BLOCK = "[[packages]]\n"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s\"']+@")
_TRITON = ("triton", "pytorch-triton")


@dataclass(frozen=True)
class Wheel:
    """One package of the lock. `hashes` are SHA-256; `size` is in bytes, None where the index does not tell it.

    `url` is where the index keeps it; `is_direct` means that the requirement itself named this address.
    """

    name: str
    version: str
    url: str
    hashes: tuple[str, ...]
    size: int | None = None
    is_direct: bool = False

    @property
    def key(self) -> str:
        """The same bytes have the same key, whichever index they came from."""
        return digest(",".join(sorted(self.hashes)))

    @property
    def pin(self) -> str:
        return f"{self.name} @ {self.url}" if self.is_direct else f"{self.name}==={self.version}"


@dataclass(frozen=True)
class Lock:
    text: str
    wheels: tuple[Wheel, ...]

    @property
    def digest(self) -> str:
        return digest(self.text)

    def find(self, *names: str) -> Wheel | None:
        return next((wheel for wheel in self.wheels if wheel.name in names), None)


class UnreadableLock(ValueError):
    """The lock holds something that cannot be installed by hash, such as a source archive."""


def read_lock(text: str) -> Lock:
    wheels = tuple(_read_wheel(package) for package in tomllib.loads(text).get("packages", ()))
    return Lock(text=text, wheels=wheels)


def _read_wheel(package: Mapping[str, object]) -> Wheel:
    name = canonicalize_name(str(package["name"]))
    wheels, archive = package.get("wheels"), package.get("archive")
    files = wheels if isinstance(wheels, list) else [archive] if isinstance(archive, dict) else []
    hashes = tuple(str(file["hashes"]["sha256"]) for file in files if "sha256" in file.get("hashes", {}))
    if not hashes or len(hashes) != len(files):
        raise UnreadableLock(f"{name} has no wheel with a SHA-256 in the lock")
    size = files[0].get("size") if len(files) == 1 else None
    return Wheel(
        name=name,
        version=str(package.get("version", "")),
        url=str(files[0].get("url") or files[0].get("path") or ""),
        hashes=hashes,
        size=size if isinstance(size, int) else None,
        is_direct=not isinstance(wheels, list),
    )


def compose_lock(main: str, bare: str, *, comment: str) -> str:
    """One lock out of two: `main`, and `bare` whose packages are wanted without their dependencies.

    Where both name a package, `bare` wins. Credentials are cut out of every address; `comment` goes on top.
    """
    head, *blocks = main.split(_BLOCK)
    added = bare.split(_BLOCK)[1:]
    named = {_name_of(block) for block in added}
    unchanged = [block for block in blocks if _name_of(block) not in named]
    body = "\n\n".join(part.strip("\n") for part in (head, *(_BLOCK + block for block in (*unchanged, *added))))
    header = "".join(f"# {line}\n" for line in comment.splitlines())
    return f"{header}{_CREDENTIALS.sub('', body)}\n"


def _name_of(block: str) -> str:
    return str(tomllib.loads(block)["name"])


def print_pins(lock: Lock) -> str:
    """The lock as hashed requirements, which is how it is installed.

    `uv pip sync pylock.toml` would do it too, but it looks up wheels by their address instead of their index: behind a
    mirror without cache headers every environment downloaded all its wheels anew (3 GB, 33 to 60 s for torch 2.6.0
    instead of 0.6 s; uv 0.13.8, measured 2026-11).
    """
    return "".join(
        f"{wheel.pin} {' '.join(f'--hash=sha256:{hash_}' for hash_ in wheel.hashes)}\n" for wheel in lock.wheels
    )


def wrong_build(lock: Lock, build: Build) -> str | None:
    """Say how what was resolved differs from `build`; None where it does not.

    A wheel's version may lack the local part that its import shows (2.6.0 on the default index says 2.6.0+cu124), but a
    different local part is a different build: a local `+cpu` wheel never stands in for a CUDA one.
    """
    torch = lock.find("torch")
    if torch is None:
        return "the resolution holds no torch"
    if not _is_same(torch.version, build.torch):
        return f"torch {torch.version} was resolved where {build.torch} was asked for"
    triton = lock.find(*_TRITON)
    if build.triton and triton is not None and not _is_same(triton.version, build.triton):
        return f"triton {triton.version} was resolved where {build.triton} was asked for"
    return None


def _is_same(actual: str, wanted: str) -> bool:
    try:
        have, want = Version(actual), Version(wanted)
    except InvalidVersion:
        return actual == wanted
    return have.public == want.public and have.local in {None, want.local}
