"""Pythons that a part of a lock is for. Markers are read for CPython on Linux x86_64: builds are measured on that."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import product

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from knowngood.domain.errors import OtherPython
from knowngood.domain.message import Message, Quoted
from knowngood.environments.resolve import PinnedPackage, StatedEnvironment
from knowngood.environments.source import Source, canonical, in_file, quote, read_wheel_name, show

# Far beyond the newest, so that ">=3.14" alone never looks like one Python.
_EVERY = tuple(f"3.{minor}" for minor in range(8, 21))
_CLAUSE = re.compile(r"(?P<sign>\^|~=|~|===?|!=|<=|>=|<|>|=)?\s*(?P<version>[0-9]+(?:\.[0-9]+)*)(?P<any>\.?\*)?")
_LONGEST_SPECIFIER = 300
# uv writes markers of some hundred characters where extras conflict. A longer one is taken to hold.
_LONGEST_MARKER = 2000
_MOST_EXTRAS = 8
# What a character costs that is parsed, and one of a specifier that is compared, beside one of a marker evaluated; and
# what an evaluation costs by itself, in characters.
_PARSED, _COMPARED, _BEGUN = 5, 20, 50
_EXTRA = re.compile(r"\bextra {0,3}(==|!=) {0,3}[\"'](?:(?:extra|group)-(\d{1,3})-)?([^\"']{1,200})[\"']")
_QUOTED = re.compile(r"""["']([^"']*)["']""")


def pythons_of(specifier: str, *, stated: str, source: Source) -> frozenset[str]:
    """The Pythons that a file is for: those of its specifier, or the one that was stated.

    A specifier is PEP 440's, Poetry's (`^3.11`, `~3.11`, `>=3.11 || 3.9.*`) or conda's (`3.12`, `=3.12`,
    `>=3.11|3.9.*`); any other narrows nothing. Raises OtherPython where the two contradict, BadEnvironment where no
    Python is left.
    """
    allowed = allowed_by(specifier, frozenset(_EVERY) | ({stated} if stated else frozenset()), source)
    if stated and stated not in allowed:
        raise other_python(f"Python {show(specifier.lstrip('= '))}", stated, source)
    if not allowed:
        raise source.wrong(0, Message("file_no_python", name=quote(specifier)))
    return frozenset({stated}) if stated else allowed


def other_python(expected: str, stated: str, source: Source) -> OtherPython:
    return OtherPython(in_file(source.name, Message("file_other_python", name=Quoted(expected), wanted=stated)))


def allowed_by(specifier: str, pythons: frozenset[str], source: Source, line: int = 0) -> frozenset[str]:
    """The Pythons among these of which `specifier` allows some patch release."""
    if len(specifier) > _LONGEST_SPECIFIER:
        return pythons
    for python in pythons:
        if ("requires", specifier, python) not in source.known:
            patches = _patches(python, specifier)
            source.spend(line, _COMPARED * len(specifier) * len(patches))
            wanted = _wanted(specifier)
            source.known["requires", specifier, python] = any(
                patch in alternative for alternative in wanted for patch in patches
            )
    return frozenset(python for python in pythons if source.known["requires", specifier, python])


@lru_cache(maxsize=64)
def _wanted(specifier: str) -> tuple[SpecifierSet, ...]:
    """A text that is no specifier narrows nothing."""
    try:
        return tuple(map(_specifiers, re.split(r"\|\|?", specifier)))
    except InvalidSpecifier:
        return (SpecifierSet(),)


def _specifiers(text: str) -> SpecifierSet:
    plain = " ".join(text.split())
    clauses = [clause.strip() for clause in re.split(r",| (?=[\^~=!<>])", plain)]
    return SpecifierSet(",".join(_as_pep_440(clause) for clause in clauses if clause not in {"", "*"}))


def _as_pep_440(clause: str) -> str:
    comparison = _CLAUSE.fullmatch(clause)
    if comparison is None:
        return clause
    version, parts = comparison["version"], comparison["version"].split(".")
    match comparison["sign"]:
        case "^":
            return f">={version},<{int(parts[0]) + 1}"
        case "~" if len(parts) > 2:  # noqa: PLR2004 - ~3.11.2 is the rest of 3.11, ~3.11 all of it
            return f">={version},=={'.'.join(parts[:2])}.*"
        case "~" | "=" | None:
            return f"=={version}.*"
        case _ if comparison["any"] and comparison["sign"] not in {"==", "!="}:
            return f"{comparison['sign']}{version}"
        case _:
            return clause


def only_python(pythons: frozenset[str]) -> str:
    """The Python where there is but one; else empty."""
    return next(iter(pythons)) if len(pythons) == 1 else ""


def state(
    kind: str,
    candidates: Iterable[tuple[PinnedPackage, frozenset[str]]],
    pythons: frozenset[str],
    indexes: tuple[str, ...] = (),
) -> StatedEnvironment:
    """The environment that a source states. With each pin come the Pythons on which it is installed; one of none is
    left out. An environment is for the Pythons on which it has torch.
    """
    installed = [(pin, on) for pin, on in candidates if on]
    possible = frozenset[str]().union(*(on for pin, on in installed if pin.name == "torch")) or pythons
    is_open = len(possible) > 1 and not possible.issuperset(_EVERY)
    named = sorted(possible, key=lambda python: (len(python), python)) if is_open else []
    pins = dict.fromkeys(pin for pin, _ in installed)
    return StatedEnvironment(kind, tuple(pins), only_python(possible), indexes, tuple(named))


def of_wheel(pythons: frozenset[str], place: str, source: Source) -> frozenset[str]:
    """The Pythons that the wheel at the end of an address can be installed on. Raises OtherPython for a stated one."""
    wheel = read_wheel_name(place)
    if wheel is None or not wheel.python:
        return pythons
    if wheel.python not in pythons and (stated := only_python(pythons)):
        raise other_python(f"Python {wheel.python} ({show(place.rpartition('/')[2])})", stated, source)
    return pythons & {wheel.python}


def narrow(pythons: frozenset[str], marker: str, source: Source, line: int) -> frozenset[str]:
    """Keep the `pythons` on which a marker holds. Raises BadEnvironment."""
    if not marker.strip():
        return pythons
    if source.groups:
        marker = _EXTRA.sub(lambda match: _decided(match, source.groups), marker)
    try:
        if "python" not in marker:
            return pythons if _holds(marker, _EVERY[0], source, line) else frozenset()
        return frozenset(python for python in pythons if _holds(marker, python, source, line))
    except InvalidMarker as error:
        reason = quote(str(error).split("\n", 1)[0])
        raise source.wrong(line, Message("file_no_marker", name=quote(marker), said=reason)) from None


def _decided(match: re.Match[str], groups: Collection[str]) -> str:
    """The condition on an extra or a group as one that holds or not: these are installed, and no others.
    uv writes `extra-8-nanochat-gpu`: the length of the project's name, the name, and the extra.
    """
    operator, size, name = match.groups()
    is_installed = canonical(name[int(size) + 1 :] if size else name) in groups
    return f"os_name {operator} '{'posix' if is_installed else ''}'"


def _holds(marker: str, python: str, source: Source, line: int) -> bool:
    """Whether a marker holds, evaluated once for each marker of a file: a lock has hundreds of packages and a handful
    of markers.
    """
    if (marker, python) not in source.known:
        source.known[marker, python] = len(marker) > _LONGEST_MARKER or _may_hold(marker, python, source, line)
    return source.known[marker, python]


def _may_hold(marker: str, python: str, source: Source, line: int) -> bool:
    """Whether a marker may hold: extras, groups and the patch release, which nobody stated, are taken either way."""
    source.spend(line, _PARSED * len(marker))
    parsed = _parsed(marker)
    for environment in _environments(marker, python):
        source.spend(line, _BEGUN + len(marker))
        try:
            if parsed.evaluate(environment, "lock_file"):
                return True
        except (UndefinedComparison, UndefinedEnvironmentName):
            return True
    return False


_parsed = lru_cache(maxsize=64)(Marker)


def _environments(marker: str, python: str) -> Iterator[dict[str, str | frozenset[str]]]:
    named = (
        sorted(set(_QUOTED.findall(marker)))[:_MOST_EXTRAS]
        if "extra" in marker or "dependency_groups" in marker
        else []
    )
    is_exact = "full_version" in marker or "implementation_version" in marker
    patches = _patches(python, marker) if is_exact else (f"{python}.0",)
    for patch, extra in product(patches, ["", *named]):
        for several in {frozenset[str](), frozenset(named)}:
            yield {
                "implementation_name": "cpython",
                "implementation_version": patch,
                "os_name": "posix",
                "platform_machine": "x86_64",
                "platform_python_implementation": "CPython",
                "platform_release": "",
                "platform_system": "Linux",
                "platform_version": "",
                "python_full_version": patch,
                "python_version": python,
                "sys_platform": "linux",
                "extra": extra,
                "extras": several,
                "dependency_groups": several,
            }


def _patches(python: str, text: str) -> list[str]:
    """The patch releases that tell: the first, the last, and those that `text` names."""
    named = re.findall(rf"(?<![0-9.]){re.escape(python)}\.([0-9]{{1,2}})(?![0-9])", text)
    return [f"{python}.{patch}" for patch in dict.fromkeys(["0", "1", "99", *named])]
