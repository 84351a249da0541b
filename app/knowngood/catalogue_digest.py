"""Whether the catalogue's files are as they were: reading them takes 3 s of CPU, their digest 0.03 (90 issues)."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from knowngood.data_dir import shipped_folder

SHIPPED = shipped_folder("repros")
"""The folder of issues and builds that comes with this release."""

# What an issue's stored form depends on beside its own files.
_READERS = (
    "catalogue",
    "domain/builds",
    "domain/issue.py",
    "serialization/codec.py",
)
_LEFT_OUT = frozenset({".gz", ".pyc", ".snapshot"})


def digest_of(folders: Sequence[Path]) -> bytes:
    """The digest of everything that a stored catalogue is made from: the files, and the code that reads them."""
    hasher = blake2b(digest_size=16)
    for place in (*folders, SHIPPED / "standalone.py", *(Path(__file__).parent / name for name in _READERS)):
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and file.suffix not in _LEFT_OUT:
                hasher.update(f"{file}\0".encode())
                hasher.update(file.read_bytes())
    return hasher.digest()


def shipped_evidence() -> list[Path]:
    """The bundles of results that come with this release, beside its issues, in the order of their names."""
    return sorted((SHIPPED / "evidence").glob("*.jsonl.gz"))
