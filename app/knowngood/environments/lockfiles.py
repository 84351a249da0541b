"""Lock files: uv.lock, pylock.toml (PEP 751), poetry.lock, pdm.lock and Pipfile.lock."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING

from knowngood.domain.grouping import gathered
from knowngood.domain.message import Message
from knowngood.environments.python_markers import (
    allowed_by,
    narrow,
    only_python,
    other_python,
    pythons_of,
    state,
)
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment, host_of
from knowngood.environments.source import (
    Source,
    Table,
    address,
    canonical,
    checked_name,
    checked_version,
    is_for_linux,
    pin_of_place,
    quote,
    read_json,
    read_wheel_name,
)

if TYPE_CHECKING:
    from packaging.pylock import Package

_PYPI = "https://pypi.org/simple"
_GROUPS = ("optional-dependencies", "dev-dependencies")
_LOCAL = ("path", "directory", "editable", "virtual")

_Wanted = tuple[str, str, str]
"""Name, version and source of a package; empty where any will do."""


# --- uv.lock --------------------------------------------------------------------------------------------------------


def read_uv_lock(source: Source, data: Table, python: str) -> StatedEnvironment:
    """The packages that are reached from the project's own, over edges whose markers hold, on any Python that is open.

    Extras and groups are taken whole where nobody says which are installed.
    """
    if "version" not in data.values:
        raise source.wrong(0, Message("file_uv_version"))
    pythons = pythons_of(data.text("requires-python"), stated=python, source=source)
    packages = data.tables("package")
    names = [checked_name(table.text("name"), table) for table in packages]
    reached = _reach(source, packages, names, pythons)
    pins = [(_uv_pin(table, name), on) for table, name, on in zip(packages, names, reached, strict=True) if on]
    return state("uv.lock", pins, pythons)


def _uv_pin(table: Table, name: str) -> PinnedPackage:
    origin = table.table("source")
    local = _git(origin) or next((origin.text(key) for key in _LOCAL if key in origin.values), "")
    return _pin(table, name, place=origin.text("url"), origin=local, index=origin.text("registry"))


def _git(table: Table) -> str:
    return f"git+{table.text('git')}" if "git" in table.values else ""


def _pin(table: Table, name: str, *, place: str = "", origin: str = "", index: str = "") -> PinnedPackage:
    """The pin of a package at a `place`, from an `origin` that is no index, or from an index."""
    version = checked_version(table.text("version"), table)
    if place and not origin:
        return pin_of_place(place, name, version, table.line)
    return PinnedPackage(name, version, address(origin), "" if origin else address(index), table.line)


def _reach(
    source: Source, packages: Sequence[Table], names: Sequence[str], pythons: frozenset[str]
) -> list[frozenset[str]]:
    """The Pythons on which each package is installed. What a wish may mean is reached once for each Python,
    however many have the same wish.
    """
    meant = gathered(
        (wanted, at)
        for at, (table, name) in enumerate(zip(packages, names, strict=True))
        for wanted in {*product((name,), ("", table.text("version")), ("", _plain(table.table("source"))))}
    )
    roots = {at for at, table in enumerate(packages) if {"editable", "virtual"} & set(table.table("source").values)}
    groups = source.chosen(name for at in roots for key in _GROUPS for name in packages[at].table(key).values)
    wishes = [
        [(_wanted(wish), wish.text("marker"), wish.line) for wish in _wishes(table, groups if at in roots else ())]
        for at, table in enumerate(packages)
    ]
    forks = [_on_any_of(table.texts("resolution-markers") or [""], table, pythons) for table in packages]
    reached = [frozenset[str]() for _ in packages]
    wanted_pythons: dict[_Wanted, frozenset[str]] = {}
    todo = deque((at, pythons) for at in sorted(roots) or range(len(packages)))
    while todo:
        at, on = todo.popleft()
        new = (on & forks[at]) - reached[at]
        if not new:
            continue
        reached[at] |= new
        for wanted, marker, line in wishes[at]:
            known = wanted_pythons.get(wanted, frozenset())
            if more := narrow(new, marker, packages[at].source, line) - known:
                wanted_pythons[wanted] = known | more
                todo.extend((other, more) for other in meant.get(wanted, ()))
    return reached


def _wanted(wish: Table) -> _Wanted:
    origin = _plain(wish.table("source")) if "source" in wish.values else ""
    return checked_name(wish.text("name"), wish), wish.text("version"), origin


def _plain(table: Table) -> str:
    """A text of the table, equal for equal tables and never empty."""
    return repr(sorted(table.values.items()))


def _on_any_of(markers: Sequence[str], table: Table, pythons: frozenset[str]) -> frozenset[str]:
    return frozenset[str]().union(*(narrow(pythons, marker, table.source, table.line) for marker in markers))


def _wishes(table: Table, chosen: Collection[str]) -> Iterator[Table]:
    """The dependencies, with those of the `chosen` extras and groups; none are all of them."""
    yield from table.tables("dependencies")
    for key in _GROUPS:
        groups = table.table(key)
        for name in groups.values:
            if not chosen or canonical(name) in chosen:
                yield from groups.tables(name)


# --- pylock.toml ----------------------------------------------------------------------------------------------------


def read_pylock(source: Source, data: Table, python: str) -> StatedEnvironment:
    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError  # 10 ms, for these alone

    try:
        lock = Pylock.from_dict(data.values)
    except PylockUnsupportedVersionError as error:
        raise source.wrong(0, Message("file_lock_version", said=quote(str(error)))) from None
    except PylockValidationError as error:
        raise source.wrong(0, Message("file_is_not", name="pylock.toml", said=quote(str(error)))) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise source.wrong(0, Message("file_is_not", name="pylock.toml", said=quote(str(error)))) from None
    pythons = pythons_of(str(lock.requires_python or ""), stated=python, source=source)
    tables = data.tables("packages")
    pins = []
    for package, table in zip(lock.packages, tables, strict=True):
        on = narrow(pythons, str(package.marker or ""), source, table.line)
        on = allowed_by(str(package.requires_python or ""), on, source, table.line)
        if package.name == "torch":
            on = _of_wheels(on, package, source)
        if on:
            pins.append((_pylock_pin(package, table.line), on))
    return state("pylock.toml", pins, pythons)


def _pylock_pin(package: "Package", line: int) -> PinnedPackage:
    name, version = str(package.name), str(package.version or "")
    if package.vcs is not None:
        return PinnedPackage(
            name, version, f"{package.vcs.type}+{address(package.vcs.url or package.vcs.path or '')}", line=line
        )
    if package.directory is not None:
        return PinnedPackage(name, version, address(package.directory.path), line=line)
    if package.archive is not None:
        return pin_of_place(package.archive.url or package.archive.path or "", name, version, line)
    index = package.index or next((wheel.url for wheel in package.wheels or () if wheel.url), "") or ""
    return PinnedPackage(name, version, index=address(index), line=line)


def _of_wheels(pythons: frozenset[str], torch: "Package", source: Source) -> frozenset[str]:
    """The Pythons that torch's wheels are for: pip's own locks, which hold the wheels of one, say it nowhere else."""
    files = [entry.name or entry.url or entry.path or "" for entry in torch.wheels or ()]
    wheels = {wheel.python for file in files if (wheel := read_wheel_name(file)) and is_for_linux(wheel)}
    if not wheels or "" in wheels:
        return pythons
    if not wheels & pythons and (stated := only_python(pythons)):
        raise other_python(f"Python {', '.join(sorted(wheels))} (its wheels of torch)", stated, source)
    return pythons & wheels


# --- poetry.lock ----------------------------------------------------------------------------------------------------

_MAIN = "main"


def read_poetry_lock(source: Source, data: Table, python: str) -> StatedEnvironment:
    """Packages without a source are PyPI's. Locks of Poetry 1 hold neither markers nor groups: all of their packages
    are taken.
    """
    pythons = pythons_of(data.table("metadata").text("python-versions"), stated=python, source=source)
    named = [(table, checked_name(table.text("name"), table)) for table in data.tables("package")]
    names = [*data.table("extras").values, *chain.from_iterable(table.texts("groups") for table, _ in named)]
    chosen = {_MAIN, *source.chosen(name for name in names if name != _MAIN)} if source.groups else set[str]()
    pins = (
        (_poetry_pin(table, name), on)
        for table, name in named
        if (on := _on_any_of(_poetry_markers(table, chosen), table, pythons))
    )
    return state("poetry.lock", pins, pythons)


def _poetry_markers(table: Table, chosen: Collection[str]) -> list[str]:
    """One marker for all groups of a package, or one for each: any of the `chosen` ones will do (none: any at all)."""
    groups = {*map(canonical, table.texts("groups"))}
    if groups and chosen and not groups & {*chosen}:
        return []
    if isinstance(table.values.get("markers"), dict):
        markers = table.table("markers")
        return [markers.text(group) for group in markers.values if not chosen or canonical(group) in chosen]
    return [table.text("markers")]


def _poetry_pin(table: Table, name: str) -> PinnedPackage:
    origin = table.table("source")
    url = origin.text("url")
    match origin.text("type"):
        case "git":
            return _pin(table, name, origin=f"git+{url}")
        case "url":
            return _pin(table, name, place=url)
        case "file" | "directory":
            return _pin(table, name, origin=url)
        case _:
            return _pin(table, name, index=address(url) or _PYPI)


# --- pdm.lock -------------------------------------------------------------------------------------------------------


def read_pdm_lock(source: Source, data: Table, python: str) -> StatedEnvironment:
    """Read a pdm.lock. Of several targets those for Linux on x86_64 count. Locks without `inherit_metadata` hold no
    markers: all that they hold is taken.
    """
    targets = [table for table in data.table("metadata").tables("targets") if _is_ours(table.text("platform"))]
    wanted = "||".join(table.text("requires_python") for table in targets)
    pythons = pythons_of(wanted, stated=python, source=source)
    named = [(table, checked_name(table.text("name"), table)) for table in data.tables("package")]
    each = ((table, name, narrow(pythons, table.text("marker"), source, table.line)) for table, name in named)
    return state("pdm.lock", ((_pdm_pin(table, name), on) for table, name, on in each if on), pythons)


def _is_ours(platform: str) -> bool:
    return platform in {"", "linux"} or ("linux" in platform and "x86_64" in platform)


def _pdm_pin(table: Table, name: str) -> PinnedPackage:
    """The index is not written down; with `static_urls` the addresses of the files are."""
    index = next((url for file in table.tables("files") if (url := file.text("url"))), "")
    return _pin(table, name, place=table.text("url") or table.text("path"), origin=_git(table), index=index)


# --- Pipfile.lock ---------------------------------------------------------------------------------------------------


def read_pipfile_lock(source: Source, python: str) -> StatedEnvironment:
    content = read_json(source)
    if not isinstance(content, dict) or "_meta" not in content:
        raise source.wrong(0, Message("file_pipfile"))
    data = Table(source, content)
    meta = data.table("_meta")
    requires = meta.table("requires")
    wanted = requires.text("python_full_version") or requires.text("python_version")
    pythons = pythons_of("" if wanted == "*" else wanted, stated=python, source=source)
    indexes = {table.text("name"): address(table.text("url")) for table in meta.tables("sources")}
    pins = (
        (_pipfile_pin(table, checked_name(name, table), indexes), on)
        for group in ("default", "develop")
        for name, table in data.table(group).named_tables()
        if (on := narrow(pythons, table.text("markers"), source, 0))
    )
    return state("Pipfile.lock", pins, pythons, tuple(indexes.values()))


def _pipfile_pin(table: Table, name: str, indexes: dict[str, str]) -> PinnedPackage:
    stated = table.text("version")
    version = checked_version(stated.removeprefix("===").removeprefix("=="), table) if stated != "*" else ""
    if "git" in table.values:
        return PinnedPackage(name, version, f"git+{address(table.text('git'))}")
    if place := table.text("file") or table.text("path"):
        return pin_of_place(place, name, version)
    index = indexes.get(table.text("index"), "") or (next(iter(indexes.values())) if len(indexes) == 1 else "")
    return PinnedPackage(name, version, index=index if host_of(index) else "")
