"""A package index in a folder: tiny wheels from `mini_repros/_wheels`, so that environments are provisioned offline.

As on the real default index, a wheel's name has torch's release (`torch-0.0.1`) and the import tells the local part too
(`0.0.1+mini`). The wheel of torch 0.0.3 lies: its import says `+cpu`, as where another wheel stood in for it.
"""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

_SOURCES = Path(__file__).parent / "mini_repros" / "_wheels"

_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_LONG_AGO = (2025, 1, 1, 0, 0, 0)


def make_wheels(folder: Path) -> Path:
    """Write all wheels of the toy builds into `folder`, for `UV_FIND_LINKS`; tells the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    make_torch(folder, "0.0.1", imported="0.0.1+mini", is_affected=True)
    make_torch(folder, "0.0.2", imported="0.0.2+mini", is_affected=False)
    make_torch(folder, "0.0.3", imported="0.0.3+cpu", is_affected=False)
    make_wheel(folder, "numpy", "1.99.0", _read("numpy"))
    make_wheel(folder, "setuptools", "79.0.0", _read("setuptools"))
    make_wheel(folder, "mini_extra", "1.0", _read("mini_extra"))
    make_wheel(folder, "triton", "0.1.0", _read("triton"))
    return folder


def make_torch(folder: Path, release: str, *, imported: str, is_affected: bool) -> Path:
    lines = (
        f'__version__ = "{imported}"',
        "cuda = None",
        f'git_version = "{hashlib.sha1(imported.encode(), usedforsecurity=False).hexdigest()}"',
        f"IS_AFFECTED = {is_affected}",
    )
    return make_wheel(folder, "torch", release, {**_read("torch"), "torch/version.py": "\n".join(lines) + "\n"})


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str], *requires: str) -> Path:
    """A pure wheel with `files` (path to text) and the metadata that installers ask for. Equal input, equal bytes."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    packed = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": _WHEEL}
    record = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in packed.items()]
    packed[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in packed.items():
            archive.writestr(zipfile.ZipInfo(path, _LONG_AGO), text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _read(package: str) -> dict[str, str]:
    files = sorted((_SOURCES / package).rglob("*.py"))
    return {str(file.relative_to(_SOURCES)): file.read_text(encoding="utf-8") for file in files}
