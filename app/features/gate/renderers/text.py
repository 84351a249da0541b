"""A ruling for a terminal and a log: plain text, no colours, the answer in the first line."""

from collections.abc import Iterator
from textwrap import wrap

from knowngood.app.features.gate.decision import Cure, Reason, Ruling
from knowngood.app.features.gate.renderers.common import (
    EFFECTS,
    best_cure,
    counted,
    fixed,
    grouped,
    headline,
    mark_of,
    one_line,
    other_cures,
    particulars,
    pieces_of,
    plain_passes,
    settled,
    told,
    unanswered,
)
from knowngood.app.features.gate.renderers.json import address

_WIDTH = 96
_INDENT = "    "


def answer_text(ruling: Ruling, base: str = "") -> str:
    """The answer, what it holds for, each reason that does something with its cure, then what passes."""
    lines = [*_wrapped(headline(ruling), later="  "), "", *_facts(ruling)]
    for group in grouped(told(ruling)):
        lines += ["", *(_together(group) if len(group) > 1 else _told(group[0], base))]
    rest = [*_unanswered(ruling), *_settled(ruling), *_plain(ruling)]
    if rest:
        lines += ["", *rest]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    """Lines of at most 96 columns. Words are never broken: an address or an id stays in one piece."""
    return wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _facts(ruling: Ruling) -> Iterator[str]:
    facts = [
        ("build", one_line(ruling.build) if ruling.build else "not tested"),
        ("asked", one_line(ruling.asked)),
        ("nearest", ", ".join(map(one_line, ruling.nearest)) + ", not used" if ruling.nearest else ""),
        ("hardware", ", ".join(map(one_line, ruling.hardware))),
        ("watched", counted(ruling)),
        *(("note", one_line(note)) for note in ruling.notes),
    ]
    for name, text in facts:
        if text:
            yield from _wrapped(text, f"{name:<10}", " " * 10)


def _told(reason: Reason, base: str) -> Iterator[str]:
    sign, _ = mark_of(reason)
    yield from _wrapped(f"{sign:<3} {one_line(reason.issue)} · {one_line(reason.title)}", later=_INDENT)
    yield from _indented(" · ".join(particulars(reason)))
    yield from _indented(f"{EFFECTS[reason.effect]}: {one_line(reason.why)}")
    if fixed(reason):
        yield from _indented(fixed(reason))
    cure = best_cure(reason)
    if cure:
        yield from _cure(cure)
    if other_cures(reason):
        yield from _indented(f"workarounds: {other_cures(reason)}" if cure is None else other_cures(reason))
    if reason.upstream:
        yield f"{_INDENT}upstream: {one_line(reason.upstream)}"
    if reason.evidence:
        yield f"{_INDENT}evidence: {one_line(address(base, reason.evidence))}"


def _together(group: tuple[Reason, ...]) -> Iterator[str]:
    """What was not measured, an issue a line."""
    first = group[0]
    sign, word = mark_of(first)
    yield from _wrapped(
        f"{sign:<3} {word} ({len(group)}), {EFFECTS[first.effect]}: {one_line(first.why)}", later=_INDENT
    )
    for reason in group:
        where = f" on {one_line(reason.hardware)}" if reason.hardware else ""
        yield from _indented(f"{one_line(reason.issue)}{where} · {one_line(reason.title)}")


def _indented(text: str) -> list[str]:
    return _wrapped(text, _INDENT, _INDENT + "  ")


def _cure(cure: Cure) -> Iterator[str]:
    trade_off = f" ({one_line(cure.trade_off)})" if cure.trade_off else ""
    yield from _indented(f"workaround that works here, {one_line(cure.id)}: {one_line(cure.title)}{trade_off}")
    for piece in pieces_of(cure.snippet):
        if piece.is_code:
            yield from (f"{_INDENT * 2}{line}".rstrip() for line in piece.lines)
        else:
            yield from _wrapped(one_line(" ".join(piece.lines)), _INDENT + "  ", _INDENT + "  ")


def _unanswered(ruling: Ruling) -> list[str]:
    issues = unanswered(ruling)
    return (
        _wrapped(f"{'□':<3} watched, without an answer ({len(issues)}): {', '.join(issues)}", later=_INDENT)
        if issues
        else []
    )


def _settled(ruling: Ruling) -> Iterator[str]:
    for reason in settled(ruling):
        sign, _ = mark_of(reason)
        where = f"{one_line(reason.issue)} on {one_line(reason.hardware)}"
        yield from _wrapped(f"{sign:<3} {where} passes: {one_line(reason.why)}", later=_INDENT)


def _plain(ruling: Ruling) -> Iterator[str]:
    for mark, issues in plain_passes(ruling).items():
        text = f"{mark.word} ({len(issues)}): {', '.join(map(one_line, issues))}"
        yield from _wrapped(f"{mark.sign:<3} {text}", later=_INDENT)
