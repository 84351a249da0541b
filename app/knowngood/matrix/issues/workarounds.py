"""The workarounds of an issue as measured on one cell, best first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, Issue, Workaround, arm_inapplicable, variants_of
from knowngood.domain.message import NOTHING, Message
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import usefulness
from knowngood.domain.verdicts.verdict import (
    FAILING,
    NOT_RUN,
    Cell,
    WorkaroundFinding,
    WorkaroundVerdict,
    inferred_from,
)
from knowngood.domain.verdicts.workaround_cost import Cost, Timed, costs_of
from knowngood.domain.vocabulary import WORKAROUNDS
from knowngood.web.html.markdown import markdown
from knowngood.web.request_context import RequestContext


@dataclass(frozen=True)
class WorkaroundView:
    """`rank` counts the ones that work from 1; 0 for the rest. `note` says why where it does not simply work.

    `variants` say with which it helps, with which it fails, and with which nobody knows; none where the issue has but
    one. `runs` is the least number of passes with one of them, `ground` the build on which they were made where the
    answer is inferred. `cost` is None where nothing comparable was measured, or nobody looked; `time` says what calls
    with it take beside calls without it, on one build, where that was measured.
    """

    id: str
    title: str
    body: Markup
    trade_off: str
    verdict: WorkaroundVerdict
    sign: str
    word: str
    note: Message | None
    rank: int
    variants: tuple[tuple[str, str, str], ...] = ()
    runs: int = 0
    ground: str = ""
    cost: Cost | None = None
    time: Message = NOTHING
    is_decoy: bool = False


def costs_on(issue: Issue, cell: Cell, timed: Iterable[Timed]) -> Mapping[str, Cost]:
    """The cost of each workaround on this cell, with the first variant that fails without it, else with the first."""
    failing = {variant.variant for variant in cell.variants if variant.verdict in FAILING}
    variants = sorted((variant.id for variant in variants_of(issue, BASELINE)), key=lambda id_: id_ not in failing)
    return costs_of(timed, variants)


def workarounds_of(
    issue: Issue, cell: Cell, known: Known, context: RequestContext, costs: Mapping[str, Cost] | None = None
) -> tuple[WorkaroundView, ...]:
    """Every workaround that can be tried on this build, with what was measured of it on this cell.

    The recommended one is the first.
    """
    took, build = costs or {}, known.builds[cell.build]
    pairs = [
        (workaround, finding)
        for workaround in issue.workarounds
        if (finding := _finding(issue, build, cell, workaround.id)).applies
    ]
    pairs.sort(key=lambda pair: usefulness(pair[1]))
    return tuple(
        WorkaroundView(
            id=workaround.id,
            title=context.in_language(workaround.title, workaround.title_zh),
            body=markdown(context.in_language(workaround.body, workaround.body_zh)),
            trade_off=context.in_language(workaround.trade_off, workaround.trade_off_zh),
            verdict=finding.verdict,
            sign=WORKAROUNDS[finding.verdict].label,
            word=context.say(WORKAROUNDS[finding.verdict].word),
            note=_note(finding),
            rank=place if finding.verdict is WorkaroundVerdict.EFFECTIVE else 0,
            variants=tuple(_variants(issue, workaround.id, finding, context)),
            runs=finding.runs,
            ground=finding.ground or (cell.basis.build if cell.basis and finding.runs else ""),
            cost=took.get(workaround.id),
            time=known.cost_in_words(issue.id, workaround.id),
            is_decoy=workaround.is_decoy,
        )
        for place, (workaround, finding) in enumerate(pairs, start=1)
    )


def _note(finding: WorkaroundFinding) -> Message | None:
    """The note of a finding. For one that helps in part the variants tell all, except on which build it was run."""
    if finding.verdict is not WorkaroundVerdict.PARTIAL:
        return finding.note
    return inferred_from(finding.ground) if finding.ground else None


VARIANT_WORDS = ("helps with", "fails with", "no answer with", "not tried with")


def _variants(
    issue: Issue, workaround: str, finding: WorkaroundFinding, context: RequestContext
) -> Iterator[tuple[str, str, str]]:
    """A few words, the names of the variants that they hold for, and why where these are left out on purpose."""
    if not issue.variants:
        return
    left_out = {
        variant.id: variant.why_not for variant in issue.variants if variant.arms and workaround not in variant.arms
    }
    untried = [id_ for id_ in finding.untried if id_ not in left_out]
    for words, named in zip(VARIANT_WORDS, (finding.helped, finding.failed, untried), strict=False):
        if named:
            yield context.say(words), ", ".join(named), ""
    for why in dict.fromkeys(left_out[id_] for id_ in finding.untried if id_ in left_out):
        alike = [id_ for id_ in finding.untried if left_out.get(id_) == why]
        yield context.say(VARIANT_WORDS[-1]), ", ".join(alike), why.rstrip(".")


def elsewhere_of(issue: Issue, build: Build, cell: Cell) -> tuple[tuple[Workaround, Message | None], ...]:
    """The workarounds that do not apply to this build, and why: they are named, not offered."""
    return tuple(
        (workaround, finding.note)
        for workaround in issue.workarounds
        if not (finding := _finding(issue, build, cell, workaround.id)).applies
    )


def _finding(issue: Issue, build: Build, cell: Cell, workaround: str) -> WorkaroundFinding:
    """The stored finding; for a cell that was not measured, whether there would be anything to try."""
    absent = arm_inapplicable(issue.arm(workaround), build)
    note = Message("does_not_apply", said=absent) if absent else NOT_RUN
    untried = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, note, applies=absent is None)
    return cell.workarounds.get(workaround, untried)
