"""A ruling for a terminal and a log: plain text, no colours, the answer in the first line."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from knowngood.cli.encoding import SCREEN
from knowngood.domain.grouping import gathered
from knowngood.domain.message import Message, english
from knowngood.domain.verdicts.history import listed
from knowngood.gate.decision import MeasuredWorkaround, Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import (
    EFFECTS,
    active_reasons,
    age_in_words,
    best_workaround,
    code_of,
    counts_in_words,
    fix_in_words,
    group_alike,
    headline,
    mark_of,
    named,
    one_line,
    other_workarounds,
    particulars,
    plain_passes,
    settled_reasons,
    sign_of,
    snippet_parts,
    unanswered_issues,
    why_it_passes,
    wrapped,
)
from knowngood.gate.renderers.json import address
from knowngood.serialization.marks import VerdictMark

_INDENT = "    "


def answer_text(ruling: Ruling, base: str = "", *, where: str = "", in_full: bool = False) -> str:
    """The answer; then each issue that does something with what to do, as many as a screen holds or all; then what
    passes, what the answer holds for, and what it assumes.
    """
    first = wrapped(headline(ruling))
    last = ["", *_passing(ruling, in_full=in_full), *_facts(ruling, where), *note_lines(ruling.notes)]
    groups = group_alike(active_reasons(ruling), by_issue=not in_full)
    blocks = [["", *_issue_lines(group, base, in_full=in_full, is_first=not at)] for at, group in enumerate(groups)]
    blocks += [list(_settled_lines(reason)) for reason in settled_reasons(ruling)]
    lines, shown = fitting(blocks, sys.maxsize if in_full else SCREEN - len(first) - len(last) - 2)
    more = ["", f"{len(blocks) - shown} more: --all"] if shown < len(blocks) else []
    return "\n".join([*first, *lines, *more, *last]) + "\n"


def _facts(ruling: Ruling, where: str) -> list[str]:
    near = f"nearest tested, not used: {', '.join(map(named, ruling.nearest))}" if ruling.nearest else ""
    place = f"{where}:{ruling.line}" if where and ruling.line else ""
    parts = (ruling.asked, place, ", ".join(map(named, ruling.hardware)), counts_in_words(ruling), near)
    return wrapped(" · ".join(one_line(part) for part in parts if part))


def note_lines(notes: Iterable[str]) -> Iterator[str]:
    """Notes on an answer as a whole, a sentence each; what it assumes comes last."""
    for note in map(one_line, notes):
        yield from wrapped(f"{note[:1].upper()}{note[1:]}.", later="  ")


def fact_lines(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in facts:
        if text:
            yield from wrapped(one_line(text), f"{name:<10}", " " * 10)


def _issue_lines(group: Sequence[Reason], base: str, *, in_full: bool, is_first: bool) -> Iterator[str]:
    """One issue, on all its hardware: what to do about it, then, of the first one at least, why; or several of which
    nothing was measured.
    """
    reason = group[0]
    ids = list(dict.fromkeys(one_line(reason.issue) for reason in group))
    classes = list(dict.fromkeys(named(reason.hardware) for reason in group))
    if len(ids) > 1:
        which = ", ".join(ids) if in_full else english(listed(ids))
        why = f"{mark_of(reason).word} ({len(ids)}), {EFFECTS[reason.effect]}: {one_line(reason.why)}"
        yield from wrapped(f"{sign_of(reason):<3} {why}: {which}", later=_INDENT)
        return
    marks = ["" if reason.effect is Effect.BLOCK else f", {EFFECTS[reason.effect]}", f"; {reason.caveat}"]
    marks = marks if reason.caveat else marks[:1]
    yield from wrapped(f"{sign_of(reason):<3} {one_line(reason.title)} ({ids[0]}){''.join(marks)}", later=_INDENT)
    helps = best_workaround(reason)
    if in_full:
        yield from help_lines(reason)
    elif helps:
        yield from snippet_in_short(helps.snippet, f"workaround: {helps.title}")
    record = (
        f"then record it: --applied {ids[0]}={one_line(helps.id)}" if helps and reason.effect is Effect.BLOCK else ""
    )
    to_do = (one_line(helps.how.removeprefix("that ")) if helps else "", fix_in_words(reason), record)
    if in_full or is_first or not helps:
        yield from _indented("; ".join(part for part in (to_do[1:2] if in_full else to_do) if part))
    also = [f"and on {', '.join(classes[1:])}"] if classes[1:] else []
    marks = [part for part in particulars(reason) if part not in classes] if in_full else [age_in_words(reason)]
    grounds = (f"{EFFECTS[reason.effect]}: {one_line(reason.why)}", classes[0], *marks, *also)
    if in_full or is_first:
        yield from _indented(" · ".join(part for part in grounds if part))
    if in_full and reason.upstream:
        yield f"{_INDENT}upstream: {one_line(reason.upstream)}"
    if in_full and base and reason.evidence_url:
        yield f"{_INDENT}evidence: {one_line(address(base, reason.evidence_url))}"


def help_lines(reason: Reason) -> Iterator[str]:
    """Lines on the workaround to show with its snippet, and the other workarounds."""
    if workaround := best_workaround(reason):
        yield from workaround_lines(workaround, f"workaround {one_line(workaround.how)}, ")
    if other_workarounds(reason):
        yield from _indented(
            f"workarounds: {other_workarounds(reason)}" if workaround is None else other_workarounds(reason)
        )


def _indented(text: str) -> list[str]:
    return wrapped(text, _INDENT, _INDENT + "  ")


def workaround_lines(workaround: MeasuredWorkaround, lead: str = "") -> Iterator[str]:
    """Lines on a workaround, with its snippet."""
    trade_off = f" ({one_line(workaround.trade_off)})" if workaround.trade_off else ""
    yield from _indented(f"{lead}{one_line(workaround.id)}: {one_line(workaround.title)}{trade_off}")
    for is_code, lines in snippet_parts(workaround.snippet):
        if is_code:
            yield from (f"{_INDENT * 2}{line}".rstrip() for line in lines)
        else:
            yield from wrapped(one_line(" ".join(lines)), _INDENT + "  ", _INDENT + "  ")


def by_class(sentences: Mapping[str, Message]) -> Iterator[str]:
    """A line for all hardware classes of which the same is said."""
    for said, alike in gathered((english(said), named(class_)) for class_, said in sentences.items()).items():
        yield from wrapped(one_line(f"{', '.join(alike)}: {said}"), later=_INDENT)


_SHORT = 2  # lines of a snippet


def snippet_in_short(snippet: str, otherwise: str) -> Iterator[str]:
    """The code of a snippet where it is short enough to stand in a list, else these words."""
    code = code_of(snippet)
    if 0 < len(code) <= _SHORT:
        yield from (f"{_INDENT * 2}{line}".rstrip() for line in code)
    else:
        yield from wrapped(one_line(otherwise), _INDENT * 2, _INDENT * 2)


def fitting(blocks: Iterable[Sequence[str]], room: int) -> tuple[list[str], int]:
    """The lines of as many blocks as so many lines hold, the first in any case; and how many blocks that are."""
    lines, shown = list[str](), 0
    for block in blocks:
        if shown and len(lines) + len(block) > room:
            break
        lines, shown = [*lines, *block], shown + 1
    return lines, shown


def _settled_lines(reason: Reason) -> list[str]:
    text = f"{mark_of(reason).sign:<3} {one_line(reason.title)} ({one_line(reason.issue)})"
    return wrapped(f"{text}: {named(reason.hardware)} {why_it_passes(reason)}", later=_INDENT)


def _passing(ruling: Ruling, *, in_full: bool) -> Iterator[str]:
    """Watched issues with nothing more to tell, by their mark."""
    unanswered = {VerdictMark("?", "watched, without an answer"): list(unanswered_issues(ruling))}
    for mark, issues in (unanswered if ruling.build is None else plain_passes(ruling)).items():
        ids = list(map(one_line, issues))
        which = ", ".join(ids) if in_full else english(listed(ids))
        if ids and (in_full or mark.sign in "✓?"):  # the others are counted below
            yield from wrapped(f"{mark.sign:<3} {mark.word} ({len(ids)}): {which}", later=_INDENT)
