"""The fields of the query language (`parser.py` here): what each may be asked, and when the answer is yes.

A field speaks of an issue, of a place (which columns are meant), or of a cell. What was not measured has no age and no
cure: nothing that is asked of them holds there. A new field is one entry of FIELDS.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from operator import contains, eq, ge, gt, le, lt

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.build_names import read_build_name
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.hardware_names import hardware_named
from knowngood.domain.identity_key import IdentityKey
from knowngood.domain.issue import (
    BASELINE,
    OPERATOR_PROBE,
    PROBES,
    Culprit,
    Device,
    Fidelity,
    Issue,
    LinkKind,
    Severity,
    SignatureKind,
    Status,
)
from knowngood.domain.message import english
from knowngood.domain.verdicts.status import is_untried, passes_as_reported
from knowngood.domain.verdicts.verdict import CONCLUSIVE, FAILING, Cell, Verdict, WorkaroundVerdict, stale_before

AboutIssue = Callable[[Issue], bool]
AboutBuild = Callable[[Build], bool]
AboutCell = Callable[[int, Cell], bool]

LONGEST_VALUE = 200
_VERSION = "a torch release (2.6), a range (2.6..2.8, 2.8.., ..2.6), a comparison (>=2.6,<2.8) or a build id"
_OTHER_VERSION = "a version (12.6), a range (12.4..12.8, 12.8..), a comparison (>=12.6) or none"
_PYTHON_VERSION = "a version (3.12), a range (3.11..3.13, 3.12..) or a comparison (>=3.12)"
_AGE = "an age such as <90d: one of < <= > >=, a number, and h, d or w"
_TEXT = "a part of it, or = and all of it"


class UnfitValue(Exception):
    """A value that its field does not take; `expected` says what it takes, `nearest` is a word close by, or empty."""

    def __init__(self, expected: str, nearest: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.nearest = nearest


class Kind(StrEnum):
    ISSUE = "issue"
    PLACE = "place"
    CELL = "cell"


@dataclass(frozen=True)
class Field:
    """`read` gives a value its one way of writing; raises UnfitValue. `words` are all that it takes, if they are few:
    these may be separated by commas too.
    """

    name: str
    kind: Kind
    about: str
    read: Callable[[str], str]
    words: tuple[str, ...] = ()


# -- values ------------------------------------------------------------------------------------------------------------


def _no_word(text: str, words: Iterable[str]) -> UnfitValue:
    words = tuple(words)
    return UnfitValue(f"one of {', '.join(words)}", nearest_word(text, words))


def nearest_word(text: str, words: Iterable[str]) -> str:
    """The word most like `text`, by letters alone; empty where none is alike."""
    near = get_close_matches(text[:LONGEST_VALUE].casefold(), list(words), 1)
    return near[0] if near else ""


_MEANT = {
    "pass": "not_affected",
    "passes": "not_affected",
    "passing": "not_affected",
    "ok": "not_affected",
    "good": "not_affected",
    "fixed": "not_affected",
    "fail": "affected",
    "fails": "affected",
    "failing": "affected",
    "bad": "affected",
    "broken": "affected",
    "unknown": "not_run",
    "unmeasured": "not_run",
}


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        word = text.casefold()
        if word not in words:
            raise _no_word(word, words)
        return word

    return read


def _verdict(text: str) -> str:
    word = text.casefold()
    if word in _MEANT:
        raise UnfitValue("a verdict", _MEANT[word])
    return _one_of(VERDICTS)(word)


VERDICTS = tuple(verdict.value for verdict in Verdict)
_SEVERITIES = tuple(severity.value for severity in Severity)
_YES_NO = ("yes", "no")
_COMPARED = re.compile(r"(>=|<=|>|<)?(.*)", re.DOTALL)


def _severity(text: str) -> str:
    sign, word = _COMPARED.fullmatch(text.casefold()).groups()  # type: ignore[union-attr]  # matches whatever there is
    if word not in _SEVERITIES:
        raise _no_word(word, _SEVERITIES)
    return f"{sign or ''}{word}"


def _some_text(text: str) -> str:
    if not text.removeprefix("=").strip():
        raise UnfitValue(_TEXT)
    return text


def _exercised(text: str) -> str:
    word = text.casefold()
    if word in PROBES or word == "operator" or word.startswith(OPERATOR_PROBE):
        return word
    raise _no_word(word, (*PROBES, "operator"))


_AGES = re.compile(r"(<=|>=|<|>)([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def _age(text: str) -> str:
    match = _AGES.fullmatch(text.casefold())
    if match is None:
        raise UnfitValue(_AGE)
    return f"{match[1]}{int(match[2])}{match[3]}"


# -- versions ----------------------------------------------------------------------------------------------------------

_RELEASE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")
_SPECIFIER = re.compile(r"(~=|==|!=|<=|>=|<|>|=)([0-9][0-9A-Za-z.+*!_-]*)")
_SPECIFIERS = re.compile(r"[~=!<>]")


# What only names a build: versions, ranges and comparisons are read as such.
_NAMES_BUILD = re.compile(r"(?:py)?torch|v[0-9]|[0-9][^~\s]*(?:~|\s+(?:cu[0-9]|cpu|rocm|xpu))", re.IGNORECASE)


def _build(text: str) -> str:
    """The id of a build that is named whole; else the versions of torch that are meant."""
    if not _NAMES_BUILD.match(text):
        return _versions(text, _VERSION)
    try:
        name = read_build_name(text)
    except UnknownBuild as error:
        raise UnfitValue(f"{_VERSION}; {error}") from None
    is_whole = name.python is not None or name.triton is not None
    if is_whole and name.torch.local is not None:
        return str(name.id_on(name.python or DEFAULT_PYTHON))
    if name.triton is not None or name.python not in {None, DEFAULT_PYTHON}:
        raise UnfitValue(_VERSION)
    return str(name.torch)


def _cuda(text: str) -> str:
    word = text.casefold()
    if word in {"none", "cpu"}:
        return "none"
    tagged = re.fullmatch(r"cu([0-9]{1,4})([0-9])", word)
    return f"{tagged[1]}.{tagged[2]}" if tagged else _versions(word, _OTHER_VERSION)


def _other_version(text: str) -> str:
    word = text.casefold()
    return word if word == "none" else _versions(word, _OTHER_VERSION)


def _versions(text: str, expected: str) -> str:
    """The one way of writing it; whether it can be read is tried by reading it."""
    whole = "".join(text.split())
    plain = whole.removesuffix(".*")
    if ".." in plain:
        written = "..".join(_end(end, expected) for end in plain.split("..", 1))
    elif _SPECIFIERS.match(whole):
        written = ",".join(_specifier(part, expected) for part in whole.split(","))
    else:
        written = _end(plain, expected)
    if written in {"", ".."}:
        raise UnfitValue(expected)
    try:
        version_test(written)
    except InvalidSpecifier:  # such as an order among local parts: `>=2.6.0+cu124`
        raise UnfitValue(expected) from None
    return written


def _specifier(text: str, expected: str) -> str:
    match = _SPECIFIER.fullmatch(text)
    if match is None:
        raise UnfitValue(expected)
    return f"{'==' if match[1] == '=' else match[1]}{match[2]}"


def _end(text: str, expected: str) -> str:
    """A version as it stands alone or at an end of a range; empty for an open end."""
    if not text:
        return ""
    if _RELEASE.fullmatch(text):
        return text
    try:
        return str(Version(text))
    except InvalidVersion:
        raise UnfitValue(expected) from None


@lru_cache(maxsize=256)  # a value is tried when it is read and used a moment later, and specifiers are slow to make
def version_test(value: str) -> Callable[[Version], bool]:
    """`A..B` is everything from A up to the last of the line B: `>=A` and (`<B` or `==B.*`). A release stands for its
    line: `2.6` is `==2.6.*`. A version with more to it (`2.7.1+cu126`, a nightly) stands for itself.
    """
    if ".." not in value:
        wanted = SpecifierSet(value if _SPECIFIERS.match(value) else _line(value))
        return lambda version: wanted.contains(version, prereleases=True)
    low, high = value.split("..", 1)
    least = SpecifierSet(f">={low}" if low else "")
    below, line = SpecifierSet(f"<{high}" if high else ""), SpecifierSet(_line(high) if high else "")
    return lambda version: (
        least.contains(version, prereleases=True)
        and (below.contains(version, prereleases=True) or line.contains(version, prereleases=True))
    )


@lru_cache(maxsize=1024)
def _version(text: str) -> Version:
    return Version(text)


def _line(version: str) -> str:
    return f"=={version}.*" if _RELEASE.fullmatch(version) else f"=={version}"


# -- what each field means ---------------------------------------------------------------------------------------------


def about_issue(field: str, value: str) -> AboutIssue:
    """Whether `value` is so of an issue's `field`."""
    match field:
        case "severity":
            return _severity_test(value)
        case "exercises":
            return lambda issue: _is_exercised(issue, value)
        case "has":
            return _HAS[value]
        case "text":
            return _words_test(value)
        case _ if field in _WORD_OF:
            word_of = _WORD_OF[field]
            return lambda issue: word_of(issue) == value
        case _:
            texts, holds = _TEXTS_OF[field], _text_test(value)
            return lambda issue: any(map(holds, texts(issue)))


def _severity_test(value: str) -> AboutIssue:
    sign, word = _COMPARED.fullmatch(value).groups()  # type: ignore[union-attr]  # it was read before
    at = _SEVERITIES.index(word)
    wanted = {
        severity
        for place, severity in enumerate(_SEVERITIES)
        if {None: place == at, ">=": place >= at, "<=": place <= at, ">": place > at, "<": place < at}[sign]
    }
    return lambda issue: issue.severity.value in wanted


def _is_exercised(issue: Issue, probe: str) -> bool:
    exercises = next((arm.exercises for arm in issue.arms if arm.id == BASELINE), ())
    if probe == "operator":
        return any(exercise.startswith(OPERATOR_PROBE) for exercise in exercises)
    return probe in {exercise.casefold() for exercise in exercises}


def _upstream(issue: Issue) -> str:
    """As the first report that was looked up; the page of upkeep reads it alike."""
    return next((link.state for link in issue.links if link.kind is LinkKind.REPORT and link.state), "unknown")


def _has_link(kind: LinkKind) -> AboutIssue:
    return lambda issue: any(link.kind is kind for link in issue.links)


_HAS: dict[str, AboutIssue] = {
    "workaround": lambda issue: bool(issue.workarounds),
    "report": _has_link(LinkKind.REPORT),
    "fix": _has_link(LinkKind.FIX),
    "evidence": _has_link(LinkKind.EVIDENCE),
    "claim": lambda issue: bool(issue.claims),
    "package": lambda issue: bool(issue.packages.requirements or issue.packages.no_deps),
    "variant": lambda issue: bool(issue.variants),
}
_WORD_OF: dict[str, Callable[[Issue], str]] = {
    "culprit": lambda issue: issue.culprit.value,
    "fidelity": lambda issue: issue.fidelity.value,
    "kind": lambda issue: issue.status.value,
    "device": lambda issue: issue.requires.device.value,
    "signature": lambda issue: issue.signature.kind.value,
    "upstream": _upstream,
    "silent": lambda issue: _YES_NO[not issue.silent],
    "default": lambda issue: _YES_NO[not issue.default],
}
_TEXTS_OF: dict[str, Callable[[Issue], Iterable[str]]] = {
    "id": lambda issue: (issue.id,),
    "title": lambda issue: (issue.title, issue.title_zh),
    "summary": lambda issue: (issue.summary, issue.summary_zh),
    "component": lambda issue: (issue.component,),
    "link": lambda issue: (text for link in issue.links for text in (link.url, link.title)),
    "package": lambda issue: (
        *issue.packages.requirements,
        *issue.packages.no_deps,
        *(text for texts in issue.packages.per_release.values() for text in texts),
    ),
    "workaround": lambda issue: (
        text for workaround in issue.workarounds for text in (workaround.id, workaround.title, workaround.title_zh)
    ),
}


def _text_test(value: str) -> Callable[[str], bool]:
    """Whether a text holds `value`; after `=`, whether it is that."""
    wanted = value.removeprefix("=").casefold()
    if value.startswith("="):
        return lambda text: text.casefold() == wanted
    return lambda text: wanted in text.casefold()


def _words_test(words: str) -> AboutIssue:
    """Whether bare words stand in an issue's id, title or component."""
    wanted = words.casefold()
    return lambda issue: wanted in f"{issue.id} {issue.title} {issue.title_zh} {issue.component}".casefold()


def about_build(field: str, value: str) -> AboutBuild:
    """Whether a build is among the columns that `value` means."""
    match field:
        case "mismatched":
            return lambda build: build.is_mismatched is (value == "yes")
        case "build" if value.startswith("torch-"):
            return lambda build: build.id == value
        case _ if value == "none":
            part = _VERSION_OF[field]
            return lambda build: part(build) is None
        case _:
            part, holds = _VERSION_OF[field], version_test(value)
            return lambda build: (version := part(build)) is not None and holds(version)


_VERSION_OF: dict[str, Callable[[Build], Version | None]] = {
    "build": lambda build: build.build_id.version,
    "python": lambda build: _version(build.python),
    "cuda": lambda build: None if build.cuda is None else _version(build.cuda),
    "triton": lambda build: None if build.triton is None else _version(build.triton),
}


def about_class(_field: str, value: str) -> Callable[[str], bool]:
    """Of a hardware class. `cuda` is part of `cuda-sm_90`, of which `H100` is a name."""
    is_text, named = _text_test(value), hardware_named(value)
    if named is None:
        return is_text
    return lambda class_: (
        is_text(class_) or class_ == named.hardware or (named.is_any_gpu and class_.startswith("cuda-"))
    )


def about_cell(field: str, value: str, builds: Sequence[Build], now: datetime) -> AboutCell:
    """Whether `value` is so of a cell, which is asked with the place of its build."""
    match field:
        case "age":
            return _age_test(value, now)
        case "stale":
            return _stale_test(value == "yes", [stale_before(build, now) for build in builds])
        case "cure":
            return _STANDINGS.get(value) or _cure_test(WorkaroundVerdict(value))
        case "reported":
            return lambda _, cell: cell.verdict in CONCLUSIVE and passes_as_reported(cell) is (value == "yes")
        case "hardware":
            of_class = about_class(field, value)
            return lambda _, cell: of_class(cell.hardware)
        case "reason":
            wanted = value.removeprefix("=").casefold()
            holds = eq if value.startswith("=") else contains
            return lambda _, cell: holds(_reason_of(IdentityKey(cell)), wanted)
        case _:
            raise AssertionError(field)


@lru_cache(maxsize=1024)  # each condition of a query asks every cell
def _reason_of(cell: IdentityKey[Cell]) -> str:
    return english(cell.it.reason).casefold()


_ORDERS: dict[str, Callable[[datetime, datetime], bool]] = {"<": gt, "<=": ge, ">": lt, ">=": le}


def _age_test(value: str, now: datetime) -> AboutCell:
    """A younger cell was measured later."""
    sign, number, unit = _AGES.fullmatch(value).groups()  # type: ignore[union-attr]  # it was read before
    limit, compared = now - int(number) * _UNITS[unit], _ORDERS[sign]
    return lambda _, cell: cell.measured_at is not None and compared(cell.measured_at, limit)


def _stale_test(wanted: bool, limits: Sequence[datetime]) -> AboutCell:  # noqa: FBT001 - what the answer is to be
    return lambda at, cell: cell.measured_at is not None and (cell.measured_at < limits[at]) is wanted


def _cure_test(wanted: WorkaroundVerdict) -> AboutCell:
    def test(_: int, cell: Cell) -> bool:
        if cell.verdict not in CONCLUSIVE:
            return False
        for finding in cell.workarounds.values():  # noqa: SIM110 - thousands of cells, and any() takes twice as long
            if finding.verdict is wanted:
                return True
        return False

    return test


_is_cured = _cure_test(WorkaroundVerdict.EFFECTIVE)


def _no_cure(at: int, cell: Cell) -> bool:
    return cell.verdict in CONCLUSIVE and cell.verdict in FAILING and not _is_cured(at, cell)


_STANDINGS: dict[str, AboutCell] = {
    "none": _no_cure,
    "untried": lambda _, cell: is_untried(cell),
    "not_found": lambda at, cell: _no_cure(at, cell) and not is_untried(cell),
}


# -- all of them -------------------------------------------------------------------------------------------------------


def _words(name: str, kind: Kind, about: str, words: Iterable[str]) -> Field:
    listed = tuple(words)
    return Field(name, kind, about, _one_of(listed), listed)


_WORKAROUND_WORDS = (*(verdict.value for verdict in WorkaroundVerdict), *_STANDINGS)
_ALL = (
    Field("id", Kind.ISSUE, "the issue's id", _some_text),
    Field("title", Kind.ISSUE, "its title, in either language", _some_text),
    Field("summary", Kind.ISSUE, "its description, in either language", _some_text),
    Field("component", Kind.ISSUE, "its component", _some_text),
    Field("link", Kind.ISSUE, "address or title of one of its links", _some_text),
    Field("package", Kind.ISSUE, "an extra package that it needs", _some_text),
    Field("workaround", Kind.ISSUE, "id or title of one of its workarounds", _some_text),
    _words("culprit", Kind.ISSUE, "the layer at fault", (culprit.value for culprit in Culprit)),
    Field("severity", Kind.ISSUE, "how bad, also compared: >=high", _severity, _SEVERITIES),
    _words("silent", Kind.ISSUE, "wrong numbers without an error", _YES_NO),
    _words("kind", Kind.ISSUE, "what upstream calls it", (status.value for status in Status)),
    _words("fidelity", Kind.ISSUE, "how near the repro is to the report", (fidelity.value for fidelity in Fidelity)),
    _words("device", Kind.ISSUE, "what it runs on", (device.value for device in Device)),
    _words("signature", Kind.ISSUE, "how its failure is recognised", (kind.value for kind in SignatureKind)),
    _words("upstream", Kind.ISSUE, "state of its report when last looked up", ("open", "closed", "unknown")),
    Field("exercises", Kind.ISSUE, "a probe of the suspect path; operator is any operator", _exercised),
    _words("has", Kind.ISSUE, "whether it has any of these", _HAS),
    _words("default", Kind.ISSUE, "one of the small set that `knowngood up` measures", _YES_NO),
    Field("build", Kind.PLACE, "torch release, range, comparison or build id", _build),
    Field("cuda", Kind.PLACE, "CUDA of the wheel; none is a CPU wheel", _cuda),
    Field("triton", Kind.PLACE, "Triton beside it, or none", _other_version),
    Field("python", Kind.PLACE, "Python of the build", lambda text: _versions(text, _PYTHON_VERSION)),
    _words("mismatched", Kind.PLACE, "a Triton that is not that torch's own", _YES_NO),
    Field("status", Kind.CELL, "the verdict", _verdict, VERDICTS),
    Field("age", Kind.CELL, "time since it was measured: <90d, >=2w, <12h", _age),
    _words("stale", Kind.CELL, "evidence too old to lean on", _YES_NO),
    _words(
        "cure",
        Kind.CELL,
        "a workaround's verdict there; none: it fails, and none is known to cure it; of these, untried: one has no "
        "answer, and not_found: all were run",
        _WORKAROUND_WORDS,
    ),
    _words("reported", Kind.CELL, "fails in a variant, and passes with the one that the report ran", _YES_NO),
    Field("hardware", Kind.CELL, "the hardware it was measured on, by class or by the name of a GPU", _some_text),
    Field("reason", Kind.CELL, "why this verdict", _some_text),
)

FIELDS = {field.name: field for field in _ALL}
ALIASES = {"verdict": "status", "torch": "build"}
