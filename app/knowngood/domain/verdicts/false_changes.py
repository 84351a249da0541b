"""How far this project's own answers can be trusted: the same cell, measured twice.

An A/A pass asks one build the same thing again on the same machine, where nothing changed but the hour. No attempt is
marked as part of a pass: whatever was measured more than once says something. Of the attempts of one (cell, variant)
with the same binding, machine and lock, the one with the lowest ordinal is the first pass (of a row of amounts, where
one attempt says nothing, the two lowest) and all others together are the later one; infrastructure trouble, which is
asked again anyway, belongs to neither. A *false change* is a pair whose passes, each judged by itself as if there were
no other, give different verdicts.

The rate is rather too high than too low. A first pass is one attempt, a later one may be nine; and cells are repeated
where a verdict changes along the releases or is mixed (`run --confirm`), which `recheck` makes up for by chance.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import BASELINE, CONTROL, Issue
from knowngood.domain.message import Message
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    INFRASTRUCTURE,
    Cell,
    CellKey,
    Judged,
    OfCell,
    Verdict,
    derive_cell,
    judge_variant,
)


@dataclass(frozen=True)
class Trial(OfCell):
    """An attempt that counts, of a control or a baseline, with what it was bound to and where it ran."""

    binding: str
    lock: str
    ordinal: int
    judged: Judged


@dataclass(frozen=True)
class RepeatedPair(OfCell):
    """One variant of one cell, measured twice on one machine. The ids are of the attempts that stand for each pass.

    `times` counts the attempts of the later pass.
    """

    variant: str
    first: Verdict
    later: Verdict
    first_attempt: str
    later_attempt: str
    times: int

    @property
    def is_false_change(self) -> bool:
        return self.first is not self.later


def pairs_of(issues: Mapping[str, Issue], trials: Iterable[Trial]) -> tuple[RepeatedPair, ...]:
    """Every (cell, variant) that was measured twice with nothing changed, in the order of cells.

    Pairs without an answer in either pass are left out. A control that ran once counts for both passes, because the
    planner repeats baselines alone.
    """
    return tuple(
        pair
        for (issue, *_), of_cell in _by_cell(issues, trials)
        for of_place in grouped(of_cell, lambda trial: (trial.judged.machine, trial.lock)).values()
        for pair in _pairs(issues[issue], of_place)
    )


def _by_cell(issues: Collection[str], trials: Iterable[Trial]) -> Iterable[tuple[CellKey, Sequence[Trial]]]:
    counted = (trial for trial in trials if trial.issue in issues and trial.judged.outcome not in INFRASTRUCTURE)
    return sorted(grouped(counted, lambda trial: trial.key).items())


def _pairs(issue: Issue, trials: Sequence[Trial]) -> Iterable[RepeatedPair]:
    """Yield the pairs of one cell, one machine and one lock."""
    least = issue.agreeing
    repeated = [
        (variant, group) for (variant, _), group in _of_arm(trials, BASELINE).items() if len(group) >= 2 * least
    ]
    if not repeated:
        return
    controls = [_passes(group) for group in _of_arm(trials, CONTROL).values()]
    before = [trial.judged for first, _ in controls for trial in first]
    after = [trial.judged for first, later in controls for trial in later or first]
    for variant, group in repeated:
        first, later = _passes(group, least)
        verdicts = (_verdict(issue, variant, first, before), _verdict(issue, variant, later, after))
        if CONCLUSIVE.isdisjoint(verdicts):
            continue
        against = next((trial for trial in later if trial.judged.outcome is not first[0].judged.outcome), later[-1])
        yield RepeatedPair(
            *group[0].key, variant, *verdicts, first[0].judged.attempt, against.judged.attempt, len(later)
        )


def _of_arm(trials: Iterable[Trial], arm: str) -> dict[tuple[str, str], list[Trial]]:
    """The trials of one arm, by variant and binding."""
    return grouped(
        (trial for trial in trials if trial.judged.arm == arm), lambda trial: (trial.judged.variant, trial.binding)
    )


def _passes(trials: Sequence[Trial], least: int = 1) -> tuple[Sequence[Trial], Sequence[Trial]]:
    in_order = sorted(trials, key=lambda trial: (trial.ordinal, trial.judged.measured_at, trial.judged.attempt))
    return in_order[:least], in_order[least:]


def _verdict(issue: Issue, variant: str, baseline: Sequence[Trial], control: Sequence[Judged]) -> Verdict:
    return judge_variant(issue, variant, [trial.judged for trial in baseline], control).verdict


@dataclass(frozen=True)
class MachineComparison(OfCell):
    """One variant of one cell as several machines of its class answer it: by machine (digest), its verdict."""

    variant: str
    verdicts: Mapping[str, Verdict]

    @property
    def answers(self) -> tuple[Verdict, ...]:
        return tuple(dict.fromkeys(self.verdicts.values()))

    @property
    def varies(self) -> bool:
        """Machines disagree, and each agrees with itself; what is flaky on one machine is flaky, no more."""
        return len(self.answers) > 1 and Verdict.FLAKY not in self.verdicts.values()


def compared_machines(issues: Mapping[str, Issue], trials: Iterable[Trial]) -> tuple[MachineComparison, ...]:
    """Every (cell, variant) with an answer of more than one machine, each machine by its own attempts alone."""
    comparisons = []
    for (issue, build, hardware), of_cell in _by_cell(issues, trials):
        by_machine = grouped(of_cell, lambda trial: trial.judged.machine)
        if len(by_machine) == 1:
            continue
        answers: dict[str, dict[str, Verdict]] = defaultdict(dict)
        for machine, own in by_machine.items():
            control = [trial.judged for trial in own if trial.judged.arm == CONTROL]
            for (variant, _), group in _of_arm(own, BASELINE).items():
                verdict = _verdict(issues[issue], variant, group, control)
                if verdict in CONCLUSIVE:
                    answers[variant][machine] = verdict
        comparisons += [
            MachineComparison(issue, build, hardware, variant, verdicts)
            for variant, verdicts in answers.items()
            if len(verdicts) > 1
        ]
    return tuple(comparisons)


@dataclass(frozen=True)
class AttemptTime:
    """The time of one attempt, in seconds: its whole process, and `own_s` of it between `import torch` and the end.

    `is_told` is False where the process could not report where its time went: it died, hung, or never had torch.
    """

    wall_s: float
    own_s: float
    is_told: bool


@dataclass(frozen=True)
class TimeSpent:
    """Where wall time went, in seconds (three digits), over `attempts`. Starting is Python's start, `import torch` and
    the exit.
    """

    attempts: int
    starting_s: float
    arms_s: float
    untold: int
    untold_s: float

    @property
    def total_s(self) -> float:
        return self.starting_s + self.arms_s + self.untold_s


def spent(took: Iterable[AttemptTime]) -> TimeSpent:
    took = tuple(took)
    with_times = [attempt for attempt in took if attempt.is_told]
    untold = [attempt for attempt in took if not attempt.is_told]
    return TimeSpent(
        attempts=len(took),
        starting_s=round(sum(max(0.0, attempt.wall_s - attempt.own_s) for attempt in with_times), 3),
        arms_s=round(sum(min(attempt.wall_s, attempt.own_s) for attempt in with_times), 3),
        untold=len(untold),
        untold_s=round(sum(attempt.wall_s for attempt in untold), 3),
    )


@dataclass(frozen=True)
class ProvisioningTime:
    """Seconds that `environments` took to be ready, beside the processes of the `attempts` that then ran in them."""

    environments: int
    seconds: float
    attempts: int
    processes_s: float


def infrastructure_rate(outcomes: Mapping[Outcome, int]) -> Rate:
    """How many of the attempts that count ended in trouble of ours: host, network, harness."""
    return Rate(sum(n for outcome, n in outcomes.items() if outcome in INFRASTRUCTURE), sum(outcomes.values()))


class Again(StrEnum):
    """The result of asking a cell once more."""

    STAYED = "stayed"
    CHANGED = "changed"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True)
class Rechecked(OfCell):
    """A cell before and as its new attempts alone tell it; `reason` and `evidence` are of the latter."""

    before: Verdict
    after: Verdict
    again: Again
    reason: Message
    evidence: str


def recheck(issue: Issue, build: Build, before: Cell, new: Sequence[Judged], *, planned: int) -> Rechecked:
    """Compare the `new` attempts alone with what was known; `planned` is how many were planned.

    Infrastructure trouble is no change: a cell whose new attempts are incomplete, or ended in infrastructure, and which
    therefore has no answer, counts as not asked.
    """
    after = derive_cell(issue, build, before.hardware, new)
    is_whole = len(new) >= planned and not any(attempt.outcome in INFRASTRUCTURE for attempt in new)
    again = Again.STAYED if after.verdict is before.verdict else Again.CHANGED
    if after.verdict not in CONCLUSIVE and not is_whole:
        again = Again.NO_ANSWER
    return Rechecked(
        issue.id, build.id, before.hardware, before.verdict, after.verdict, again, after.reason, after.evidence
    )
