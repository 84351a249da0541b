"""The platforms that a text states: `collect_env`, conda's lists, nvidia-smi, wheels of torch, markers, tracebacks."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

from knowngood.domain.builds.build_names import shown
from knowngood.domain.builds.platforms import LINUX, PLATFORMS, WINDOWS, platform_of

_SHOWN, _MOST, _MOST_WHEELS = 100, 200, 2000
# Each line states one; a group is what says it.
_LINES = re.compile(
    r"^[>#| \t]*(?:(?:OS|Python platform):[ \t]*(\S.{0,150})|platform[ \t]*:[ \t]*((?:osx|win|linux)-\w+)[ \t]*$|"
    r"https?://\S{1,300}/((?:osx|win|linux)-\w+)/(?:py)?torch-\d)",
    re.MULTILINE,
)
_LSCPU = re.compile(r"^[> \t]*Architecture:[ \t]+(x86_64|aarch64)[ \t]*$", re.MULTILINE)
_WINDOWS = re.compile(
    r"""^\|.{0,60}(?:\bWDDM\b|\bDriver-Model\b)|\[MSC v\.\d|\bFile "[A-Za-z]:\\""",
    re.MULTILINE,
)
# Each of these is one of those that a file is for: where they differ, it states none.
_ONE_OF_SEVERAL = (
    re.compile(r"(?<![^\s/\"'#?])torch-([^\s/\"'#?]{1,240})\.whl"),
    re.compile(r"^platform = \"((?:macos|windows|linux|manylinux)\w*)\"", re.MULTILINE),
    re.compile(r"^[ \t]*-[ \t]+((?:osx|win|linux)-\w+)[ \t]*$", re.MULTILINE),
)
_MARKED = re.compile(
    r"^[ \t\"']*torch(?:\[[^\]\n]{0,80}\])?[ \t]*(?:[=<>!~@][^;\n]{0,300})?(?:;(.{1,300}))?$", re.MULTILINE
)
_OF_MARKERS = {
    "linux": ("Linux", "linux", "posix"),
    "macos": ("Darwin", "darwin", "posix"),
    "windows": ("Windows", "win32", "nt"),
}
_MACHINES = {WINDOWS: "AMD64"}


def platforms_in(text: str) -> dict[str, str]:
    """The platforms that a text states, each with the words that state it."""
    statements = [(match[match.lastindex or 0], match[0]) for match in islice(_LINES.finditer(text), _MOST)]
    statements += [(f"linux {match[1]}", match[0]) for match in islice(_LSCPU.finditer(text), _MOST)]
    statements += [("windows", line_around(text, match)) for match in islice(_WINDOWS.finditer(text), 1)]
    platforms = {platform: _plain(words) for name, words in reversed(statements) if (platform := platform_of(name))}
    return platforms | _only(_tags(text)) | _only(_marked(text))


def _tags(text: str) -> Iterator[tuple[str, str]]:
    for pattern in _ONE_OF_SEVERAL:
        for match in islice(pattern.finditer(text), _MOST_WHEELS):
            for tag in re.split(r"\.(?=\D)", match[1].rpartition("-")[2] if match[0].endswith(".whl") else match[1]):
                yield platform_of(tag), match[0]


def _marked(text: str) -> Iterator[tuple[str, str]]:
    """The platforms on which torch is installed, by its markers."""
    for match in islice(_MARKED.finditer(text), _MOST):
        for platform in _where(match[1] or ""):
            yield platform, match[0]


def _where(marker: str) -> Iterable[str]:
    for written in (marker, marker.rpartition('"')[0]):
        try:
            parsed = Marker(written) if "platform" in written or "os_name" in written else None
            return [
                platform
                for platform in PLATFORMS
                if parsed is None or parsed.evaluate(_environment(platform), "lock_file")
            ]
        except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName):
            continue
    return PLATFORMS


def _environment(platform: str) -> dict[str, str | frozenset[str]]:
    """The environment in which a marker is evaluated; all but the platform is as on a current Python."""
    system, _, machine = platform.partition("-")
    name, sys_platform, os_name = _OF_MARKERS[system]
    return {
        "platform_system": name,
        "sys_platform": sys_platform,
        "os_name": os_name,
        "platform_machine": _MACHINES.get(platform, machine),
        "python_version": "3.12",
        "python_full_version": "3.12.0",
        "extra": "",
        "extras": frozenset(),
        "dependency_groups": frozenset(),
    }


def _only(statements: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The one that all of them state; several of one system that is not ours state that system."""
    platforms = {platform: _plain(words) for platform, words in statements}
    systems = {platform.partition("-")[0] for platform in platforms}
    if len(platforms) > 1 and len(systems) == 1 and LINUX not in platforms:
        return {systems.pop(): next(iter(platforms.values()))}
    return platforms if len(platforms) == 1 and "" not in platforms else {}


def line_around(text: str, match: re.Match[str]) -> str:
    start, end = text.rfind("\n", 0, match.end()) + 1, text.find("\n", match.end())
    return text[start : end if end >= 0 else len(text)]


def _plain(words: str) -> str:
    return shown(" ".join(words.split()).strip("|# >"), _SHOWN)
