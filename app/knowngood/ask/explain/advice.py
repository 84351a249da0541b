"""The advice on a match: its cells, its workarounds on a reader's build, and the one thing to do."""

from collections.abc import Sequence
from dataclasses import replace

from knowngood.ask.explain.answer import Match, Strength, TriedWorkaround, seen_cell
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import NOTHING, Message, clauses
from knowngood.domain.verdicts.claims import doubts_about
from knowngood.domain.verdicts.history import FAILING, is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict

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
        return Message("try_unmeasured") if elsewhere else Message("measure", issue=issue.id, build=build or "all")
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
