"""How each unpacked wheel of uv's cache looked when it was first installed, so that an edit of it is found.

uv checks a wheel's hash when it unpacks it and never again. A file edited in one environment is edited in the cache,
and would be in every environment made after it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workers.files import write_whole
from workers.site_packages import Distribution


@dataclass(frozen=True)
class _Known:
    inode: tuple[int, int]
    tops: tuple[str, ...]
    seals: Mapping[str, str]


@dataclass(frozen=True)
class WheelSeals:
    """One small file per wheel in `root`: which file its METADATA is, its top-level entries, and their seals."""

    root: Path

    def check(self, wheels: Mapping[str, Distribution], seals: Mapping[str, str]) -> list[Distribution]:
        """The distributions that are not as they were when their wheel was unpacked; new ones are remembered.

        `wheels` are those of one environment by key, `seals` its seals. A top-level entry that several wheels share
        (`nvidia`) is not compared.
        """
        known = {key: self._load(key) for key in wheels}
        found = {key: self._look(one, known[key]) for key, one in wheels.items()}
        shares = Counter(top for look in found.values() for top in look.tops)
        edited = []
        for key, look in found.items():
            own = {top: seals[top] for top in look.tops if shares[top] == 1 and top in seals}
            before = known[key]
            if before is None or before.inode != look.inode:
                write_whole(self._path(key), json.dumps({"inode": look.inode, "tops": look.tops, "seals": own}))
            elif any(before.seals.get(top, seal) != seal for top, seal in own.items()):
                edited.append(wheels[key])
        return edited

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.json"

    def _load(self, key: str) -> _Known | None:
        try:
            told = json.loads(self._path(key).read_text(encoding="utf-8"))
            device, inode = told["inode"]
            return _Known((device, inode), tuple(told["tops"]), told["seals"])
        except (OSError, ValueError, KeyError):
            return None

    def _look(self, one: Distribution, before: _Known | None) -> _Known:
        inode = one.inode() or (0, 0)
        if before is not None and before.inode == inode:
            return before
        info = one.folder.name  # its RECORD and INSTALLER are written for each environment
        tops = {path.partition("/")[0] for path, _ in one.files()} - {info}
        return _Known(inode, tuple(sorted(tops)), {})
