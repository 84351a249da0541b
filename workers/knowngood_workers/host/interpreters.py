"""The Python interpreters of this machine: found by looking, without running or downloading any."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import uv
from packaging.version import InvalidVersion, Version

from knowngood_workers.common.programs import ask_program

_FIND_S = 60


def find_interpreter(version: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The real path of a Python `version` (`3.11`); None where this machine has none.

    The first one on PATH with C headers, else the first one: Inductor's C++ kernels include Python.h. pyenv's versions
    count where its shims stand on PATH, also those that are not activated. uv is asked last, since it runs every
    interpreter it meets.
    """
    candidates = list(dict.fromkeys(_on_path(version, environ)))
    with_headers = (path for path in candidates if has_headers(path, version))
    return next(with_headers, None) or next(iter(candidates), None) or _ask_uv(version, environ)


def has_headers(python: Path, version: str) -> bool:
    return (python.resolve().parent.parent / "include" / f"python{version}" / "Python.h").is_file()


def _on_path(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    pyenv = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/")) / ".pyenv")
    for folder in (*environ.get("PATH", os.defpath).split(os.pathsep), str(pyenv / "shims")):
        if Path(folder) == pyenv / "shims":
            yield from _real(path / "bin" / f"python{version}" for path in _pyenv_versions(pyenv, version))
        elif folder:
            yield from _real([Path(folder) / f"python{version}"])


def _pyenv_versions(pyenv: Path, version: str) -> list[Path]:
    """Folders of `version`, the newest patch release first; a folder that is no version (`3.11-debug`) is left out."""
    dated = []
    for path in (pyenv / "versions").glob(f"{version}.*"):
        with suppress(InvalidVersion):
            dated.append((Version(path.name), path))
    return [path for _, path in sorted(dated, reverse=True)]


def _real(paths: Iterable[Path]) -> Iterator[Path]:
    """Programs behind their links. A shim or wrapper is a script, and a venv needs the interpreter itself."""
    for path in paths:
        try:
            real = path.resolve(strict=True)
            with real.open("rb") as file:
                is_script = file.read(2) == b"#!"
        except OSError:
            continue
        if not is_script and os.access(real, os.X_OK):
            yield real


def _ask_uv(version: str, environ: Mapping[str, str]) -> Path | None:
    command = [uv.find_uv_bin(), "python", "find", "--system", "--no-project", "--no-python-downloads", version]
    variables = {name: value for name, value in environ.items() if not name.startswith("UV_PYTHON_DOWNLOADS")}
    path = (ask_program(command, {**variables, "UV_NO_CONFIG": "1"}, timeout_s=_FIND_S) or "").strip()
    return Path(path).resolve() if path and Path(path).exists() else None
