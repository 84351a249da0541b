"""Write `repros/exports.bin`: which symbols each release of torch exports, for extensions that miss one.

Fetches the default wheel for Linux x86-64 of every release since 2.1.0 that was not yanked, one at a time: one request
for each wheel (some 700 MB), and one for the list.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from zipfile import ZipFile

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from packaging.tags import Tag
from packaging.utils import BuildTag, parse_wheel_filename
from packaging.version import Version

from knowngood.ask.explain.exports import FILE, HEAD, abi_of, demangle, hash_of, is_covered, name_under
from knowngood.domain.builds.packages import IndexFile
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.simple_index import SimpleIndex

SINCE = Version("2.1.0")
PYTHON = "cp311"  # every release since then is for it
LOADED = {f"lib{name}.so" for name in ("c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python")}
"""The libraries that `import torch` loads and extensions are linked with."""


def default_wheels(files: Iterable[IndexFile]) -> list[IndexFile]:
    """The wheel that an installer takes of each release, oldest release first."""
    wheels: dict[Version, tuple[BuildTag, IndexFile]] = {}
    for file in files:
        if not file.name.endswith(".whl") or file.yanked is not None:
            continue
        _, version, build, tags = parse_wheel_filename(file.name)
        if version >= SINCE and any(map(_is_linux, tags)) and build >= wheels.get(version, ((), file))[0]:
            wheels[version] = (build, file)
    return [wheels[version][1] for version in sorted(wheels)]


def _is_linux(tag: Tag) -> bool:
    return tag.abi == PYTHON and "linux" in tag.platform and tag.platform.endswith("_x86_64")


def read_wheel(wheel: ZipFile, folder: Path) -> tuple[str, set[str], set[str]]:
    """What torch calls itself, the covered symbols of what it loads, and those that only its other libraries have."""
    (version,) = re.findall(r"__version__ = '(.+)'", wheel.read("torch/version.py").decode())
    loaded, others = set[str](), set[str]()
    for name in wheel.namelist():
        if name.startswith("torch/lib/") and name.endswith(".so"):
            library = Path(wheel.extract(name, folder))
            (loaded if library.name in LOADED else others).update(filter(is_covered, defined_in(library)))
            library.unlink()
    return version, loaded, others - loaded


def defined_in(library: Path) -> Iterator[str]:
    with library.open("rb") as stream:
        symbols = cast("SymbolTableSection", ELFFile(stream).get_section_by_name(".dynsym"))
        for symbol in symbols.iter_symbols():
            is_seen = symbol["st_info"]["bind"] != "STB_LOCAL" and symbol["st_other"]["visibility"] in {
                "STV_DEFAULT",
                "STV_PROTECTED",
            }
            if is_seen and symbol["st_shndx"] != "SHN_UNDEF":
                yield symbol.name


def entries_of(symbols: Mapping[str, int]) -> dict[str, int]:
    """The symbols, and beside them functions by their name in C++ under each ABI of strings, where that matters: what
    the new ABI marks, and under the old one what names a string or has a twin. A return value is marked by the new
    ABI alone.
    """
    named = [(abi_of(symbol), demangle(symbol), bits) for symbol, bits in symbols.items()]
    twins = {name_under(0, name) for abi, name, _ in named if abi}
    entries = dict(symbols)
    for abi, name, bits in named:
        entry = name_under(abi, name)
        if name and (abi or "std::string" in name or entry in twins):
            entries[entry] = entries.get(entry, 0) | bits
    return entries


def main() -> None:
    index = SimpleIndex(read_index(os.environ))
    releases, symbols, unloaded = [], dict[str, int](), set[str]()
    for number, file in enumerate(wheels := default_wheels(index.files_of("torch"))):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, file.name)
            with index.open(file.url, {}) as answer, place.open("wb") as stream:
                shutil.copyfileobj(answer, stream, 1 << 20)
            with ZipFile(place) as wheel:
                name, loaded, others = read_wheel(wheel, Path(folder))
        releases.append(name)
        symbols.update({symbol: symbols.get(symbol, 0) | 1 << number for symbol in loaded})
        unloaded |= others
        print(f"{name}: {len(loaded):,} symbols", flush=True)
    symbols.update(dict.fromkeys(unloaded, 0))
    entries = entries_of(symbols)
    width = -(-len(releases) // 8)
    records = sorted(hash_of(entry) + bits.to_bytes(width, "big") for entry, bits in entries.items())
    head = f"{HEAD}{datetime.now(UTC).date().isoformat()}: {' '.join(releases)}\n"
    FILE.write_bytes(head.encode() + b"".join(records))
    sys.stdout.write(
        f"wrote {FILE}: {FILE.stat().st_size:,} bytes, {len(entries):,} entries, {len(wheels) + 1} requests\n"
    )


if __name__ == "__main__":
    main()
