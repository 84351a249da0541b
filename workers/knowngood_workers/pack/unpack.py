"""Read a pack: check every byte of it, lay its files out, and start the worker that it brings.

A copy of this file lies as `run.py` in every pack: `python3 PACK/run.py` needs nothing but that Python, no network and
nothing installed. So: standard library only, Python 3.9 and newer. Packs are written by `pack.builder`.

A pack is a folder of parts and one `manifest.json`. The parts, one after the other, hold the files' bytes; the manifest
says where each file's pieces lie, with the SHA-256 of each part and each file. Parts are read once, in order, and a
part that was laid out is remembered, so that unpacking goes on where it stopped and parts may be removed once taken in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

FORMAT = "knowngood-pack"
VERSION = 1
MANIFEST = "manifest.json"
UNFINISHED = "unfinished.json"
REWRAPPED = "borrowed.json"

_UNPACKED = "taken-in.json"
_OWN_FOLDERS = ("worker-environment", "worker-cache")
_CHUNK = 1 << 20


class PackProblem(Exception):
    """The pack cannot be used; the text says which part of it, and what to do."""


def read_manifest(pack: Path) -> dict[str, Any]:
    """The manifest of a pack. Raises PackProblem where it is no whole pack of a format that is read here."""
    try:
        text = (pack / MANIFEST).read_text(encoding="utf-8")
    except OSError:
        if (pack / UNFINISHED).exists():
            raise PackProblem(f"{pack} is not finished; give the same `knowngood pack` command again") from None
        raise PackProblem(f"{pack} is no pack: it has no {MANIFEST}") from None
    try:
        manifest = json.loads(text)
    except ValueError:
        raise PackProblem(f"{pack / MANIFEST} is damaged: copy it again from where the pack was made") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise PackProblem(f"{pack / MANIFEST} is no manifest of a Known Good pack")
    version = manifest.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise PackProblem(
            f"{pack} is of pack format {version} and this release reads {VERSION}; use a newer Known Good"
        )
    if manifest.get("sha256") != digest_of(manifest):
        raise PackProblem(f"{pack / MANIFEST} is damaged: copy it again from where the pack was made")
    if not re.fullmatch(r"[\w-]{1,64}", str(manifest.get("id"))):
        raise PackProblem(f"{pack / MANIFEST} has no id that a folder could be named by; do not use the pack")
    return manifest


def digest_of(manifest: dict[str, Any]) -> str:
    """SHA-256 over the manifest without its own `sha256`."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def unpack(pack: Path, target: Path, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Lay the pack's files out below `target`, each checked; gives the manifest. Raises PackProblem, and OSError.

    Nothing of a damaged part is left. What was taken in before is not read again.
    """
    manifest = read_manifest(pack)
    target.mkdir(parents=True, exist_ok=True)
    _refuse_links(target)
    taken = _load_unpacked(target)
    waiting = [part for part in manifest["parts"] if taken.get(part["name"]) != part["sha256"]]
    missing = [part["name"] for part in waiting if not (pack / part["name"]).is_file()]
    if missing:
        others = f" and {len(missing) - 3} more" if len(missing) > 3 else ""  # noqa: PLR2004 - as many as one reads
        are = "is" if len(missing) == 1 else "are"
        raise PackProblem(f"{', '.join(missing[:3])}{others} of the pack {are} missing: copy what is not here")
    for number, part in enumerate(waiting, start=1):
        tell(f"unpacking part {number} of {len(waiting)}")
        _unpack_part(pack, part, _pieces_in(manifest, part["name"]), target)
        taken[part["name"]] = part["sha256"]
        (target / f"{_UNPACKED}.making").write_text(json.dumps(taken), encoding="utf-8")
        (target / f"{_UNPACKED}.making").replace(target / _UNPACKED)
    return manifest


def _refuse_links(target: Path) -> None:
    """A file that is written through a link lands elsewhere. Only what uv makes in folders of its own has some."""
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(folder, name)):  # noqa: PTH118, PTH114 - of 100,000 files that may be there
                raise PackProblem(f"{Path(folder, name)} is a symbolic link, which no pack brings: remove it")
        folders[:] = [name for name in folders if folder != str(target) or name not in _OWN_FOLDERS]


def _load_unpacked(target: Path) -> dict[str, str]:
    try:
        unpacked = json.loads((target / _UNPACKED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(unpacked) if isinstance(unpacked, dict) else {}


def _pieces_in(manifest: dict[str, Any], part: str) -> list[tuple[int, int, int, dict[str, Any]]]:
    """(offset in the part, length, offset in the file, file) of what a part holds, in its order."""
    pieces = []
    for file in manifest["files"]:
        done = 0
        for name, offset, length in file["at"]:
            if name == part:
                pieces.append((offset, length, done, file))
            done += length
    return sorted(pieces, key=lambda piece: piece[0])


def _unpack_part(
    pack: Path, part: dict[str, Any], pieces: list[tuple[int, int, int, dict[str, Any]]], target: Path
) -> None:
    read = hashlib.sha256()
    placed = [(*piece, _place(target, piece[3]["path"], making=True)) for piece in pieces]
    with (pack / part["name"]).open("rb") as source:
        for offset, length, begin, _, path in placed:
            _skip(source, offset - source.tell(), read)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("r+b" if begin and path.exists() else "wb") as sink:
                sink.seek(begin)
                for chunk in _chunks(source, length):
                    read.update(chunk)
                    sink.write(chunk)
        _skip(source, -1, read)
    if read.hexdigest() != part["sha256"]:
        for _, _, begin, _, path in placed:
            if begin:
                os.truncate(path, begin)  # what earlier parts brought of it was good
            else:
                path.unlink(missing_ok=True)
        raise PackProblem(f"{part['name']} is damaged (its SHA-256 differs): copy that part again")
    for _, length, begin, file, path in placed:
        if begin + length == file["bytes"]:
            _finish(file, path, target)


def _finish(file: dict[str, Any], making: Path, target: Path) -> None:
    if _sha256_of(making) != file["sha256"]:
        making.unlink()
        (target / _UNPACKED).unlink(missing_ok=True)
        raise PackProblem(f"{file['path']} did not come out whole; unpack again")
    making.replace(_place(target, file["path"]))


def _sha256_of(path: Path) -> str:
    read = hashlib.sha256()
    with path.open("rb") as source:
        _skip(source, -1, read)
    return read.hexdigest()


def _place(target: Path, path: str, *, making: bool = False) -> Path:
    """Where a file goes; a path that leads out of `target` is nobody's honest pack."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise PackProblem(f"the pack names a file outside itself ({path}); do not use it")
    return target.joinpath(*pure.parent.parts, pure.name + (".making" if making else ""))


def _skip(source: BinaryIO, length: int, read: Any) -> None:  # noqa: ANN401 - hashlib's type has no public name
    for chunk in _chunks(source, length):
        read.update(chunk)


def _chunks(source: BinaryIO, length: int) -> Iterator[bytes]:
    """`length` bytes, or all to the end where it is negative; fewer where the source ends."""
    while length:
        chunk = source.read(_CHUNK if length < 0 else min(_CHUNK, length))
        if not chunk:
            return
        length -= len(chunk) if length > 0 else 0
        yield chunk


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


# From here on: what run.py does on a machine that has nothing.


def main(arguments: list[str]) -> int:
    """`run.py [options of knowngood run]`: unpack, make the worker's own environment, and become it."""
    pack = Path(__file__).resolve().parent
    try:
        manifest = read_manifest(pack)
        _require_python(manifest)
        target = data_folder() / "packs" / manifest["id"]
        unpack(pack, target, _say)
        _rewrap_installed(manifest["expected"], target)
        command = _worker(target, manifest)
    except (PackProblem, OSError, subprocess.SubprocessError) as problem:
        _say(f"knowngood: {problem}")
        return 4
    return os.execv(command, [str(command), "run", "--pack", str(pack), *arguments])  # noqa: S606 - no shell is meant


def data_folder() -> Path:
    """Where an installation keeps its data, as the worker's own settings have it."""
    setting = os.environ.get("KNOWNGOOD_DATA_DIR")
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return (Path(setting).expanduser() if setting else Path(home) / "knowngood").resolve()


def _require_python(manifest: dict[str, Any]) -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if here != manifest["python"]:
        wanted = manifest["python"]
        raise PackProblem(f"this pack is for Python {wanted} and this is {here}: start run.py with python{wanted}")


def _rewrap_installed(expected: list[list[str]], target: Path) -> None:
    """Make wheels of packages that this Python has installed and the pack left out, and put their hashes in its locks.

    Raises PackProblem naming all that is not installed here in the version that was counted on.
    """
    here = {
        _canonical(distribution.metadata["Name"]): distribution
        for distribution in distributions(path=sys.path)
        if distribution.metadata["Name"]
    }
    absent = [f"{name} {version}" for name, version in expected if name not in here or here[name].version != version]
    if absent:
        raise PackProblem(
            f"the pack counts on packages that this Python does not have: {', '.join(absent)}; "
            "install them, start run.py with the Python that has them, or pack them"
        )
    done: dict[str, str] = {}
    for name, version in expected:
        _say(f"making a wheel of the installed {name} {version}")
        done[f"{name} {version}"] = rewrap(here[name], name, target / "wheels")
    for lock in sorted((target / "locks").glob("*.toml")) if done else ():
        lock.write_text(_with_hashes(lock.read_text(encoding="utf-8"), done), encoding="utf-8")
    (target / REWRAPPED).write_text(json.dumps(done), encoding="utf-8")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def rewrap(installed: Distribution, name: str, wheels: Path) -> str:
    """A wheel of an installed package's files; gives its SHA-256."""
    text = installed.read_text("WHEEL") or ""
    tags = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Tag:")]
    parts = [sorted({tag.split("-")[at] for tag in tags}) for at in range(3)]
    tag = "-".join(".".join(part) for part in parts) if tags else "py3-none-any"
    wheel = wheels / f"{name.replace('-', '_')}-{installed.version}-{tag}.whl"
    wheels.mkdir(parents=True, exist_ok=True)
    rows, record = [], ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for file in installed.files or ():
            path, place = file.as_posix(), Path(str(installed.locate_file(file)))
            if re.fullmatch(r"[^/]+\.dist-info/RECORD", path):  # setuptools brings packages with RECORDs of their own
                record = path
            elif not path.startswith("..") and not path.endswith(".pyc") and place.is_file():
                archive.write(place, path)
                rows.append(f'"{path}",,')
        archive.writestr(record, "\n".join([*rows, f"{record},,", ""]))
    return _sha256_of(wheel)


def _with_hashes(lock: str, hashes: dict[str, str]) -> str:
    """The lock with these SHA-256s for these packages (`name version`)."""
    head, *packages = re.split(r"(?m)^(?=\[\[packages\]\]$)", lock)
    changed = [head]
    for package in packages:
        name, version = re.search(r'(?m)^name = "(.+)"$', package), re.search(r'(?m)^version = "(.+)"$', package)
        sha256 = hashes.get(f"{_canonical(name[1])} {version[1]}") if name and version else None
        changed.append(re.sub(r'sha256 = "[0-9a-f]{64}"', f'sha256 = "{sha256}"', package) if sha256 else package)
    return "".join(changed)


def _worker(target: Path, manifest: dict[str, Any]) -> Path:
    """The worker's command, in an environment of its own, made by the uv that the pack brings."""
    home = target / _OWN_FOLDERS[0]
    command = home / "bin" / "knowngood"
    stamp = home / manifest["sha256"]
    if not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        uv = _unpack_uv(target)
        wheels = target / "worker"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
        env.update({"UV_CACHE_DIR": str(target / _OWN_FOLDERS[1]), "UV_NO_CONFIG": "1", "UV_OFFLINE": "1"})
        _call([uv, "venv", "-q", "--no-project", "--python", sys.executable, home], env)
        where = ["--no-index", "--find-links", wheels, "--python", home / "bin" / "python"]
        _call([uv, "pip", "install", "-q", *where, f"knowngood=={manifest['made_by']}"], env)
        stamp.touch()
    return command


def _unpack_uv(target: Path) -> Path:
    wheel = next(iter(sorted((target / "worker").glob("uv-*.whl"))), None)
    if wheel is None:
        raise PackProblem("the pack brings no uv; make it again with a newer Known Good")
    program = target / "uv"
    with zipfile.ZipFile(wheel) as archive:
        name = next(entry for entry in archive.namelist() if entry.endswith("/scripts/uv"))
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    return program


def _call(command: list[Any], env: dict[str, str]) -> None:
    ran = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise PackProblem(f"the worker's environment cannot be made: {ran.stderr.strip()[-500:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
