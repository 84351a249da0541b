"""pyproject.toml, and scripts that state their dependencies in a comment (PEP 723).

Both say what a project asks for itself. That is one build only where torch has an exact version, and it says nothing of
packages that its dependencies bring along (`is_whole`). Extras and dependency groups are taken whole unless some are
named, as those of locks are: nobody says which are installed.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from knowngood.domain.grouping import gathered
from knowngood.domain.message import Message
from knowngood.environments.python_markers import narrow, of_wheel, pythons_of, state
from knowngood.environments.requirements_txt import read_line
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment
from knowngood.environments.source import (
    MOST_PACKAGES,
    Source,
    Table,
    address,
    canonical,
    pin_of_place,
    quote,
    read_toml,
    show,
    too_many,
)
from knowngood.serialization.toml_positions import KeyPath, map_lines

PYPROJECT = "pyproject.toml"

_LARGEST = _MOST_CHARACTERS = 512 << 10  # as of a requirements file: packaging reads 500 KB a second
_DEEPEST = 20
_MOST_SOURCES = 30  # of one package
_OPENS, _CLOSES = "# /// script", "# ///"
_EXACT = re.compile(r"(?:={1,3}\s*)?(?P<version>[0-9][A-Za-z0-9.!+_-]*)")
_POETRY = ("tool", "poetry")
_PLACES = {"index", "source", "git", "url", "path", "file", "workspace"}

_On = tuple[PinnedPackage, frozenset[str]]


@dataclass(frozen=True)
class _Wish:
    """One dependency as it is written: a requirement of PEP 508. `group` is the extra or group it belongs to."""

    text: str
    path: KeyPath
    group: str = ""


# --- Scripts --------------------------------------------------------------------------------------------------------


def read_script(source: Source, python: str) -> StatedEnvironment:
    """Read the environment that the `# /// script` comment of a Python script asks for."""
    data = _read_small(Source(source.name, _metadata_of(source)))
    lists = {"": [_Wish(text, ("dependencies", at)) for at, text in _texts(data, "dependencies")]}
    project = _Project(data, lists, pythons_of(data.text("requires-python"), stated=python, source=source))
    return project.state("script metadata (PEP 723)")


def is_script(source: Source) -> bool:
    return re.search(rf"^{_OPENS}[ \t]*$", source.text, re.MULTILINE) is not None


def _metadata_of(source: Source) -> str:
    """The TOML of the comment, on the very lines on which it stands."""
    lines = [line.rstrip() for line in source.text.split("\n")]
    starts = [at for at, line in enumerate(lines) if line == _OPENS]
    if not starts:
        raise source.wrong(0, Message("file_script", name=_OPENS))
    first = starts[0] + 1
    end = next((at for at in range(first, len(lines)) if not re.match(r"#(?: |$)", lines[at])), len(lines))
    closes = [at for at in range(first, end) if lines[at] == _CLOSES]
    if not closes:
        raise source.wrong(first, Message("file_open_script", name=_OPENS, wanted=_CLOSES))
    if second := [at for at in starts if at > closes[-1]]:
        raise source.wrong(second[0] + 1, Message("file_second_script", name=_OPENS))
    return "\n".join([*[""] * first, *(line[2:] for line in lines[first : closes[-1]])])


# --- pyproject.toml -------------------------------------------------------------------------------------------------


def read_pyproject(source: Source, python: str) -> StatedEnvironment:
    """[project] with its extras, [dependency-groups], and what uv and Poetry write beside or in their place."""
    data = _read_small(source)
    own, poetry = data.table("project"), data.table("tool").table("poetry")
    if not (own.values or poetry.values or "dependency-groups" in data.values):
        raise source.wrong(0, Message("file_no_project"))
    if "dependencies" in _plain_texts(own, "dynamic"):
        raise source.wrong(map_lines(source.text).line_of(("project", "dynamic")), Message("file_dynamic"))
    wanted = own.text("requires-python") or _as_text(poetry.table("dependencies").values.get("python"))
    lists = _lists(data, own, poetry)
    project = _Project(data, lists, pythons_of(wanted, stated=python, source=source), canonical(own.text("name")))
    return project.state(PYPROJECT)


def _read_small(source: Source) -> Table:
    if len(source.text) > _LARGEST:
        raise source.wrong(0, Message("file_long", n=len(source.text), most=_LARGEST))
    return read_toml(source)


def _lists(data: Table, own: Table, poetry: Table) -> dict[str, list[_Wish]]:
    """The dependencies by the name of their extra or group; those of the project itself under an empty name."""
    lists: dict[str, list[_Wish]] = {"": []}
    for name, table, key, path in _standard_tables(data, own):
        wishes = lists.setdefault(name, [])
        wishes += [_Wish(text, (*path, at), name) for at, text in _texts(table, key)]
    extras = gathered(
        (key, canonical(extra))
        for extra in poetry.table("extras").values
        for key in dict.fromkeys(map(canonical, _plain_texts(poetry.table("extras"), extra)))
    )
    left, named = MOST_PACKAGES, set[str]()
    for name, table, path in _poetry_tables(poetry):
        if path[2] != "group":
            named = {
                canonical(re.split(r"[^A-Za-z0-9._-]", requirement.text.strip(), maxsplit=1)[0])
                for requirement in lists[""]
            }
        for wish in _of_poetry(table, path, name, extras, named):
            lists.setdefault(wish.group, []).append(wish)
            left -= 1
            if left < 0:
                raise table.wrong(Message("file_beyond", most=MOST_PACKAGES))
    return lists


def _standard_tables(data: Table, own: Table) -> Iterator[tuple[str, Table, str, KeyPath]]:
    """Each list with the group that it is, and its place."""
    yield "", own, "dependencies", ("project", "dependencies")
    extras, groups = own.table("optional-dependencies"), data.table("dependency-groups")
    yield from ((canonical(name), extras, name, ("project", "optional-dependencies", name)) for name in extras.values)
    yield from ((canonical(name), groups, name, ("dependency-groups", name)) for name in groups.values)
    uv = data.table("tool").table("uv")
    if "dev-dependencies" in uv.values:
        yield "dev", uv, "dev-dependencies", ("tool", "uv", "dev-dependencies")


def _texts(table: Table, key: str) -> Iterator[tuple[int, str]]:
    """Requirements with their places. One that includes another group is `{include-group = NAME}`: `@NAME` here."""
    for at, value in enumerate(_items(table, key)):
        if isinstance(value, str):
            yield at, value
        elif isinstance(value, dict) and isinstance(value.get("include-group"), str):
            yield at, f"@{value['include-group']}"
        else:
            raise table.wrong(Message("file_no_wish", name=quote(f"{key}[{at}]")))


def _plain_texts(table: Table, key: str) -> list[str]:
    return [value for value in _items(table, key) if isinstance(value, str)]


def _items(table: Table, key: str) -> Sequence[object]:
    value = table.values.get(key, [])
    if not isinstance(value, list):
        raise table.wrong(Message("file_no_list", name=quote(key)))
    if len(value) > MOST_PACKAGES:
        raise table.wrong(too_many(key, value))
    return value


@dataclass(frozen=True)
class _Project:
    """The dependencies of a file by group, for the Pythons that it is for. `name` is its own, canonical."""

    data: Table
    lists: Mapping[str, Sequence[_Wish]]
    pythons: frozenset[str]
    name: str = ""

    @property
    def source(self) -> Source:
        return self.data.source

    def state(self, kind: str) -> StatedEnvironment:
        sources, indexes = _Sources.of(self.data), tuple(_indexes(self.data))
        lines, pins, size = map_lines(self.source.text), list[_On](), 0
        is_read: dict[str, bool] = {}
        groups = ["", *self.source.chosen(filter(None, self.lists))]
        for wish in dict.fromkeys(wish for group in groups for wish in self._in(group, 0, is_read)):
            line = lines.line_of(wish.path)
            size += len(wish.text)
            if size > _MOST_CHARACTERS or len(pins) > MOST_PACKAGES:
                raise self.source.wrong(line, Message("file_beyond", most=MOST_PACKAGES))
            for pin, on in read_line(self.source, line, " ".join(wish.text.split()), self.pythons):
                pins.extend(sources.place(pin, on, wish.group))
        return replace(state(kind, pins, self.pythons, indexes), is_whole=False)

    def _in(self, group: str, depth: int, is_read: dict[str, bool]) -> Iterator[_Wish]:
        """The wishes of a group with all that it includes: other groups, and extras of the project itself
        (`name[extra]`). Each is read once: `is_read` has those so far, False for one that is being read.
        """
        if is_read.get(group):
            return
        if depth > _DEEPEST or group in is_read:
            raise self.source.wrong(0, Message("file_group_cycle", name=quote(group), most=_DEEPEST))
        is_read[group] = False
        for wish in self.lists.get(group, ()):
            others = self._included(wish)
            if others is None:
                yield wish
            for other in others or ():
                yield from self._in(canonical(other), depth + 1, is_read)
        is_read[group] = True

    def _included(self, wish: _Wish) -> list[str] | None:
        if wish.text.startswith("@"):
            return [wish.text[1:]]
        named = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?", wish.text)
        if named and self.name and canonical(named[1]) == self.name:
            return [extra.strip() for extra in (named[2] or "").split(",") if extra.strip()]
        return None


# --- Where packages come from: uv's and Poetry's tables ---------------------------------------------------------------


@dataclass(frozen=True)
class _Sources:
    """The tables that say where a package comes from, by its canonical name; `indexes` are addresses by their names."""

    tables: Mapping[str, Sequence[Table]]
    indexes: Mapping[str, str]

    @classmethod
    def of(cls, data: Table) -> "_Sources":
        uv, poetry = data.table("tool").table("uv"), data.table("tool").table("poetry")
        tables: dict[str, list[Table]] = {}
        for table in (uv.table("sources"), *(poetry_table for _, poetry_table, _ in _poetry_tables(poetry))):
            for name in table.values:
                places = (entry for entry in _as_tables(table, name) if _PLACES & set(entry.values))
                tables.setdefault(canonical(name), []).extend(places)
                if len(tables[canonical(name)]) > _MOST_SOURCES:
                    raise table.wrong(too_many(name, tables[canonical(name)], _MOST_SOURCES))
        named = [*uv.tables("index"), *poetry.tables("source")]
        return cls(tables, {index.text("name"): address(index.text("url")) for index in named})

    def place(self, pin: PinnedPackage, on: frozenset[str], group: str) -> Iterator[_On]:
        """The pin with its source, for each of the Pythons that a source is given for."""
        left = on
        for table in self.tables.get(pin.name, ()) if left and not pin.origin else ():
            groups = {canonical(table.text(key)) for key in ("extra", "group") if table.text(key)}
            if groups and group not in groups:
                continue
            here = _where(table, left, pin.line)
            placed = self._from(table, pin)
            if placed != pin:
                yield placed, of_wheel(here, table.text("url"), table.source)
                left -= here
            if not left:
                break
        yield pin, left

    def _from(self, table: Table, pin: PinnedPackage) -> PinnedPackage:
        if name := table.text("index") or table.text("source"):
            if name not in self.indexes:
                raise table.source.wrong(pin.line, Message("file_no_index", package=pin.name, name=quote(name)))
            return replace(pin, index=self.indexes[name])
        if place := table.text("git"):
            return replace(pin, origin=f"git+{address(place)}")
        if place := table.text("url"):
            return pin_of_place(place, pin.name, pin.version, pin.line)
        place = table.text("path") or table.text("file") or ("workspace" if table.values.get("workspace") else "")
        return replace(pin, origin=address(place)) if place else pin


def _where(table: Table, pythons: frozenset[str], line: int) -> frozenset[str]:
    marker, wanted = table.text("marker") or table.text("markers"), table.text("python")
    on = narrow(pythons, marker, table.source, line)
    return on & pythons_of(wanted, stated="", source=table.source) if wanted else on


def _indexes(data: Table) -> Iterator[str]:
    """The indexes that hold for every package."""
    uv = data.table("tool").table("uv")
    yield from (address(index.text("url")) for index in uv.tables("index") if index.values.get("explicit") is not True)
    if url := uv.text("index-url"):
        yield address(url)
    yield from map(address, _plain_texts(uv, "extra-index-url"))
    for table in data.table("tool").table("poetry").tables("source"):
        if table.text("priority") != "explicit":
            yield address(table.text("url"))


def _poetry_tables(poetry: Table) -> Iterator[tuple[str, Table, KeyPath]]:
    yield "", poetry.table("dependencies"), (*_POETRY, "dependencies")
    yield "dev", poetry.table("dev-dependencies"), (*_POETRY, "dev-dependencies")
    for name, group in poetry.table("group").named_tables():
        yield canonical(name), group.table("dependencies"), (*_POETRY, "group", name, "dependencies")


def _of_poetry(
    table: Table, path: KeyPath, group: str, extras: Mapping[str, Sequence[str]], named: Collection[str]
) -> Iterator[_Wish]:
    """Poetry's table as requirements. One that only says where a package of [project] comes from (it is `named`) is no
    wish, and one that is optional belongs to the extras that name it.
    """
    for name, value in table.values.items():
        key = canonical(name)
        if key == "python":
            continue
        for at, entry in enumerate(_as_tables(table, name)):
            version = entry.text("version")
            if not version and key in named:
                continue
            place = (*path, name, at) if isinstance(value, list) else (*path, name)
            for of in extras.get(key, ()) if entry.values.get("optional") is True else [group]:
                yield _Wish(_as_requirement(name, version, entry), place, of)


def _as_requirement(name: str, version: str, table: Table) -> str:
    exact = _EXACT.fullmatch(version.strip())
    pinned = f"{name}=={exact['version']}" if exact else name
    marker = table.text("markers")
    return f"{pinned} ; {marker}" if marker else pinned


def _as_tables(table: Table, name: str) -> list[Table]:
    """A text is a version; several tables are for different markers."""
    value = table.values[name]
    if isinstance(value, str):
        return [Table(table.source, {"version": value}, f"{table.where}.{show(name)}")]
    if isinstance(value, list) and len(value) > _MOST_SOURCES:
        raise table.wrong(too_many(name, value, _MOST_SOURCES))
    return table.tables(name) if isinstance(value, list) else [table.table(name)]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""
