"""Which torch exports a symbol that an extension asks for.

Source: `repros/exports.bin`, which `tools/exports.py` reads out of torch's default wheels for Linux x86-64. It holds
hashes of symbols, so that a name which nobody exports can be told, and no name can be listed.
"""

import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import blake2b
from itertools import groupby

from packaging.version import InvalidVersion, Version

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.message import Message, aside, clauses, joined

FILE = SHIPPED / "exports.bin"
HEAD = "# read from the public index on "
HASH_BYTES = 8
_TORCHS = re.compile(r"_Z(?:T[VTIS])?N[rVKRO]*(?:3c10|4c10d|2at|5torch|6caffe2)|TH[CP]|torch_|aoti_torch_")
_LEFT_OUT = re.compile(
    r"__nv_|_GLOBAL__N_|kernel|aoti_torch_(?:hip|mps|mtia|xpu)_|(?:3c10|2at)(?:3hip|3mps|4mtia|3xpu)"
)
_PARAMETERS = re.compile(r"(?<!operator\()\)(?: const)?(?: &&?)?$")
_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"


def is_torchs(symbol: str) -> bool:
    """Whether a symbol is of torch's own namespaces, or begins as its C functions do."""
    return _TORCHS.match(symbol) is not None


def is_covered(symbol: str) -> bool:
    """Whether the table would hold a symbol if a torch exported it. Kernels are left out, which are half of all that is
    exported and are called by nobody else; and what other wheels than the default one are made for.
    """
    return is_torchs(symbol) and _LEFT_OUT.search(symbol) is None


def demangle(symbol: str) -> str:
    """A symbol as C++ has it; that of C as it is, and empty what is no whole symbol. The longest that is covered has
    553 characters, and 3,095 as C++ has it.
    """
    if not symbol.startswith("_Z"):
        return symbol
    from demangle import DemanglingError, Limits, demangle_strict

    try:
        return demangle_strict(
            symbol, language="itanium", limits=Limits(max_depth=100, max_output=10_000, max_input=2_000)
        )
    except DemanglingError:
        return ""


def abi_of(symbol: str) -> int:
    """The _GLIBCXX_USE_CXX11_ABI that a symbol asks for, if it has to do with strings at all."""
    return int("cxx11" in symbol)


def name_under(abi: int, declaration: str) -> str:
    """The entry of a function by what it is called in C++, where its strings are of this ABI."""
    return f"{abi} " + declaration.replace(_STRING, "std::string").replace("std::__cxx11::", "std::").replace(
        "[abi:cxx11]", ""
    )


def hash_of(entry: str) -> bytes:
    return blake2b(entry.encode(), digest_size=HASH_BYTES).digest()


@dataclass(frozen=True)
class ExportTable:
    """`releases` are those that were read, oldest first, each as its wheel calls itself (2.6.0+cu124). `records` are
    sorted: a hash, then a bit for each release, the oldest lowest. No bit at all: a library of torch's exports it that
    is not loaded with the others.
    """

    read_on: date
    releases: tuple[Version, ...]
    records: bytes

    def find(self, entry: str) -> tuple[Version, ...] | None:
        """The releases that export a symbol, or a function under an ABI; None where it is not there."""
        wanted, width = hash_of(entry), HASH_BYTES + -(-len(self.releases) // 8)
        count = len(self.records) // width
        start = width * bisect_left(
            range(count), wanted, key=lambda at: self.records[at * width : at * width + HASH_BYTES]
        )
        if not self.records.startswith(wanted, start):
            return None
        bits = int.from_bytes(self.records[start + HASH_BYTES : start + width], "big")
        return tuple(release for number, release in enumerate(self.releases) if bits >> number & 1)

    def release(self, torch: str) -> Version | None:
        """The release that a stated torch is: the number alone, or with the CUDA of the wheel that was read."""
        try:
            stated = Version(torch)
        except InvalidVersion:
            return None
        return next(
            (one for one in self.releases if stated == one or (stated.local is None and stated.public == one.public)),
            None,
        )


@cache
def shipped_exports() -> ExportTable:
    head, _, records = FILE.read_bytes().partition(b"\n")
    read_on, _, releases = head.decode().removeprefix(HEAD).partition(": ")
    return ExportTable(date.fromisoformat(read_on), tuple(map(Version, releases.split())), records)


@dataclass(frozen=True)
class Exports:
    """Which torch exports a symbol. `declaration` is the symbol as C++ has it, or as it is. `releases` is None where
    that is not known. `other_abi` are releases that have the function with strings of the other ABI. `here` is the
    torch that is stated, where it is one of those that were read.
    """

    symbol: str
    declaration: str
    releases: tuple[Version, ...] | None
    other_abi: tuple[Version, ...] = ()
    here: Version | None = None


def exports_of(symbol: str, torch: str) -> Exports:
    """Look a symbol up for the torch that a text states; empty where it states none."""
    table, declaration = shipped_exports(), demangle(symbol)
    releases = table.find(symbol) if is_covered(symbol) else ()
    if not releases and not (releases is None and _is_whole(symbol, declaration)):
        return Exports(symbol, declaration or symbol, None)
    other_abi = table.find(name_under(1 - abi_of(symbol), declaration)) or ()
    return Exports(symbol, declaration or symbol, releases or (), other_abi, table.release(torch))


def _is_whole(symbol: str, declaration: str) -> bool:
    """Whether a symbol was not cut at the end of its name: a function has parameters, and of data nobody can say."""
    is_function = _PARAMETERS.search(declaration) is not None
    return bool(declaration) and (is_function or not symbol.startswith("_ZN"))


def nearest_release(exports: Exports) -> str:
    """The release nearest to the stated one that exports the symbol where that does not; empty where a change of torch
    is not called for.
    """
    here, table = exports.here, shipped_exports().releases
    if here is None or not exports.releases or here in (*exports.releases, *exports.other_abi):
        return ""
    return min(exports.releases, key=lambda one: abs(table.index(one) - table.index(here))).public


def tell_exports(exports: Exports) -> Message:
    """Which releases export the symbol, as a clause that follows it."""
    table, releases, here = shipped_exports(), exports.releases, exports.here
    if releases is None:
        return Message("exports_not_known")
    every = {"first": table.releases[0].public, "last": table.releases[-1].public}
    lacking = [one for one in table.releases if one not in releases]
    if not releases:
        told = [Message("exported_by_none", **every)]
    elif not lacking:
        told = [Message("exported_by_all", **every)]
    else:
        told = [Message("exported_by", having=_spans(releases), lacking=_spans(lacking))]
    if exports.other_abi:
        abi = 1 - abi_of(exports.symbol)
        told.append(Message("exported_otherwise", releases=_spans(exports.other_abi), abi=abi))
    if here in releases:
        told.append(Message("exported_here", torch=here.public))
    elif here and (releases or exports.other_abi):
        key = "exported_otherwise_here" if here in exports.other_abi else "not_exported_here"
        told.append(Message(key, torch=here.public))
    return aside(clauses(told), [Message("exports_read", day=table.read_on.isoformat())])


def _spans(releases: Collection[Version]) -> Message:
    """`2.1.0 to 2.2.2 and 2.4.0`."""
    runs = [list(run) for is_in, run in groupby(shipped_exports().releases, releases.__contains__) if is_in]
    return joined(
        "both",
        [
            Message("span", first=run[0].public, last=run[-1].public)
            if run[1:]
            else Message("title", title=run[0].public)
            for run in runs
        ],
    )
