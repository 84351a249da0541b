"""Several environments, one line for each, the worst first; and where to go from one of them. Apart from the others,
because what advises on an upgrade takes long to import.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from knowngood.ask.lookup.service import EnvironmentAnswer
from knowngood.cli.exit_codes import Exit
from knowngood.gate.renderers.common import one_line
from knowngood.gate.request import BadField
from knowngood.move.upgrade.ranking import advise
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.request import NO_PACKAGE, UpgradeRequest, read_upgrade, relevant_packages, start_name
from knowngood.store.knowledge.model import Knowledge, Recorded


@dataclass(frozen=True)
class NamedEnvironment:
    """The environment of one file; `answer` is None where it cannot be read, and `problem` says why. `go_to` is the
    release of the build to move to (empty: to none, or nobody can say).
    """

    file: str
    answer: EnvironmentAnswer | None
    problem: str = ""
    go_to: str = ""

    @property
    def code(self) -> Exit:
        if self.answer is None:
            return Exit.USAGE
        return Exit.OK if self.answer.ruling.build else Exit.INSUFFICIENT


def upgrade_request(answer: EnvironmentAnswer, knowledge: Knowledge, hardware: Sequence[str]) -> UpgradeRequest:
    """All that is stated, as an upgrade is asked for; `hardware` are the words for it."""
    resolved = answer.resolved
    packages = relevant_packages(resolved.packages, knowledge)
    return UpgradeRequest(
        start=start_name(resolved),
        python=resolved.python,
        platform=next(iter(resolved.platforms), ""),
        hardware=tuple(resolved.gpus or hardware),
        driver=resolved.driver,
        has=() if packages == (NO_PACKAGE,) and not resolved.is_whole else packages,
    )


def with_destination(named: NamedEnvironment, knowledge: Knowledge, hardware: Sequence[str]) -> NamedEnvironment:
    if named.answer is None or not named.answer.ruling.build:
        return named
    request = upgrade_request(named.answer, knowledge, hardware)
    try:
        advice = advise(read_upgrade(request, knowledge, Recorded()), knowledge.known)
    except BadField:
        return named
    is_go = advice.decision is UpgradeDecision.GO and advice.best
    return replace(named, go_to=advice.best.build.build_id.release) if is_go and advice.best else named


def worst_first(every: Sequence[NamedEnvironment]) -> list[NamedEnvironment]:
    """What cannot be read, then what does not load, then what is not tested; the others by what fails."""

    def order(named: NamedEnvironment) -> tuple[object, ...]:
        answer = named.answer
        if answer is None:
            return (0,)
        counts = answer.counts
        return (1, not answer.ruling.refusals, bool(answer.ruling.build), -counts.silent, -counts.failing, named.file)

    return sorted(every, key=order)


def several_text(every: Sequence[NamedEnvironment]) -> str:
    rows = [_row(named) for named in worst_first(every)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join([*lines, "", "More of one: knowngood env FILE"]) + "\n"


def _row(named: NamedEnvironment) -> tuple[str, ...]:
    answer = named.answer
    if answer is None:
        return (one_line(named.file), "", "", "", one_line(named.problem))
    resolved, counts = answer.resolved, answer.counts
    torch = (answer.ruling.build or resolved.torch).removeprefix("torch-").partition("+")[0] or "no torch"
    gpus = ", ".join(resolved.gpus)
    fails = f"{counts.failing} ✕ {counts.silent} ∆" if answer.ruling.build else "not tested"
    return (one_line(named.file), torch, gpus, fails, "; ".join(_to_say(named, answer)))


def _to_say(named: NamedEnvironment, answer: EnvironmentAnswer) -> Iterator[str]:
    broken = [fact.name for fact in answer.facts if fact.holds is False]
    if broken:
        yield f"{', '.join(map(one_line, broken))} {'does' if len(broken) == 1 else 'do'} not work here"
    if named.go_to:
        yield f"go to {named.go_to}"
