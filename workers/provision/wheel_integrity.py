"""How each unpacked wheel of uv's cache looked when it was first installed, so that an edit of it is found.

uv checks a wheel's hash when it unpacks it and never again. A file edited in one environment is edited in the cache,
and would be in every environment made after it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from knowngood.workers.common.atomic_write import write_whole
from knowngood.workers.provision.site_packages import Distribution, Seal, seal


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

    def look(self, keys: Iterable[str]) -> dict[tuple[int, int], Seal]:
        """How those wheels look in uv's cache now that were installed before, each by which file its METADATA is.

        So nearly all of an environment is looked at while uv still makes it.
        """
        known = {key: one for key in keys if (one := self._load(key)) is not None}
        self._find_archives(known)
        found = {}
        for one in known.values():
            with suppress(OSError):  # removed meanwhile
                if one.archive:
                    found[one.inode] = seal(Path(one.archive), bytecode=False)
        return found

    def _find_archives(self, known: dict[str, _Known]) -> None:
        lost = {one.inode: key for key, one in known.items() if not one.archive}
        for path in self.cache.glob("archive-v*/*/*.dist-info/METADATA") if lost else ():
            found = path.stat()
            key = lost.get((found.st_dev, found.st_ino))
            if key is not None:
                known[key] = replace(known[key], archive=str(path.parents[1]))
                self._save(key, known[key])

    def seal(
        self, site: Path, wheels: Mapping[str, Distribution], looked: Mapping[tuple[int, int], Seal]
    ) -> tuple[Seal, list[Distribution]]:
        """The seal of an environment, bytecode left out, and which of its `wheels` (by key) are not as once unpacked.

        Wheels that were never seen are remembered. What a single wheel brought is sealed as it was just `looked` at in
        uv's cache, whose very files uv linked; the rest is looked at here. A top-level entry that several wheels share
        (`nvidia`) is not compared.
        """
        known = {key: self._load(key) for key in wheels}
        found = {key: self._look(one, known[key]) for key, one in wheels.items()}
        shares = Counter(top for one in found.values() for top in one.tops)
        linked = [_part(looked[one.inode], one.tops, shares) for one in found.values() if one.inode in looked]
        taken = {top: digest for part in linked for top, digest in part.digests.items()}
        rest = seal(site, without=taken, bytecode=False)
        sealed = Seal({**taken, **rest.digests}, tuple(chain(rest.folders, *(part.folders for part in linked))))
        edited = []
        for key, one in found.items():
            own = {top: sealed.digests[top] for top in one.tops if shares[top] == 1 and top in sealed.digests}
            before = known[key]
            if before is None or before.inode != one.inode:
                self._save(key, replace(one, seals=own))
            elif any(before.seals.get(top, digest) != digest for top, digest in own.items()):
                edited.append(wheels[key])
        return sealed, edited

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


def _part(looked: Seal, tops: Iterable[str], shares: Mapping[str, int]) -> Seal:
    """What a wheel alone brings to its environment; nothing where uv lays some of it elsewhere (`*.data`)."""
    if any(top.endswith(".data") for top in looked.digests):
        return Seal({}, ())
    own = {top: looked.digests[top] for top in tops if shares[top] == 1 and top in looked.digests}
    return Seal(own, tuple(folder for folder in looked.folders if folder.partition("/")[0] in own))
