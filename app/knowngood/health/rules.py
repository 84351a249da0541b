"""Upstream mismatches: rows where upstream's word and the measurements drift apart.

Every remark is derived from cells and from what the issue's file says of upstream; none changes a verdict. A thread
that is closed is no fixed wheel, and one that is open may long be cured: its state is a claim like any other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import dropwhile

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, LinkKind, Status, variants_of
from knowngood.domain.message import Message, Quoted, aside, clauses
from knowngood.domain.verdicts.claims import ANSWERS, NO_CURE, Standing, doubts_about, hold, named
from knowngood.domain.verdicts.history import History, in_words
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    FAILING,
    HELPING,
    NOT_RUN,
    Cell,
    OfCell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
)
from knowngood.serialization.message_field import MessageField
from knowngood.web.urls import cell_address, issue_address


class MismatchKind(StrEnum):
    """The subject of a remark, in the order in which remarks of one issue are given."""

    CLOSED_BUT_FAILS = "closed_but_fails"
    OPEN_BUT_PASSES = "open_but_passes"
    CONTRADICTED = "contradicted"
    CURES_NOWHERE = "cures_nowhere"
    NO_LONGER_NEEDED = "no_longer_needed"
    NEVER_FAILED = "never_failed"


HEADINGS: Mapping[MismatchKind, str] = {
    MismatchKind.CLOSED_BUT_FAILS: "Closed upstream, and still failing here",
    MismatchKind.OPEN_BUT_PASSES: "Open upstream, and passing on the newest releases that were measured",
    MismatchKind.CONTRADICTED: "Claims that measurements contradict",
    MismatchKind.CURES_NOWHERE: "Workarounds that help with nothing that was measured",
    MismatchKind.NO_LONGER_NEEDED: "Workarounds that may be taken out again",
    MismatchKind.NEVER_FAILED: "Rows that never failed, and so are unproven",
}


@dataclass(frozen=True)
class Remark:
    """`hardware` is empty where it is about every class; `about` names the workarounds or the claim's source."""

    trouble: MismatchKind
    issue: str
    sentence: Message
    hardware: str
    about: str


def remarks_of(known: Known) -> tuple[Remark, ...]:
    """Each issue's remarks, in the order of ids."""
    return tuple(remark for id_ in sorted(known.issues) for remark in remarks_on(known.issues[id_], known))


def remarks_on(issue: Issue, known: Known) -> tuple[Remark, ...]:
    """All remarks on one issue, by what was measured on every hardware class."""
    by_class = {
        hardware: answered
        for hardware in known.hardware
        if (answered := [pair for pair in known.measured(issue.id, hardware) if pair[1].verdict in ANSWERS])
    }
    remarks: list[Remark] = []
    for hardware, answered in by_class.items():
        history = known.history(issue.id, hardware)
        if hardware in _own_classes(issue, by_class):
            remarks += _against_upstream(issue, hardware, history)
        remarks += _against_claims(issue, hardware, answered)
        remarks += _no_longer_needed(issue, hardware, history, answered)
    every = [pair for answered in by_class.values() for pair in answered]
    remarks += _cures_nowhere(issue, every)
    remarks += _decoys_that_help(issue, every)
    remarks += _never_failed(issue, every)
    order = list(MismatchKind)
    return tuple(sorted(remarks, key=lambda remark: (order.index(remark.trouble), remark.hardware, remark.about)))


def _own_classes(issue: Issue, measured: Collection[str]) -> Collection[str]:
    """The classes that are planned for an issue: one that is alike on every device is followed on the CPU alone."""
    on_cpu = [hardware for hardware in measured if hardware.startswith("cpu-")]
    return on_cpu if on_cpu and issue.requires.device is Device.ANY else measured


def _against_upstream(issue: Issue, hardware: str, history: History) -> Iterable[Remark]:
    """Say nothing of limitations: they are closed as such and stay."""
    thread = next((link for link in issue.links if link.kind is LinkKind.REPORT and link.state), None)
    if thread is None or issue.status is not Status.BUG or not history.measured:
        return
    seen = {"day": f"{thread.seen:%Y-%m-%d}"} if thread.seen else {}
    key = "upstream_seen_and_here" if seen else "upstream_and_here"
    held = Message(key, state=Message(f"state_{thread.state}"), said=history.sentence, **seen)
    sentence = clauses([held, *doubts_about(issue, history)])
    still_fails = bool(history.spans) and history.spans[-1].good_after is None
    if thread.state == "closed" and still_fails:
        yield Remark(MismatchKind.CLOSED_BUT_FAILS, issue.id, sentence, hardware, "")
    if thread.state == "open" and history.spans and not still_fails:
        yield Remark(MismatchKind.OPEN_BUT_PASSES, issue.id, sentence, hardware, "")


def _against_claims(issue: Issue, hardware: str, answered: Sequence[tuple[Build, Cell]]) -> Iterable[Remark]:
    """But for cures that are marked as decoys: of these it is known."""
    decoys = _decoys(issue)
    for claim in (claim for claim in issue.claims if claim.workaround not in decoys):
        held = hold(claim, answered)
        if held.standing is Standing.CONTRADICTED and held.sentence:
            key = "claim_and" if claim.says == "cure" else "claim_but"
            sentence = Message(key, quote=Quoted(claim.text), said=held.sentence)
            yield Remark(MismatchKind.CONTRADICTED, issue.id, sentence, hardware, claim.source)


def _no_longer_needed(
    issue: Issue, hardware: str, history: History, answered: Sequence[tuple[Build, Cell]]
) -> Iterable[Remark]:
    """Workarounds that a reader may take out again, from which release on, and what speaks against it."""
    last = history.spans[-1] if history.spans else None
    fix = last.fix_in_words if last else None
    if last is None or last.good_after is None or fix is None or any(cell.not_covered for _, cell in answered):
        return
    cures = tuple(sorted({name for _, cell in answered for name in _of(cell, HELPING)}))
    if cures:
        newer = dropwhile(lambda release: release.name != last.good_after, history.releases)
        silent = in_words([release for release in newer if release.fails is None])
        from_then = aside(Message("not_needed_from", release=last.good_after), silent)
        advice = Message("not_needed", first=from_then, said=fix, names=cures)
        sentence = clauses([advice, *doubts_about(issue, history)])
        yield Remark(MismatchKind.NO_LONGER_NEEDED, issue.id, sentence, hardware, ", ".join(cures))


def _cures_nowhere(issue: Issue, every: Sequence[tuple[Build, Cell]]) -> Iterable[Remark]:
    failing = [(build, cell) for build, cell in every if cell.verdict in FAILING]
    helping = {name for _, cell in failing for name in _of(cell, HELPING)}
    useless = sorted({name for _, cell in failing for name in _of(cell, NO_CURE)} - helping - _decoys(issue))
    for name in useless:
        tried = [build for build, cell in failing if name in _of(cell, NO_CURE)]
        sentence = Message("cures_nowhere", name=name, names=named(tried))
        yield Remark(MismatchKind.CURES_NOWHERE, issue.id, sentence, "", name)


def _decoys_that_help(issue: Issue, every: Sequence[tuple[Build, Cell]]) -> Iterable[Remark]:
    for name in sorted(_decoys(issue)):
        helped = [build for build, cell in every if cell.verdict in FAILING and name in _of(cell, HELPING)]
        if helped:
            sentence = Message("decoy_helps", name=name, names=named(helped))
            yield Remark(MismatchKind.CONTRADICTED, issue.id, sentence, "", name)


def _decoys(issue: Issue) -> set[str]:
    return {workaround.id for workaround in issue.workarounds if workaround.is_decoy}


def _never_failed(issue: Issue, every: Sequence[tuple[Build, Cell]]) -> Iterable[Remark]:
    if every and not any(cell.verdict in FAILING for _, cell in every):
        sentence = Message("never_failed", names=named([build for build, _ in every]))
        yield Remark(MismatchKind.NEVER_FAILED, issue.id, sentence, "", "")


def _of(cell: Cell, verdicts: Collection[WorkaroundVerdict]) -> set[str]:
    return {name for name, finding in cell.workarounds.items() if finding.verdict in verdicts}


# How much of the catalogue is measured, and what is still open: each row's pattern over the releases, workarounds
# without a verdict, cells without an answer.
#
# Only what can be measured is missing: a workaround that does not apply to a build is no gap.


DOUBTFUL = (Verdict.INCONCLUSIVE, Verdict.DIFFERENT_FAILURE)
UNMEASURED = (Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


@dataclass(frozen=True)
class Pattern:
    """One issue on one hardware class: a verdict for each build, in their order, and what they add up to.

    `measured` of the `applicable` ones have evidence, `conclusive` of these an answer. The history is of every build,
    also of those that have no verdict here.
    """

    issue: str
    pattern: tuple[Verdict, ...]
    applicable: int
    measured: int
    conclusive: int
    history: MessageField
    url: str


def patterns_of(issues: Sequence[Issue], builds: Sequence[Build], hardware: str, known: Known) -> tuple[Pattern, ...]:
    """Rows in the order of `issues`, without those that apply to none of `builds`."""
    rows = (
        _pattern(issue, [known.cell(issue, build, hardware) for build in builds], hardware, known) for issue in issues
    )
    return tuple(row for row in rows if row.applicable)


def _pattern(issue: Issue, cells: Sequence[Cell], hardware: str, known: Known) -> Pattern:
    measured = [cell.verdict for cell in cells if cell.basis is None and cell.verdict not in UNMEASURED]
    return Pattern(
        issue=issue.id,
        pattern=tuple(cell.verdict for cell in cells),
        applicable=sum(1 for cell in cells if cell.verdict is not Verdict.NOT_APPLICABLE),
        measured=len(measured),
        conclusive=sum(1 for verdict in measured if verdict in CONCLUSIVE),
        history=known.history(issue.id, hardware).sentence,
        url=issue_address(issue.id, hardware=hardware),
    )


@dataclass(frozen=True)
class Gap(OfCell):
    """A workaround nobody can judge yet on a cell that its issue affects, or not with every variant, and why not."""

    workaround: str
    note: MessageField
    url: str


def gaps_of(issue: Issue, cells: Iterable[Cell]) -> tuple[Gap, ...]:
    """In the order of `cells`, and of the issue's workarounds within one."""
    return tuple(
        Gap(*cell.key, workaround.id, finding.note or NOT_RUN, cell_address(*cell.key))
        for cell in cells
        if cell.verdict is Verdict.AFFECTED
        for workaround in issue.workarounds
        if (finding := cell.workarounds.get(workaround.id)) is not None and _is_open(issue, workaround.id, finding)
    )


def _is_open(issue: Issue, workaround: str, finding: WorkaroundFinding) -> bool:
    """Whether a measurement could still say something; what a row leaves out on purpose is no gap."""
    if finding.verdict is WorkaroundVerdict.PARTIAL:
        return any(variant.id in finding.untried for variant in variants_of(issue, workaround))
    return finding.verdict is WorkaroundVerdict.UNVERIFIED and finding.applies


def doubtful(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that were measured and do not say whether the issue is there."""
    return tuple(cell for cell in cells if cell.verdict in DOUBTFUL)
