"""A ruling for GitHub Actions: annotations as workflow commands on standard output, and a step summary in Markdown.

GitHub shows ten annotations of a kind for each step and drops the others without a word, so ten are written and the
rest is counted. Escapes are those of actions/toolkit (packages/core/src/command.ts): `%`, CR and LF everywhere, `:` and
`,` in properties too.
"""

from collections.abc import Iterator, Mapping

from knowngood.cli.encoding import defused
from knowngood.gate.decision import Decision, Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import (
    DECISIONS,
    EFFECTS,
    active_reasons,
    best_workaround,
    build_page,
    cure_in_words,
    fix_in_words,
    headline,
    is_explained,
    named,
    one_line,
    particulars,
    snippet_parts,
)
from knowngood.gate.renderers.json import address
from knowngood.gate.renderers.markdown import answer_markdown

SHOWN = 10
SUMMARY_LIMIT_BYTES = 1 << 20
"""GitHub refuses a longer summary whole."""

_LEVELS = {Effect.BLOCK: "error", Effect.INSUFFICIENT: "error", Effect.WARN: "warning", Effect.PASS: "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def answer_github(ruling: Ruling, base: str = "", *, where: str = "", advisory: bool = False) -> str:
    """The answer as one plain line, then a command for each of the ten worst reasons.

    `where` is the environment's file, relative to the repository (empty: none); they stand at its line that states
    torch. What refuses is an error, and only a warning where the gate is `advisory`. Runners obey `##[..]` inside a
    line too, so the plain line holds none.
    """
    reasons = active_reasons(ruling)
    lines = [defused(headline(ruling))]
    place = {"file": where, "line": str(ruling.line or "") if where else ""}
    lines += [_annotation(reason, base, place, advisory=advisory) for reason in reasons[:SHOWN]]
    if len(reasons) > SHOWN:
        where = build_page(ruling, base) or "the JSON form tells them all"
        lines.append(_command("notice", f"And {len(reasons) - SHOWN} more: {where}", title="Known Good"))
    if not reasons or not is_explained(ruling, reasons):
        lines.append(_answer(ruling, place, advisory=advisory))
    return "\n".join(lines) + "\n"


def github_summary(ruling: Ruling, base: str = "") -> str:
    """Markdown for the file that GITHUB_STEP_SUMMARY names: ten reasons, fewer where ten are too long for it."""
    texts = (answer_markdown(ruling, base, shown=shown) for shown in (SHOWN, 1, 0))
    fits = (text for text in texts if len(text.encode()) < SUMMARY_LIMIT_BYTES)
    return next(fits, headline(ruling)[:1000] + "\n")


def _answer(ruling: Ruling, place: Mapping[str, str], *, advisory: bool) -> str:
    level = "notice" if ruling.decision is Decision.PASS else "warning" if advisory else "error"
    message = "\n".join([one_line(ruling.why), *map(one_line, ruling.notes)])
    return _command(level, message, title=f"Known Good: {DECISIONS[ruling.decision]}", **place)


def _annotation(reason: Reason, base: str, place: Mapping[str, str], *, advisory: bool) -> str:
    level = _LEVELS[reason.effect]
    return _command(
        "warning" if advisory and level == "error" else level,
        "\n".join(_message(reason, base)),
        title=f"{one_line(reason.issue)} {EFFECTS[reason.effect]} on {named(reason.build)}",
        **place,
    )


def _message(reason: Reason, base: str) -> Iterator[str]:
    cure, fix = best_workaround(reason), one_line(fix_in_words(reason))
    snippet = [f"  {line}" for _, lines in snippet_parts(cure.snippet) for line in lines] if cure else []
    parts = (
        [one_line(reason.why), f"{one_line(reason.title)} ({', '.join(particulars(reason))})"],
        [fix] if fix else [],
        [f"Workaround {cure_in_words(cure)}", *snippet] if cure else [],
        [f"Upstream: {one_line(reason.upstream)}"] if reason.upstream else [],
        [f"Evidence: {one_line(address(base, reason.evidence_url))}"] if base and reason.evidence_url else [],
    )
    return (line for lines in parts for line in lines)


def _command(level: str, message: str, **properties: str) -> str:
    told_ = ",".join(f"{name}={one_line(text).translate(_PROPERTY)}" for name, text in properties.items() if text)
    return f"::{level} {told_}::{message.translate(_DATA)}"
