"""The answer to a pasted failure, which pages and terminals read and which JSON is; and the advice on each match."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import NOTHING, Message, Quoted, clauses
from knowngood.domain.verdicts.claims import doubts_about
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import FAILING, Assurance, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
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
        "the words fit, but other faults use the same words; paste the whole traceback, so that it can be "
        "compared with the recorded ones"
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


# -- Advice on a match: its cells, its workarounds on the build of a reader, and the one thing to do -------------------

_COMMANDS = {
    "make_sure": "python -m torch.utils.collect_env",
    "measure": "knowngood run --issues {issue} --builds {build}",
}


def command_of(step: Message) -> str:
    """The command of a step, to be run in a shell; empty where the step is none of a shell's."""
    return _COMMANDS.get(step.key, "").format(**step.values)


def advise(match: Match, issue: Issue, build: str | None, known: Known, *, elsewhere: bool = False) -> Match:
    """Add to a match where the issue was seen and what holds on `build` (None: no tested build is known). Where several
    hardware classes were measured, one that fails stands for them. `elsewhere` says that the text names a platform on
    which nothing is measured.
    """
    builds = known.builds
    seen = [cell for cell in known.stored(issue.id) if cell.verdict in FAILING and cell.build in builds]
    seen.sort(key=lambda cell: (builds[cell.build].build_id, cell.hardware), reverse=True)
    on = builds.get(build or "")
    here = [known.cell(issue, on, class_) for class_ in known.hardware] if on else []
    here = [cell for cell in here if cell.measured_at is not None and cell.verdict is not Verdict.NOT_RUN]
    own = min(here, key=lambda cell: (cell.verdict not in FAILING, cell.hardware), default=None)
    if match.strength is not Strength.SURE:
        shown: Cell | None = None
    elif own is not None and own.verdict in FAILING:
        shown = own
    else:
        shown = max(seen, key=lambda cell: _prominence(builds[cell.build], cell), default=None)
    tried = tried_workarounds(issue, shown)
    return replace(
        match,
        history={
            class_: _history(issue, class_, known) for class_ in known.hardware if known.measured(issue.id, class_)
        },
        seen=tuple(map(seen_cell, seen)),
        here=seen_cell(own) if own else None,
        cures_on=seen_cell(shown) if shown else None,
        workarounds=tried if match.strength is Strength.SURE else (),
        to_do=_next_step(match, issue, build, known, shown, tried, elsewhere=elsewhere),
    )


def _history(issue: Issue, hardware: str, known: Known) -> Message:
    history = known.history(issue.id, hardware)
    return clauses([history.sentence, *doubts_about(issue, history)])


def _prominence(build: Build, cell: Cell) -> tuple[bool, bool, bool, object, bool]:
    """Rank a cell: one where a workaround helps comes before one where it helps in part, and that before one where none
    does; a release comes before another wheel, a newer build before an older one.
    """
    verdicts = {workaround.verdict for workaround in cell.workarounds.values()}
    helps = WorkaroundVerdict.EFFECTIVE in verdicts, WorkaroundVerdict.PARTIAL in verdicts
    return *helps, is_release(build), build.build_id, build.python == DEFAULT_PYTHON


_BEST_FIRST = (
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.UNNECESSARY,
    WorkaroundVerdict.UNVERIFIED,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.HARMFUL,
)


def tried_workarounds(issue: Issue, cell: Cell | None) -> tuple[TriedWorkaround, ...]:
    """The workarounds that apply to a cell with their findings, the working ones first; without a cell all of them,
    as not measured.
    """
    unknown = {
        workaround.id: WorkaroundFinding(WorkaroundVerdict.UNVERIFIED)
        for workaround in issue.workarounds
        if not workaround.is_decoy
    }
    tried = cell.workarounds if cell else unknown
    applicable = [
        (workaround, tried[workaround.id])
        for workaround in issue.workarounds
        if workaround.id in tried and tried[workaround.id].applies
    ]
    applicable.sort(key=lambda pair: _BEST_FIRST.index(pair[1].verdict))
    return tuple(
        TriedWorkaround(
            workaround.id,
            workaround.title,
            finding.verdict,
            finding.note or NOTHING,
            workaround.trade_off,
            workaround.body,
        )
        for workaround, finding in applicable
    )


def _next_step(
    match: Match,
    issue: Issue,
    build: str | None,
    known: Known,
    shown: Cell | None,
    tried: Sequence[TriedWorkaround],
    *,
    elsewhere: bool,
) -> Message:
    if match.strength is not Strength.SURE:
        return Message("make_sure")
    if shown is None:
        measure = Message("measure", issue=issue.id, build=Quoted(build or "all"))
        return Message("try_unmeasured") if elsewhere else measure
    verdict, title = (tried[0].verdict, tried[0].title) if tried else (None, "")
    release = _fixed_in(issue, shown, known)
    if verdict is WorkaroundVerdict.EFFECTIVE:
        step = "use_or_upgrade" if release else "use"
    elif release:
        step = "upgrade"
    else:
        step = "try_in_part" if verdict is WorkaroundVerdict.PARTIAL else "follow"
    return Message(step, build=shown.build, release=release, workaround=title)


def _fixed_in(issue: Issue, cell: Cell, known: Known) -> str:
    """The release from which on the issue passes on the cell's hardware; empty where it still fails."""
    spans = known.history(issue.id, cell.hardware).spans if cell.verdict in FAILING else ()
    return (spans[-1].good_after or "") if spans else ""
