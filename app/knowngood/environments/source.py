"""One text that states an environment: its limits, its tables, and the wording of an error in it.

Nothing a text holds is shown as it stands: characters that a terminal would obey are replaced, logins in addresses
left out.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import NoReturn

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from knowngood.domain.builds.build_names import shown
from knowngood.domain.errors import BadEnvironment
from knowngood.domain.message import Message, Quoted
from knowngood.environments.resolve import PYPI, PYTORCH, PinnedPackage, host_of, path_of
from knowngood.serialization.toml_positions import count_nested, line_of_long_key, outline_of

# The largest real lock we know has 3 MB.
LARGEST_BYTES = 4 << 20
_LONGEST_LINE = 32 << 10
MOST_PACKAGES = 10_000
_KEY_PARTS = 12  # tomllib takes time by their square
_MOST_NESTED = 100_000  # tables with a header and dotted parts of keys: tomllib holds a kilobyte of each
_MOST_WORK = 10_000_000  # a second
_SHOWN_GROUPS = 8
_LONGEST_WHEEL, _MOST_TAGS = 300, 24  # tags multiply: 300 characters can say 100,000 of them

_HEX = re.compile(r"%([0-9A-Fa-f]{2})")
_LOGIN = re.compile(r"(?<=//)[^/@\s]*@")
_TABLE = re.compile(r"[ \t]*\[\[[ \t]*packages?[ \t]*\]\]")
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_SOURCE_NAMES = {"pytorch": "torch"}


@dataclass(frozen=True)
class Source:
    """The text of one file with plain line ends. `name` is what people call it; it stands in every error; `known` are
    the markers and specifiers evaluated so far, each with its Python, and `spent` counts what that took. `groups` are
    the canonical names of the extras and groups that are installed; none are all of them.
    """

    name: str
    text: str
    groups: tuple[str, ...] = ()
    known: dict[tuple[str, ...], bool] = field(default_factory=dict, compare=False)
    spent: list[int] = field(default_factory=lambda: [0], compare=False)

    def wrong(self, line: int, problem: Message) -> BadEnvironment:
        return BadEnvironment(in_file(self.name, problem, line))

    def spend(self, line: int, work: int) -> None:
        """Count the cost of markers and specifiers before they are evaluated: `work` is the number of their characters,
        each as often as it is looked at. Raises BadEnvironment where a whole file takes more than a second of that.
        """
        self.spent[0] += work
        if self.spent[0] > _MOST_WORK:
            raise self.wrong(line, Message("file_markers"))

    def chosen(self, names: Iterable[str]) -> list[str]:
        """The extras and groups that are installed, of those that the file has. Raises BadEnvironment for a name that
        it does not have.
        """
        known = list(dict.fromkeys(map(canonical, names)))
        for name in self.groups:
            if name not in known:
                names = tuple(sorted(known)[:_SHOWN_GROUPS])
                key = "file_no_such_group" if names else "file_no_groups"
                raise self.wrong(0, Message(key, name=quote(name), names=names))
        return list(self.groups) or known

    @cached_property
    def package_lines(self) -> list[int]:
        """The lines of `[[package]]` headers, in order."""
        return [line for line, text in enumerate(self.text.split("\n"), 1) if _TABLE.match(text)]


def read_source(name: str, content: bytes) -> Source:
    """Decode a file. Raises BadEnvironment for what is no text that a tool wrote."""
    shown = show(name.replace("\\", "/").rpartition("/")[2]) or "the environment"
    source = Source(shown, "")
    if len(content) > LARGEST_BYTES:
        raise source.wrong(0, Message("file_bytes", n=len(content), most=LARGEST_BYTES))
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.wrong(0, Message("file_utf16"))
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise source.wrong(line, Message("file_no_utf8", found=f"{content[error.start]:#04x}")) from None
    if "\0" in text:
        raise source.wrong(text.count("\n", 0, text.index("\0")) + 1, Message("file_nul"))
    if not text.strip():
        raise source.wrong(0, Message("file_empty"))
    return replace(source, text=text)


def refuse_long_lines(source: Source, longest: int = _LONGEST_LINE) -> None:
    """Refuse lines that are too long, in the formats that people and tools write in lines; JSON comes in one."""
    for number, line in enumerate(source.text.split("\n"), 1):
        if len(line) > longest:
            raise source.wrong(number, Message("file_long_line", n=len(line), most=longest))


show = partial(shown, most=160)
"""A piece of the file that is fit for any terminal, log and page."""


def quote(text: str) -> Quoted:
    """The same in a message."""
    return Quoted(show(text))


def in_file(name: str, problem: Message, line: int = 0) -> Message:
    """`line` is 0 where it is the whole file's problem."""
    key = "in_file_line" if line else "in_file"
    return Message(key, name=Quoted(name), line=line, said=problem)


def too_many(name: str, items: Sized, most: int = MOST_PACKAGES) -> Message:
    return Message("file_items", name=quote(name), n=len(items), most=most)


def address(text: str) -> str:
    """A URL or path that is fit to show and keep: without login, query and fragment, which may hold secrets."""
    bare = _LOGIN.sub("", text.strip(), count=1)
    return re.split(r"[?#]", bare, maxsplit=1)[0][:2000] if "//" in bare else bare[:2000]


# --- TOML and JSON as tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a TOML or JSON file. Every value that is read from it has the right type; else BadEnvironment is
    raised.
    """

    source: Source
    values: Mapping[str, object]
    where: str = ""
    line: int = 0

    def text(self, key: str) -> str:
        """The text under a key; empty where the key is missing."""
        value = self.values.get(key, "")
        return value if isinstance(value, str) else self._refuse(key, "type_text")

    def table(self, key: str) -> "Table":
        return self._table(self.values.get(key, {}), key)

    def tables(self, key: str) -> list["Table"]:
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self._refuse(key, "type_list")
        if len(value) > MOST_PACKAGES:
            raise self.source.wrong(0, too_many(key, value))
        lines = self.source.package_lines if not self.where and key in {"package", "packages"} else []
        return [
            self._table(item, f"{key}[{at}]", lines[at] if len(lines) == len(value) else self.line)
            for at, item in enumerate(value)
        ]

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key, [])
        if not (isinstance(value, list) and len(value) <= MOST_PACKAGES and all(isinstance(one, str) for one in value)):
            raise self.wrong(Message("file_no_texts", name=Quoted(key)))
        return list(value)

    def named_tables(self) -> list[tuple[str, "Table"]]:
        if len(self.values) > MOST_PACKAGES:
            raise self.source.wrong(0, too_many(self.where, self.values))
        return [(key, self._table(value, key)) for key, value in self.values.items()]

    def wrong(self, problem: Message) -> BadEnvironment:
        return self.source.wrong(self.line, in_file(self.where, problem) if self.where else problem)

    def _table(self, value: object, key: str, line: int = 0) -> "Table":
        if not isinstance(value, dict):
            self._refuse(key, "type_table", value)
        return Table(self.source, value, f"{self.where}.{show(key)}" if self.where else show(key), line or self.line)

    def _refuse(self, key: str, expected: str, value: object = None) -> NoReturn:
        actual = self.values.get(key, value) if value is None else value
        name = Quoted(f"{self.where}.{show(key)}" if self.where else show(key))
        found, wanted = Message(_TYPES.get(type(actual), "type_date")), Message(expected)
        raise self.source.wrong(self.line, Message("file_type", name=name, found=found, wanted=wanted))


_TYPES: dict[type, str] = {
    str: "type_text",
    bool: "type_truth",
    int: "type_number",
    float: "type_number",
    list: "type_list",
    dict: "type_table",
    type(None): "type_null",
}


def read_toml(source: Source) -> Table:
    refuse_long_lines(source)
    outline = outline_of(source.text)
    if line := line_of_long_key(outline, _KEY_PARTS):
        raise source.wrong(line, Message("file_long_key", most=_KEY_PARTS))
    if count_nested(outline) > _MOST_NESTED:
        raise source.wrong(0, Message("file_nested", most=_MOST_NESTED))
    try:
        return Table(source, tomllib.loads(source.text))
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else source.text.count("\n") + 1
        reason = str(error)[: place.start()] if place else str(error)
        raise source.wrong(line, Message("file_is_not", name="TOML", said=quote(reason))) from None
    except ValueError as error:  # a number of 5,000 digits
        raise source.wrong(0, Message("file_unreadable", name="TOML", said=quote(str(error)))) from None


def read_json(source: Source) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise source.wrong(0, Message("file_twice", name=quote(twice)))
        return members

    try:
        value: object = json.loads(source.text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise source.wrong(error.lineno, Message("file_is_not", name="JSON", said=quote(error.msg))) from None
    except ValueError as error:
        raise source.wrong(0, Message("file_unreadable", name="JSON", said=quote(str(error)))) from None
    return value


# --- Pins -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wheel:
    """The parts of a wheel's file name. `python` is `3.11` where it is for that one alone, else empty."""

    name: str
    version: str
    python: str
    platform: str


def read_wheel_name(place: str) -> Wheel | None:
    """The wheel that an address or path ends in (`%2B` is `+`); None where it ends in none."""
    file = _HEX.sub(lambda match: chr(int(match[1], 16)), re.split(r"[/\\]", path_of(place))[-1])
    tag_counts = [part.count(".") + 1 for part in file.removesuffix(".whl").rsplit("-", 3)[1:]]
    if not file.endswith(".whl") or len(file) > _LONGEST_WHEEL or prod(tag_counts) > _MOST_TAGS:
        return None
    try:
        name, version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return None
    pythons = {tag.interpreter for tag in tags if tag.abi != "abi3"}
    match = re.fullmatch(r"cp(\d)(\d{1,2})", pythons.pop()) if len(pythons) == 1 else None
    platform = next(iter(sorted(tag.platform for tag in tags)), "")
    return Wheel(str(name), str(version), f"{match[1]}.{match[2]}" if match else "", platform)


def is_for_linux(wheel: Wheel) -> bool:
    return wheel.platform == "any" or (wheel.platform.startswith(("linux", "manylinux")) and "x86_64" in wheel.platform)


def find_pin(place: str, *, name: str = "", line: int = 0) -> PinnedPackage | None:
    """The pin of a package that comes from an address or path; None where nothing says which package it is."""
    wheel = read_wheel_name(place)
    name = name or (wheel.name if wheel else _name_of_source(place))
    return pin_of_place(place, name, line=line) if name else None


def pin_of_place(place: str, name: str, version: str = "", line: int = 0) -> PinnedPackage:
    """The pin of a package whose name is known and that comes from an address or path. A wheel from PyPI or from
    PyTorch's own index is as good as its version there.
    """
    wheel = read_wheel_name(place)
    version = version or (wheel.version if wheel else "")
    if wheel and host_of(place) in PYPI + PYTORCH and is_for_linux(wheel):
        return PinnedPackage(canonical(name), version, index=address(place).rpartition("/")[0], line=line)
    return PinnedPackage(canonical(name), version, address(place), line=line)


def _name_of_source(place: str) -> str:
    eggs = re.findall(r"[#&]egg=([A-Za-z0-9._-]+)", "#" + place.partition("#")[2])
    if eggs:
        return str(eggs[-1])
    if not place.startswith(("git+", "hg+", "svn+", "bzr+")):
        return ""
    name = path_of(place).rpartition("/")[2].partition("@")[0].removesuffix(".git")
    return _SOURCE_NAMES.get(name, name) if re.fullmatch(r"[A-Za-z0-9._-]+", name) else ""


def canonical(name: str) -> str:
    return str(canonicalize_name(name))


def checked_name(name: str, table: Table) -> str:
    try:
        return str(canonicalize_name(name, validate=True))
    except InvalidName:
        raise table.wrong(Message("file_no_name", name=quote(name))) from None


def checked_version(version: str, table: Table) -> str:
    """Check a version and return it as it stands; ones that are not PEP 440 stay, because other packages have them."""
    if not re.fullmatch(r"[A-Za-z0-9_.!+*-]{0,200}", version):
        raise table.wrong(Message("file_no_version", name=quote(version)))
    return version


def read_requirement(source: Source, text: str, line: int) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        reason = quote(str(error).split("\n", 1)[0])
        raise source.wrong(line, Message("file_no_requirement", name=quote(text), said=reason)) from None


def exact_version(requirement: Requirement) -> str:
    """The version of `==2.6.0` or `===2.6.0`; empty where more than one would do."""
    exact = {
        clause.version
        for clause in requirement.specifier
        if clause.operator in {"==", "==="} and not clause.version.endswith(".*")
    }
    return exact.pop() if len(exact) == 1 else ""
