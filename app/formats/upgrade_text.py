"""An upgrade's answer for a terminal: plain text, the answer in the first line."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from app.domain.prospects import Candidate, Prospect
from app.domain.upgrade import Advice
from app.formats.answer_words import one_line
from app.formats.upgrade_words import (
    COLUMN_WORDS,
    PROSPECT_WORDS,
    about_missing,
    answer,
    figures,
    left_out_by_reason,
    requirements,
    situation,
)

_WIDTH = 96


def upgrade_text(advice: Advice) -> str:
    """The answer, what was asked, the candidates best first, then what is left of the first one."""
    lines = [*_wrapped(answer(advice)), "", *_wrapped(situation(advice))]
    lines += [line for note in advice.notes for line in _wrapped(f"note: {one_line(note)}", "  ")]
    told = [one for one in advice.candidates if one.answered]
    if told:
        lines += ["", *_table(told)]
    silent = [one.build.id for one in advice.candidates if not one.answered]
    if silent:
        lines += ["", *_wrapped(f"without any answer ({len(silent)}): {', '.join(silent)}", "  ")]
    if advice.left_out:
        lines += ["", f"left out ({len(advice.left_out)}):"]
        for reason, ids in left_out_by_reason(advice).items():
            lines += _wrapped(f"  {one_line(reason)}: {', '.join(ids)}", "    ")
    shown = advice.best or next(iter(told), None)
    if shown:
        lines += ["", *_particulars(shown)]
    elif advice.unmeasured.count:
        lines += ["", "to find out:", *(f"  {one}" for one in advice.unmeasured.commands(advice.start.id))]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, later: str = "") -> list[str]:
    return wrap(text, _WIDTH, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)


def _table(candidates: Sequence[Candidate]) -> Iterator[str]:
    width = max(len(one.build.id) for one in candidates)
    yield f"{'build':<{width}}" + "".join(f"{head:>9}" for head in COLUMN_WORDS)
    for one in candidates:
        cells = "".join(f"{cell:>9}" for cell in figures(one))
        yield f"{one.build.id:<{width}}{cells}  {one_line(str(one.why))}"


_PARTICULAR = (
    Prospect.NEWLY_BROKEN,
    Prospect.STILL_AFFECTED,
    Prospect.UNKNOWN,
    Prospect.NEEDS_WORKAROUND,
    Prospect.FIXED,
)


def _particulars(candidate: Candidate) -> Iterator[str]:
    yield f"{candidate.build.id}:"
    for prospect in _PARTICULAR:
        ids = [
            item.issue.id + (" (wrong numbers, no error)" if item.issue.silent else "")
            for item in candidate.of(prospect)
        ]
        if ids:
            yield from _wrapped(f"  {PROSPECT_WORDS[prospect]} ({len(ids)}): {', '.join(ids)}", "    ")
    yield f"  install: {'  '.join(requirements(candidate.build))}"
    if candidate.missing.count:
        yield f"  to find out ({about_missing(candidate)}):"
        yield from (f"    {one}" for one in candidate.missing.commands(candidate.build.id))
