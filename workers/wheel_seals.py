"""How each unpacked wheel of uv's cache looked when it was first installed, so that an edit of it is found.

uv checks a wheel's hash when it unpacks it and never again. A file edited in one environment is edited in the cache,
and would be in every environment made after it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workers.files import write_whole
from workers.site_packages import Distribution, read_tree


@dataclass(frozen=True)
class _Known:
    inode: tuple[int, int]
    tops: tuple[str, ...]
    seals: Mapping[str, str]
    archive: str = ""


@dataclass(frozen=True)
class WheelSeals:
    """One small file per wheel in `root`: which file its METADATA is, its top-level entries, their seals, and where in
    `cache` it lies unpacked, once that was looked for.
    """

    root: Path
    cache: Path

    def look(self, keys: Iterable[str]) -> dict[str, tuple[int, str]]:
        """How the files of those wheels look now that were installed before; for `read_tree`, as what is known.

        It is asked of uv's cache, so that it can be done while uv makes an environment of the same files.
        """
        known = {key: one for key in keys if (one := self._load(key)) is not None}
        lost = {one.inode: key for key, one in known.items() if not one.archive}
        for path in self.cache.glob("archive-v*/*/*.dist-info/METADATA") if lost else ():
            found = path.stat()
            key = lost.get((found.st_dev, found.st_ino))
            if key is not None:
                known[key] = replace(known[key], archive=str(path.parents[1]))
                self._save(key, known[key])
        files: dict[str, tuple[int, str]] = {}
        for one in known.values():
            if one.archive:
                with suppress(OSError):  # removed meanwhile; what is not known is looked at where it was installed
                    files |= read_tree(Path(one.archive)).files
        return files

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
                self._save(key, replace(look, seals=own))
            elif any(before.seals.get(top, seal) != seal for top, seal in own.items()):
                edited.append(wheels[key])
        return edited

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.json"

    def _load(self, key: str) -> _Known | None:
        try:
            told = json.loads(self._path(key).read_text(encoding="utf-8"))
            device, inode = told["inode"]
            return _Known((device, inode), tuple(told["tops"]), told["seals"], told.get("archive", ""))
        except (OSError, ValueError, KeyError):
            return None

    def _save(self, key: str, known: _Known) -> None:
        write_whole(self._path(key), json.dumps(asdict(known)))

    def _look(self, one: Distribution, before: _Known | None) -> _Known:
        inode = one.inode() or (0, 0)
        if before is not None and before.inode == inode:
            return before
        info = one.folder.name  # its RECORD and INSTALLER are written for each environment
        tops = {path.partition("/")[0] for path, _ in one.files()} - {info}
        return _Known(inode, tuple(sorted(tops)), {})
