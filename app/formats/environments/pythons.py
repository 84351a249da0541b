"""Which Pythons a part of a lock is for. Markers are read for CPython on Linux x86_64: builds are measured on that."""

import re
from collections.abc import Iterator
from itertools import product

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from app.formats.environments.source import Source, show

# Far beyond the newest, so that ">=3.14" alone never looks like one Python.
_EVERY = tuple(f"3.{minor}" for minor in range(8, 21))
_MINOR = re.compile(r"(\d{1,2}\.\d{1,3})(?:\.[0-9A-Za-z.+]*)?")
_TILDE = re.compile(r"~\s*(\d+\.\d+)(?:\.\d+)?")
# uv writes markers of some hundred signs where extras conflict. A longer one is taken to hold; these limits keep the
# worst file of 4 MiB at seconds.
_LONGEST_MARKER = 2000
_MOST_EXTRAS = 8
_MOST_EVALUATIONS = 6000
_QUOTED = re.compile(r"""["']([^"']*)["']""")


def minor_python(text: str, source: Source) -> str:
    """`3.12` of "3.12.4". Raises BadEnvironment for what is no Python."""
    found = _MINOR.fullmatch(text.strip())
    if found is None:
        raise source.wrong(0, f'Python "{show(text)}" is none; write for example 3.12')
    return found[1]


def pythons_of(specifier: str, *, stated: str, source: Source) -> frozenset[str]:
    """The Pythons that a file is for: those of its specifier, or the one that was stated.

    A specifier that is not PEP 440's (Poetry's `^3.11`) narrows nothing, but for `~3.11`, which is one Python.
    Raises BadEnvironment where the two contradict.
    """
    every = frozenset(_EVERY) | ({stated} if stated else frozenset())
    tilde = _TILDE.fullmatch(specifier.strip())
    try:
        wanted = SpecifierSet(f"=={tilde[1]}.*" if tilde else specifier)
    except InvalidSpecifier:
        wanted = SpecifierSet()
    allowed = frozenset(python for python in every if any(Version(one) in wanted for one in _patches(python)))
    if stated and stated not in allowed:
        raise source.wrong(0, f"is for Python {show(specifier)}, and Python {stated} was stated")
    if not allowed:
        raise source.wrong(0, f'Python "{show(specifier)}" is none that torch has wheels for')
    return frozenset({stated}) if stated else allowed


def only_python(pythons: frozenset[str]) -> str:
    """The Python where there is but one; else empty."""
    return next(iter(pythons)) if len(pythons) == 1 else ""


def narrow(pythons: frozenset[str], marker: str, source: Source, line: int) -> frozenset[str]:
    """Those of `pythons` on which a marker holds. Raises BadEnvironment."""
    if not marker.strip():
        return pythons
    try:
        if "python" not in marker:
            return pythons if _holds(marker, _EVERY[0], source, line) else frozenset()
        return frozenset(python for python in pythons if _holds(marker, python, source, line))
    except InvalidMarker as error:
        reason = show(str(error).split("\n", 1)[0])
        raise source.wrong(
            line, f'"{show(marker)}" is no marker ({reason}); write the file anew with its tool'
        ) from None


def _holds(marker: str, python: str, source: Source, line: int) -> bool:
    """Once for each marker of a file: a lock has hundreds of packages and a handful of markers."""
    if (marker, python) not in source.markers:
        if len(source.markers) >= _MOST_EVALUATIONS:
            raise source.wrong(
                line, "is beyond the different markers that are read; state the Python, or give pip freeze"
            )
        source.markers[marker, python] = holds(marker, python)
    return source.markers[marker, python]


def holds(marker: str, python: str) -> bool:
    """Whether a marker may hold: what nobody stated (extras, groups, the patch release) is taken either way."""
    if len(marker) > _LONGEST_MARKER:
        return True
    parsed = Marker(marker)
    try:
        return any(parsed.evaluate(environment, "lock_file") for environment in _environments(marker, python))
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True


def _environments(marker: str, python: str) -> Iterator[dict[str, str | frozenset[str]]]:
    named = (
        sorted(set(_QUOTED.findall(marker)))[:_MOST_EXTRAS]
        if "extra" in marker or "dependency_groups" in marker
        else []
    )
    patches = _patches(python) if "full_version" in marker or "implementation_version" in marker else (f"{python}.0",)
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


def _patches(python: str) -> tuple[str, ...]:
    return (f"{python}.0", f"{python}.1", f"{python}.99")
