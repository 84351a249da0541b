"""The answer to a pasted failure: one value, which the page and the terminal read, and which JSON is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from knowngood.domain.issue import Issue
from knowngood.domain.message import NOTHING
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.verdict import Assurance, Cell, Verdict, WorkaroundVerdict
from knowngood.environments.log_cleaning import VersionMention
from knowngood.serialization.message_field import MessageField, ReaderMessageField
from knowngood.web.urls import attempt_address, cell_address, issue_address

METHOD = (
    "matches: the issue's own signature, searched in the paste. nearest and silent: BM25 (k1 = 1.2, b = 0.75) over "
    "title, summary, signature, claims, workarounds and recorded failures; score is that over the most that the words "
    "looked for can come to, between 0 and 1"
)
_WORDS_SHOWN = 10
LONGEST_SHOWN = 400  # characters of a line of the paste


class Strength(StrEnum):
    """How much a match says."""

    SURE = "sure"  # the text is this issue's own, or the traceback runs where the issue's does
    POSSIBLE = "possible"  # the words are the issue's and anybody's


class Why(StrEnum):
    """The grounds of a match, in the words that are shown."""

    REPRO = "the repro of this issue says it in these very words"
    SAME_WAY = "its signature is there, and the traceback runs through the same code as the recorded ones"
    SAME_END = "its signature is there, and the process died the same way"
    OWN_WORDS = "its signature is there, in words that hardly anything else says"
    MARKED = "its signature is there, and so is the operator, package or version that it is about"
    OTHER_END = "the words fit, and this issue ends in a crash or a hang, of which the text shows nothing"
    RULED_OUT = "the words fit, but this issue needs another version or device than those that are stated"
    PASSES_THERE = "the words fit, but this issue was measured to pass on the very build that is stated"
    SAME_OPERATOR = "the process died the same way, and the text names the operator that this issue is about"
    KEPT = "this address says so; what was pasted is not kept"
    COMMON_WORDS = (
        "the words fit, but other faults are told in the same words; "
        "paste the whole traceback, and it can be held against the recorded ones"
    )


@dataclass(frozen=True)
class PastedLine:
    """One line of a paste: `number` is where it stood there, from 1; `lit` says that it carries the signature."""

    number: int
    text: str
    lit: bool


@dataclass(frozen=True)
class SeenCell:
    """A cell in short; `inferred_from` names what it is inferred from, empty where it was measured."""

    build: str
    hardware: str
    verdict: Verdict
    reason: MessageField
    signature_line: str
    assurance: Assurance
    inferred_from: str
    runs: int
    url: str
    evidence_url: str | None


@dataclass(frozen=True)
class TriedWorkaround:
    """A workaround with what was measured of it on the cell of `cures_on`, those that work first; `unverified` where
    there is none.
    """

    id: str
    title: str
    verdict: WorkaroundVerdict
    note: MessageField
    trade_off: str
    body: str


@dataclass(frozen=True)
class Match:
    """`sure`: the signature is this issue's own, or the traceback is, or the text names what the issue is about.
    `possible`: its words are anybody's too, or what is stated rules it out; workarounds stand with `sure` alone.

    `line` is what matched, `around` the lines about it. `seen` are the cells on which this signature was seen here, the
    newest build first. `here` is the cell of the build in question (null: nobody measured it); `cures_on` the one whose
    workarounds stand here: that same one where the issue was seen on it, else the newest on which it was. `report_url`
    is the thread upstream, `caveat` the issue's own, `to_do` what to do next.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}  # none is ever left out

    issue: str
    title: str
    component: str
    silent: bool
    strength: Strength
    why: str
    line: str
    around: tuple[PastedLine, ...]
    url: str
    report_url: str | None
    caveat: str
    history: Mapping[str, MessageField] = field(default_factory=dict)
    seen: tuple[SeenCell, ...] = ()
    here: SeenCell | None = None
    cures_on: SeenCell | None = None
    workarounds: tuple[TriedWorkaround, ...] = ()
    to_do: ReaderMessageField = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class NearIssue:
    """`score` is between 0 and 1; `words` are those it shares with the paste, the most telling first."""

    issue: str
    title: str
    score: float
    words: tuple[str, ...]
    url: str
    report_url: str | None


@dataclass(frozen=True)
class Meaning:
    """The meaning of a message that is no issue of the catalogue. Nothing of it was run here: it is the claim of its
    `sources`. `fact` decides, `unless` says when the words mean something else (empty: never), `command` is one line to
    run or to write, `line` the one that says it (empty: what was pasted is not kept). `symbol` is the one of torch that
    was not found, as C++ has it, and `exports` which torch exports it; this was read in the wheels.
    """

    id: str
    title: str
    cause: str
    fact: str
    sources: tuple[str, ...]
    command: str
    unless: str = ""
    strength: Strength = Strength.SURE
    line: str = ""
    symbol: str = ""
    exports: ReaderMessageField = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class Explanation:
    """`known` says whether a match or a meaning is sure. `build` is the tested one that was named, or read from the
    paste.

    `asked` is the environment in words, `note` why it is no tested build, or what was assumed. `wheel` says of each GPU
    of the text that the wheel holds no code for it, or that nobody knows, and on Windows that torch brings no Triton.
    `meanings` are of messages that an installation causes and no issue, sure ones first. `matches` stand best first;
    `nearest` is empty where there is a sure one, or a meaning. `silent` lists issues that raise nothing, where the
    words speak of wrong numbers. `untried` are issues and messages that took too long to look for; `left_out` counts
    characters of the middle of a long paste that were not read.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    known: bool
    versions: tuple[VersionMention, ...] = ()
    build: str | None = None
    asked: str = ""
    note: MessageField = NOTHING
    wheel: tuple[MessageField, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    matches: tuple[Match, ...] = ()
    nearest: tuple[NearIssue, ...] = ()
    silent: tuple[NearIssue, ...] = ()
    untried: tuple[str, ...] = ()
    lines: int = 0
    left_out: int = 0
    method: str = METHOD

    @property
    def sure(self) -> Match | None:
        """The match that is surely this failure, best first."""
        return next((match for match in self.matches if match.strength is Strength.SURE), None)


def match_of(issue: Issue, strength: Strength, why: Why, line: str = "", around: tuple[PastedLine, ...] = ()) -> Match:
    """A match as far as it goes without cells."""
    return Match(
        issue=issue.id,
        title=issue.title,
        component=issue.component,
        silent=issue.silent,
        strength=strength,
        why=why,
        line=line,
        around=around,
        url=issue_address(issue.id),
        report_url=issue.report.url if issue.report else None,
        caveat=issue.caveat,
    )


def near_issue(issue: Issue, score: float = 0.0, words: tuple[str, ...] = ()) -> NearIssue:
    """An issue that is like a paste in its words."""
    report = issue.report.url if issue.report else None
    return NearIssue(issue.id, issue.title, round(score, 3), words[:_WORDS_SHOWN], issue_address(issue.id), report)


def seen_cell(cell: Cell) -> SeenCell:
    """A cell in short."""
    return SeenCell(
        build=cell.build,
        hardware=cell.hardware,
        verdict=cell.verdict,
        reason=cell.reason,
        signature_line=cell.line if cell.verdict in FAILING else "",
        assurance=cell.assurance,
        inferred_from=ground_of(cell.basis) if cell.basis else "",
        runs=cell.runs,
        url=cell_address(*cell.key),
        evidence_url=attempt_address(cell.evidence) if cell.evidence else None,
    )
