"""Upper bounds and exclusions as projects write them, found line by line in the text of a file: pure.

`packaging` reads what is found; Poetry's `^2.1` and conda's `=2.1` are put in PEP 440's words first. An exact version
(`==2.8.0`) is what somebody runs, and no bound.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

FILES = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|pixi\.toml|pipfile|setup\.(?:cfg|py)|uv\.lock|(?:docker|container)file[^/]*"
    r"|[^/]*\.dockerfile|[^/]*(?:requirements|constraints|environment|conda)[^/]*\.(?:txt|in|ya?ml)"
    r"|(?:requirements|constraints)/(?:[^/]+/)?[^/]+\.(?:txt|in))",
    re.IGNORECASE,
)
"""The paths of files that may hold a bound."""

_LONGEST_LINE = 2000
_COMMENT = re.compile(r"(?:^|\s)#(.*)$")
_SECTION = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_POETRY = re.compile(r"([\^~])(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_CONDA = re.compile(r"=?(\d+(?:\.\d+)*)(?:\.\*)?")
_FROM_CONDA = {"pytorch": "torch"}
_ELSEWHERE = re.compile(
    r"\b(?:markers?|platform|python)\s{0,9}=\s{0,9}[\"'][^,}]{0,200}|/whl/(?:nightly/)?(?:cpu|rocm|xpu)[\w.]*"
)
"""What says in another way that a requirement is for some environments alone: Poetry's keys, an index of a backend."""


@dataclass(frozen=True)
class Declared:
    """A requirement with its place. `comment` are the words behind it on its line, `above` those of the comment that
    ends on the line before. `is_conda` says that conda installs it, and no wheel.
    """

    file: str
    line: int
    package: str
    specifier: SpecifierSet
    marker: str = ""
    comment: str = ""
    above: str = ""
    is_conda: bool = False

    @property
    def bounds(self) -> tuple[str, ...]:
        """The clauses that keep newer releases out: all upper ones as one, each exclusion for itself."""
        clauses = sorted(map(str, self.specifier))
        upper = [each for each in clauses if each.startswith(("<", "~=")) or (each[:2] == "==" and each[-2:] == ".*")]
        return tuple(filter(None, (",".join(upper), *(each for each in clauses if each.startswith("!=")))))

    def without(self, bound: str) -> SpecifierSet:
        return SpecifierSet(",".join(str(clause) for clause in self.specifier if str(clause) not in bound.split(",")))


def find_declared(file: str, text: str, packages: Iterable[str]) -> Iterator[Declared]:
    """Find the requirements on these packages (canonical names) that say anything of a version."""
    name, section, pip_at, lines = file.rpartition("/")[2].lower(), "", -1, text.split("\n")
    starts, is_yaml = _starts(tuple(sorted(packages))), name.endswith(("yml", "yaml"))
    is_quoted = name.endswith((".py", ".toml", ".lock")) or name == "pipfile"
    for number, line in enumerate(lines, 1):
        section = head[1] if (head := _SECTION.match(line)) else section
        if is_yaml and line.strip():
            indent = len(line) - len(line.lstrip())
            pip_at = indent if re.match(r"\s*-\s*pip:", line) else pip_at if indent > pip_at else -1
        if len(line) > _LONGEST_LINE or (name == "uv.lock" and section != "manifest"):
            continue
        is_table = "dependencies" in section or "packages" in section
        is_conda = pip_at < 0 if is_yaml else is_table and "pypi" not in section and "pixi" in f"{section}{name}"
        for start in starts.finditer(line):
            before = line[: start.start()]
            is_string = before.endswith(('"', "'")) or not before.strip()
            if not _COMMENT.search(before) and (is_string or not is_quoted):
                read = _read(line, start, is_conda=is_conda, is_table=is_table)
                above = _above(lines, number)
                yield from (replace(one, file=file, line=number, above=above, is_conda=is_conda) for one in read)


@lru_cache(maxsize=4)
def _starts(packages: tuple[str, ...]) -> re.Pattern[str]:
    spelled = sorted((*packages, *_FROM_CONDA), key=len, reverse=True)
    names = "|".join(re.escape(name).replace(r"\-", "[-_.]") for name in spelled)
    return re.compile(rf"(?<![\w./@-])(?P<name>{names})(?![\w.-])", re.IGNORECASE)


def _above(lines: list[str], number: int) -> str:
    comment = [*takewhile(lambda line: line.lstrip().startswith("#"), lines[: number - 1][::-1])]
    return " ".join(line.strip().lstrip("#").strip() for line in comment[::-1])


_KEY = re.compile(
    r"[\"']?\s{0,80}=\s{0,9}(?:\{[^}\n]{0,300}?\bversion\s{0,9}=\s{0,9})?[\"'](?P<value>[^\"']{1,300})[\"']"
)
_LOCKED = re.compile(r"[\"'][^}\n]{0,300}?\bspecifier\s{0,9}=\s{0,9}[\"'](?P<value>[^\"']{1,300})[\"']")
_PLAIN = re.compile(r"(?:\s{0,9}\[[^\]\n]{0,80}\])?\s{0,9}(?P<value>\(?\s{0,9}(?:[<>=!~]|\d).*)")


def _read(line: str, start: re.Match[str], *, is_conda: bool, is_table: bool) -> Iterator[Declared]:
    """The requirement that begins there, without its place; none where that says nothing of a version."""
    rest, quote, name = line[start.end() :], line[start.start() - 1 : start.start()], canonicalize_name(start["name"])
    forms = (_LOCKED, _KEY, _PLAIN) if is_table else (_LOCKED, _PLAIN)
    says = next((match for form in forms if (match := form.match(rest))), None)
    value = says["value"] if says else ""
    if quote in {'"', "'"}:
        value = re.split(rf"(?<!\\){quote}", value, maxsplit=1)[0].replace(f"\\{quote}", quote)
    value, _, marker = re.split(r"\s#|\s--|\s\\$", value, maxsplit=1)[0].partition(";")
    specifier = _specifier(value.strip().strip("()"), is_conda=is_conda)
    if len(specifier) and (is_conda or name not in _FROM_CONDA):
        comment = _COMMENT.search(line, start.end())
        package = _FROM_CONDA.get(name, name)
        elsewhere = _ELSEWHERE.search(rest)
        marker = marker.strip() or (elsewhere[0] if elsewhere else "")
        yield Declared("", 0, package, specifier, marker, comment[1].strip() if comment else "")


def _specifier(text: str, *, is_conda: bool) -> SpecifierSet:
    """Empty for what is none."""
    if poetry := _POETRY.fullmatch(text):
        numbers = [int(part) for part in poetry.groups()[1:] if part]
        at = min(1, len(numbers) - 1) if poetry[1] == "~" else next((i for i, part in enumerate(numbers) if part), 0)
        text = f">={'.'.join(map(str, numbers))},<{'.'.join(map(str, [*numbers[:at], numbers[at] + 1]))}"
    elif (conda := _CONDA.fullmatch(text)) and (is_conda or text.endswith("*")):
        text = f"=={conda[1]}.*"
    try:
        specifier = SpecifierSet(text.split(" ")[0] if is_conda else text)
        return specifier if all(Version(each.version.removesuffix(".*")) for each in specifier) else SpecifierSet()
    except (InvalidSpecifier, InvalidVersion):
        return SpecifierSet()
