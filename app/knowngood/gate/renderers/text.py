"""A ruling for a terminal and a log: plain text, no colours, the answer in the first line."""

from collections.abc import Iterable, Iterator, Sequence

from knowngood.gate.decision import MeasuredWorkaround, Reason, Ruling
from knowngood.gate.renderers.common import (
    EFFECTS,
    active_reasons,
    best_workaround,
    counts_in_words,
    fix_in_words,
    group_alike,
    headline,
    mark_of,
    one_line,
    other_workarounds,
    particulars,
    plain_passes,
    settled_reasons,
    snippet_parts,
    unanswered_issues,
    why_it_passes,
    wrapped,
)
from knowngood.gate.renderers.json import address

_INDENT = "    "


def answer_text(ruling: Ruling, base: str = "", *, where: str = "") -> str:
    """The answer, what it holds for, each reason that does something with its workaround, then what passes."""
    lines = [*wrapped(headline(ruling), later="  "), "", *_facts(ruling, where)]
    for group in group_alike(active_reasons(ruling)):
        lines += ["", *(_alike_lines(group) if len(group) > 1 else _reason_lines(group[0], base))]
    rest = [*_unanswered_lines(ruling), *_settled_lines(ruling), *_plain(ruling)]
    if rest:
        lines += ["", *rest]
    return "\n".join(lines) + "\n"


def _facts(ruling: Ruling, where: str) -> Iterator[str]:
    facts = [
        ("build", ruling.build or "not tested"),
        ("asked", ruling.asked),
        ("stated in", f"{where}:{ruling.line}" if where and ruling.line else ""),
        ("nearest", ", ".join(ruling.nearest) + ", not used" if ruling.nearest else ""),
        ("hardware", ", ".join(ruling.hardware)),
        ("watched", counts_in_words(ruling)),
        *(("note", note) for note in ruling.notes),
    ]
    yield from fact_lines(facts)


def fact_lines(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in facts:
        if text:
            yield from wrapped(one_line(text), f"{name:<10}", " " * 10)


def _reason_lines(reason: Reason, base: str) -> Iterator[str]:
    sign, _ = mark_of(reason)
    yield from wrapped(f"{sign:<3} {one_line(reason.issue)} · {one_line(reason.title)}", later=_INDENT)
    yield from _indented(" · ".join(particulars(reason)))
    yield from _indented(f"{EFFECTS[reason.effect]}: {one_line(reason.why)}")
    yield from help_lines(reason)
    if reason.upstream:
        yield f"{_INDENT}upstream: {one_line(reason.upstream)}"
    if reason.evidence_url:
        yield f"{_INDENT}evidence: {one_line(address(base, reason.evidence_url))}"


def help_lines(reason: Reason) -> Iterator[str]:
    """Lines on the release that fixes it, the workaround to show with its snippet, and the other workarounds."""
    if fix_in_words(reason):
        yield from _indented(fix_in_words(reason))
    if workaround := best_workaround(reason):
        yield from workaround_lines(workaround, f"workaround {one_line(workaround.how)}, ")
    if other_workarounds(reason):
        yield from _indented(
            f"workarounds: {other_workarounds(reason)}" if workaround is None else other_workarounds(reason)
        )


def _alike_lines(group: tuple[Reason, ...]) -> Iterator[str]:
    """Reasons without a measurement, an issue a line."""
    first = group[0]
    sign, word = mark_of(first)
    yield from wrapped(
        f"{sign:<3} {word} ({len(group)}), {EFFECTS[first.effect]}: {one_line(first.why)}", later=_INDENT
    )
    for reason in group:
        where = f" on {one_line(reason.hardware)}" if reason.hardware else ""
        yield from _indented(f"{one_line(reason.issue)}{where} · {one_line(reason.title)}")


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


SCREEN = 25
"""The lines that an answer has at most unless all of it is asked for."""

_SHORT = 2  # lines of a snippet


def snippet_in_short(snippet: str, otherwise: str) -> Iterator[str]:
    """The code of a snippet where it is short enough to stand in a list, else these words."""
    code: list[str] = next((lines for is_code, lines in snippet_parts(snippet) if is_code), [])
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


def _unanswered_lines(ruling: Ruling) -> list[str]:
    issues = unanswered_issues(ruling)
    return (
        wrapped(f"{'□':<3} watched, without an answer ({len(issues)}): {', '.join(issues)}", later=_INDENT)
        if issues
        else []
    )


def _settled_lines(ruling: Ruling) -> Iterator[str]:
    for reason in settled_reasons(ruling):
        sign, _ = mark_of(reason)
        where = f"{one_line(reason.issue)} on {one_line(reason.hardware)}"
        yield from wrapped(f"{sign:<3} {where} {why_it_passes(reason)}", later=_INDENT)


def _plain(ruling: Ruling) -> Iterator[str]:
    for mark, issues in plain_passes(ruling).items():
        text = f"{mark.word} ({len(issues)}): {', '.join(map(one_line, issues))}"
        yield from wrapped(f"{mark.sign:<3} {text}", later=_INDENT)
