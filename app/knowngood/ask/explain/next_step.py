"""The one thing to do after a match: every answer ends with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from knowngood.ask.explain.matcher import Match, Strength, measured_workarounds
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, WorkaroundVerdict


class Step(StrEnum):
    """The next step, as it is shown."""

    MAKE_SURE = "Paste the whole traceback with the output of python -m torch.utils.collect_env, to be sure."
    USE = "Use this workaround, measured to help on {build}: {workaround}."
    USE_OR_UPGRADE = "Upgrade to torch {release}, or use this workaround, measured to help on {build}: {workaround}."
    UPGRADE = "Upgrade to torch {release}, where it passes."
    TRY_IN_PART = "Try this workaround, which helps in part on {build}: {workaround}."
    FOLLOW = "Nothing that was measured helps: leave this path out, and follow the thread upstream."
    TRY_UNMEASURED = "Nothing is measured where you are: try what stands here, none of which was run there."
    MEASURE = "Measure it where you are: knowngood run --issues {issue} --builds {build}"


@dataclass(frozen=True)
class NextStep:
    step: Step
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        return self.step.format(**self.values)

    @property
    def command(self) -> str:
        """The command of the step, to be run in a shell; empty where the step is none of a shell's."""
        return _COMMANDS.get(self.step, "").format(**self.values)


_COLLECT = "python -m torch.utils.collect_env"
_COMMANDS = {
    Step.MAKE_SURE: _COLLECT,
    Step.MEASURE: "knowngood run --issues {issue} --builds {build}",
}


def next_step(match: Match, build: str, known: Known, *, elsewhere: bool = False) -> NextStep:
    """The step after a match with its advice for `build` (empty: none is known). `elsewhere` says that the text states
    a platform on which nothing is measured.
    """
    if match.strength is not Strength.SURE:
        return NextStep(Step.MAKE_SURE)
    if match.shown is None and elsewhere:
        return NextStep(Step.TRY_UNMEASURED)
    if match.shown is None:
        return NextStep(Step.MEASURE, {"issue": match.issue.id, "build": build or "all"})
    return _on(match, match.shown, known)


def _on(match: Match, cell: Cell, known: Known) -> NextStep:
    best = next(iter(measured_workarounds(match.issue, cell)), None)
    verdict = best[1].verdict if best else None
    release = _fixed_in(match, cell, known)
    values = {
        "build": cell.build,
        "release": release,
        "workaround": match.issue.workaround(best[0]).title if best else "",
    }
    if verdict is WorkaroundVerdict.EFFECTIVE:
        return NextStep(Step.USE_OR_UPGRADE if release else Step.USE, values)
    if release:
        return NextStep(Step.UPGRADE, values)
    return NextStep(Step.TRY_IN_PART if verdict is WorkaroundVerdict.PARTIAL else Step.FOLLOW, values)


def _fixed_in(match: Match, cell: Cell, known: Known) -> str:
    """The release from which on the issue passes on the cell's hardware; empty where it still fails."""
    spans = known.history(match.issue.id, cell.hardware).spans if cell.verdict in FAILING else ()
    return (spans[-1].good_after or "") if spans else ""
