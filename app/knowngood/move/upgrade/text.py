"""An upgrade's answer for a terminal: plain text, the answer in the first line."""

from collections.abc import Iterator, Sequence

from knowngood.gate.renderers.common import one_line, wrapped
from knowngood.move.compare.renderers import in_english, left_of, pair_lines
from knowngood.move.upgrade.candidates import Candidate, Tally
from knowngood.move.upgrade.ranking import UpgradeAdvice
from knowngood.move.upgrade.wording import (
    COLUMN_WORDS,
    MEASURED_WORDS,
    RATING_WORDS,
    REPORTED_WORDS,
    SECTION_WORDS,
    answer,
    figures,
    left_out_by_reason,
    measured,
    requirements,
    sections,
    situation,
    told_of,
)

_NAMED = 3
_INDENT = "      "

# Of these the number is enough: `compare` names them.
_COUNTED_ONLY = frozenset({Tally.NEEDS_WORKAROUND, Tally.PASSES, Tally.DOES_NOT_APPLY})


def upgrade_text(advice: UpgradeAdvice) -> str:
    """The answer, what was asked, what would tell more, the build one is on and the candidates, best first; then the
    issues of the one that is told of.
    """
    shown, unmeasured = told_of(advice), [one.build.id for one in advice.unmeasured]
    blocks = [
        wrapped(answer(advice)),
        [*wrapped(situation(advice)), *_notes(advice)],
        *([*wrapped(f"{one.what}:"), *(f"  {command}" for command in one.commands)] for one in advice.find_out),
        _table(advice.compared),
        wrapped(f"without any answer ({len(unmeasured)}): {_some(unmeasured)}", later="  ") if unmeasured else (),
        _left_out(advice),
        _particulars(advice, shown) if shown else (),
    ]
    texts = ("\n".join(block) for block in blocks)
    return "\n\n".join(text for text in texts if text) + "\n"


def _notes(advice: UpgradeAdvice) -> Iterator[str]:
    return (line for note in advice.notes for line in wrapped(f"note: {one_line(note)}", later="  "))


def _left_out(advice: UpgradeAdvice) -> Iterator[str]:
    if advice.left_out:
        yield f"left out ({len(advice.left_out)}):"
    for reason, ids in left_out_by_reason(advice).items():
        yield from wrapped(f"  {one_line(reason)} ({len(ids)}): {_some(ids)}", later="    ")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")


def _table(candidates: Sequence[Candidate]) -> Iterator[str]:
    width = max(len(one.build.id) for one in candidates)
    heads = [*COLUMN_WORDS.values(), MEASURED_WORDS[0], REPORTED_WORDS]
    rows = [
        [*figures(one, untried="{n}?", eased="{n}'"), str(measured(one)), str(one.age.reported) if one.age else "?"]
        for one in candidates
    ]
    widths = [max(len(row[at]) for row in (heads, *rows)) + 2 for at in range(len(heads))]
    yield f"{'build':<{width}}" + "".join(f"{head:>{wide}}" for head, wide in zip(heads, widths, strict=True))
    for one, row in zip(candidates, rows, strict=True):
        cells = "".join(f"{cell:>{wide}}" for cell, wide in zip(row, widths, strict=True))
        yield f"{one.build.id:<{width}}{cells}  {RATING_WORDS[one.rating]}"
    if any(one.counts[Tally.LOST_WITH_WORKAROUND] for one in candidates):
        yield "' has a workaround that was measured to help there"
    if any(one.counts[Tally.UNTRIED] for one in candidates):
        yield "? workaround not tried there"


def _particulars(advice: UpgradeAdvice, candidate: Candidate) -> Iterator[str]:
    yield from wrapped(f"{candidate.build.id}: {RATING_WORDS[candidate.rating]}; {candidate.why}", later="  ")
    if candidate is advice.best:
        yield f"  install: {'  '.join(requirements(candidate.build, advice.constraints.packages))}"
    for tally, items in sections(candidate).items():
        yield f"{SECTION_WORDS[tally]} ({len(items)})"
        for item in items:
            left = list(in_english(left_of(item)))
            works = [f"workaround {item.workarounds[0]} works there ({item.helps.rests_on})"] if item.helps else []
            if left or tally not in _COUNTED_ONLY:
                yield from pair_lines(item)
                left = works + left
            for said in left:
                yield from wrapped(one_line(said), _INDENT, _INDENT)
    hardware = f" --hardware {advice.hardware[0]}" if len(advice.hardware) == 1 else ""
    yield f"All of them: knowngood compare {advice.start.id} {candidate.build.id}{hardware}"
    if candidate.missing.count:
        yield from wrapped(f"To find out the rest (about {candidate.missing.minutes} min):")
        yield from (f"  {one}" for one in candidate.missing.commands)
