"""The one thing to do after a match: every answer ends with it."""

from collections.abc import Mapping

from knowngood.ask.explain.matcher import Match, Strength, measured_workarounds
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, WorkaroundVerdict
from knowngood.move.upgrade.candidates import Message

_STEP_WORDS: Mapping[str, str] = {
    "make_sure": "Paste the whole traceback with the output of python -m torch.utils.collect_env, to be sure.",
    "use": "Use this workaround, measured to help on {build}: {workaround}.",
    "use_or_upgrade": (
        "Upgrade to torch {release}, or use this workaround, measured to help on {build}: {workaround}."
    ),
    "upgrade": "Upgrade to torch {release}, where it passes.",
    "try_in_part": "Try this workaround, which helps in part on {build}: {workaround}.",
    "follow": "Nothing that was measured helps: leave this path out, and follow the thread upstream.",
    "try_unmeasured": "Nothing is measured where you are: try what stands here, none of which was run there.",
    "measure": "Measure it where you are: knowngood run --issues {issue} --builds {build}",
}
_COMMANDS = {
    _STEP_WORDS["make_sure"]: "python -m torch.utils.collect_env",
    _STEP_WORDS["measure"]: "knowngood run --issues {issue} --builds {build}",
}


def command_of(step: Message) -> str:
    """The command of a step, to be run in a shell; empty where the step is none of a shell's."""
    return _COMMANDS.get(step.words, "").format(**step.values)


def next_step(match: Match, build: str, known: Known, *, elsewhere: bool = False) -> Message:
    """The step after a match with its advice for `build` (empty: none is known). `elsewhere` says that the text states
    a platform on which nothing is measured.
    """
    if match.strength is not Strength.SURE:
        return Message(_STEP_WORDS["make_sure"])
    if match.shown is not None:
        return _on(match, match.shown, known)
    step = "try_unmeasured" if elsewhere else "measure"
    return Message(_STEP_WORDS[step], issue=match.issue.id, build=build or "all")


def _on(match: Match, cell: Cell, known: Known) -> Message:
    best = next(iter(measured_workarounds(match.issue, cell)), None)
    verdict = best[1].verdict if best else None
    release = _fixed_in(match, cell, known)
    if verdict is WorkaroundVerdict.EFFECTIVE:
        step = "use_or_upgrade" if release else "use"
    elif release:
        step = "upgrade"
    else:
        step = "try_in_part" if verdict is WorkaroundVerdict.PARTIAL else "follow"
    workaround = match.issue.workaround(best[0]).title if best else ""
    return Message(_STEP_WORDS[step], build=cell.build, release=release, workaround=workaround)


def _fixed_in(match: Match, cell: Cell, known: Known) -> str:
    """The release from which on the issue passes on the cell's hardware; empty where it still fails."""
    spans = known.history(match.issue.id, cell.hardware).spans if cell.verdict in FAILING else ()
    return (spans[-1].good_after or "") if spans else ""
