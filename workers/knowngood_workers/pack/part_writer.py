"""The parts of a pack while they are written: files appended one after the other, cut into parts of a given size.

After each file what is good is written down (`unfinished.json`); what comes after that is cut off again, be it after a
broken download or by a later process, which so goes on where an earlier one was killed. A finished pack is extended in
new parts: those that were carried away already stay as they are.
"""

import hashlib
import json
import time
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from knowngood.domain.errors import BadPack
from knowngood_workers.common.files import write_whole
from knowngood_workers.pack import unpack
from knowngood_workers.provision.index_config import open_url

_CHUNK = 1 << 20
_TRIES = 3
_READ_S = 300  # one read; large wheels stall that long behind scanning proxies


def fetch(url: str, variables: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes at an `http`, `https` or `file` address, in chunks. Raises BadPack for another one, and OSError.

    A lock holds no credentials: they are taken from the index's own address in uv's variables.
    """
    address = urlsplit(url)
    if address.scheme not in {"http", "https", "file"}:
        raise BadPack(f"{address.path.rpartition('/')[2]} lies where it cannot be fetched from ({address.scheme})")
    if address.scheme == "file":
        with Path(url2pathname(address.path)).open("rb") as file:
            yield from iter(lambda: file.read(_CHUNK), b"")
        return
    words = " ".join(value for name, value in variables.items() if name.startswith("UV_")).replace(",", " ").split()
    indexes = [urlsplit(word) for word in words if "@" in word and "://" in word]
    logins = {index.hostname: index.netloc.rpartition("@")[0] for index in indexes if index.username}
    if address.hostname in logins:
        address = address._replace(netloc=f"{logins[address.hostname]}@{address.netloc.rpartition('@')[2]}")
    with closing(open_url(urlunsplit(address), variables, timeout_s=_READ_S)) as answer:
        yield from iter(lambda: answer.read(_CHUNK), b"")


class _OpenPart:
    """The part that is being filled; what is in the file already, up to `keep` bytes, stays."""

    def __init__(self, path: Path, keep: int = 0) -> None:
        self.name = path.name
        self.bytes = 0
        self._read = hashlib.sha256()
        path.touch()
        self._file = path.open("r+b")
        self._file.truncate(keep)
        for chunk in iter(lambda: self._file.read(_CHUNK), b""):
            self._count(chunk)

    def append(self, piece: bytes | memoryview) -> None:
        self._file.write(piece)
        self._count(piece)

    def _count(self, piece: bytes | memoryview) -> None:
        self._read.update(piece)
        self.bytes += len(piece)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> dict[str, Any]:
        """The part's line in the manifest."""
        self._file.close()
        return {"name": self.name, "bytes": self.bytes, "sha256": self._read.hexdigest()}


class PartWriter(AbstractContextManager["PartWriter"]):
    """Write a pack's parts and, in the end, its manifest. `header` is what the manifest says beside parts and files."""

    def __init__(self, folder: Path, part_bytes: int, header: Mapping[str, Any]) -> None:
        """Begin a pack with this `header`, or go on with the one in `folder`. Raises BadPack where that is another."""
        self._folder = folder
        self._part_bytes = part_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest = self._load(header) or {**header, "parts": [], "files": [], "open": None}
        self._files: dict[str, dict[str, Any]] = {file["path"]: file for file in self.manifest["files"]}
        self._before = set(self._files)
        self.parts: list[dict[str, Any]] = []
        self._open: _OpenPart | None = None
        self._restore()
        self._save()  # from now on the folder is known as a pack that is being made

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _load(self, header: Mapping[str, Any]) -> dict[str, Any] | None:
        unfinished = self._folder / unpack.UNFINISHED
        if unfinished.exists():
            manifest: dict[str, Any] = json.loads(unfinished.read_text(encoding="utf-8"))
        elif (self._folder / unpack.MANIFEST).exists():
            try:
                manifest = {**unpack.read_manifest(self._folder), "open": None}
            except unpack.PackProblem as problem:
                raise BadPack(f"the pack cannot be extended: {problem}") from None
        elif any(self._folder.iterdir()):
            raise BadPack(f"{self._folder} holds other files; choose an empty folder, or that of a pack")
        else:
            return None
        for what in ("python", "platform"):
            if manifest[what] != header[what]:
                raise BadPack(
                    f"{self._folder} is a pack for {what} {manifest[what]}, and {header[what]} was asked for; "
                    "choose another folder"
                )
        return manifest

    @property
    def added(self) -> list[int]:
        """The bytes of each file that was added now."""
        return [self._files[path]["bytes"] for path in self._files.keys() - self._before]

    def holds(self, path: str, sha256: str) -> bool:
        file = self._files.get(path)
        return file is not None and bool(file["sha256"] == sha256)

    def put(self, path: str, content: bytes) -> None:
        """Append a small file, unless it is there as it is."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.holds(path, sha256):
            self.stream(path, sha256, lambda: iter([content]))

    def stream(self, path: str, sha256: str, chunks: Callable[[], Iterator[bytes]]) -> None:
        """Append a file. What breaks off, or is not what `sha256` says, is tried again, then refused by BadPack."""
        problem = ""
        for tried in range(_TRIES):
            time.sleep(tried)
            try:
                problem = self._append(path, sha256, chunks())
            except urllib.error.URLError as broken:
                problem = str(broken.reason)
            except (HTTPException, OSError) as broken:
                problem = str(broken) or type(broken).__name__
            if not problem:
                return
            self._restore()
        raise BadPack(f"{path.rpartition('/')[2]} could not be packed ({problem}); give the same command to go on")

    def _append(self, path: str, sha256: str, chunks: Iterator[bytes]) -> str:
        """Empty where all went well."""
        read, size = hashlib.sha256(), 0
        at: list[list[Any]] = [[self._opened().name, self._opened().bytes, 0]]
        for chunk in chunks:
            read.update(chunk)
            size += len(chunk)
            rest = memoryview(chunk)
            while rest:
                part = self._opened()
                piece = rest[: self._part_bytes - part.bytes]
                if at[-1][0] != part.name:
                    at.append([part.name, part.bytes, 0])
                part.append(piece)
                at[-1][2] += len(piece)
                rest = rest[len(piece) :]
                if part.bytes >= self._part_bytes:
                    self._close_part()
        if read.hexdigest() != sha256:
            return "its SHA-256 is not the one in the lock"
        self._files[path] = {"path": path, "bytes": size, "sha256": sha256, "at": at}
        self._save()
        return ""

    def _opened(self) -> _OpenPart:
        if self._open is None:
            self._open = _OpenPart(self._folder / f"part-{len(self.parts) + 1:04d}")
        return self._open

    def _close_part(self) -> None:
        if self._open is not None:
            self.parts.append(self._open.close())
            self._open = None

    def _save(self) -> None:
        """Write down what is good: the parts that are full, the files that are whole, and how far the open part is."""
        opened = None
        if self._open is not None:
            self._open.flush()
            opened = {"name": self._open.name, "bytes": self._open.bytes}
        self.manifest |= {"parts": list(self.parts), "files": list(self._files.values()), "open": opened}
        write_whole(self._folder / unpack.UNFINISHED, json.dumps(self.manifest))

    def _restore(self) -> None:
        """Go back to what was written down last."""
        self._close_part()
        self.parts = list(self.manifest["parts"])
        opened = self.manifest["open"]
        named = {part["name"] for part in self.parts} | ({opened["name"]} if opened else set())
        for path in self._folder.glob("part-*"):
            if path.name not in named:
                path.unlink()
        if opened:
            self._open = _OpenPart(self._folder / opened["name"], opened["bytes"])

    def finish(self, final: Mapping[str, Any]) -> None:
        """Close the last part and write the manifest, which is what makes the folder a pack."""
        self._close_part()
        self._save()
        lasting = {name: value for name, value in self.manifest.items() if name not in {"open", "sha256"}}
        manifest = json.loads(json.dumps({**lasting, **final}))
        (self._folder / "run.py").write_bytes(Path(unpack.__file__).read_bytes())
        manifest["sha256"] = unpack.digest_of(manifest)
        write_whole(self._folder / unpack.MANIFEST, json.dumps(manifest, indent=1))
        (self._folder / unpack.UNFINISHED).unlink(missing_ok=True)
