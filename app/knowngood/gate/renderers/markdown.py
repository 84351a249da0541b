"""A ruling as Markdown: for a comment, a merge request, GitHub's step summary.

Free text is escaped so that it can neither leave its table cell nor become markup, a mention or a reference. A snippet
is Markdown by its author's hand: it stands inside a block quote, which closes whatever is left open in it.
"""

import re
from collections.abc import Iterator, Sequence

from knowngood.gate.decision import MeasuredWorkaround, Reason, Ruling
from knowngood.gate.renderers.common import (
    DECISIONS,
    EFFECTS,
    active_reasons,
    age_in_words,
    all_lines,
    best_workaround,
    build_page,
    counts_in_words,
    fix_in_words,
    group_alike,
    mark_of,
    named,
    one_line,
    other_workarounds,
    plain_passes,
    release_of,
    settled_reasons,
    unanswered_issues,
    upstream_name,
    why_it_passes,
)
from knowngood.gate.renderers.json import address

# Character references where an escaped character could still be taken for syntax by some parser of tables.
_ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "\\": "&#92;",
        "`": "&#96;",
        "|": "&#124;",
        **{mark: f"\\{mark}" for mark in "*_[]~$"},
    }
)
# GitHub and GitLab take `@torch` for somebody to call and `#123` for an issue of their own repository. A space of no
# width between sign and word keeps them from it.
_CALLS = re.compile(r"([@#!])(?=\w)")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'*+,;=%\[\]-]+\Z")


def answer_markdown(ruling: Ruling, base: str = "", *, shown: int | None = None) -> str:
    """The answer first, then a table of the reasons that do something, then each of them with its workaround.

    `shown` bounds how many are shown (None: all); the rest is counted and linked.
    """
    reasons = active_reasons(ruling)
    first = reasons[:shown]
    blocks = [
        f"**{DECISIONS[ruling.decision]}:** {escaped(ruling.why)}",
        " · ".join(_facts(ruling)),
        "\n".join(f"- Note: {escaped(note)}" for note in ruling.notes),
        _table(first, base),
        _rest(ruling, len(reasons) - len(first), base),
        *(_alike_block(group) if len(group) > 1 else _reason_block(group[0]) for group in group_alike(first)),
        "\n".join([*_unanswered_lines(ruling), *_settled_lines(ruling, shown)]),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escaped(text: str) -> str:
    """One line of text that means itself anywhere in a line of Markdown but at its beginning."""
    return _CALLS.sub("\\1\u200b", one_line(text)).translate(_ESCAPES)


def quoted(snippet: str) -> str:
    """A snippet as a block quote, its own Markdown at work inside and nowhere else."""
    return "\n".join(f"> {line}".rstrip() for line in all_lines(snippet))


def _facts(ruling: Ruling) -> Iterator[str]:
    nearest = ", ".join(escaped(named(build)) for build in ruling.nearest)
    parts = (
        f"build **{escaped(named(ruling.build))}**" if ruling.build else "build **not tested**",
        f"asked: {escaped(ruling.asked)}" if ruling.asked else "",
        f"nearest, not used: {nearest}" if nearest else "",
        ", ".join(escaped(named(class_)) for class_ in ruling.hardware),
        counts_in_words(ruling),
    )
    return filter(None, parts)


def _table(reasons: Sequence[Reason], base: str) -> str:
    if not reasons:
        return ""
    head = ["| | issue | on | found | first fixed in |", "| --- | --- | --- | --- | --- |"]
    return "\n".join(head + [f"| {' | '.join(_row(reason, base))} |" for reason in reasons])


def _row(reason: Reason, base: str) -> tuple[str, ...]:
    sign, word = mark_of(reason)
    verdict = ", ".join(part for part in (word, age_in_words(reason)) if part)
    evidence = address(base, reason.evidence_url or "")
    title = f"{link(reason.issue, evidence)} {escaped(reason.title)}"
    silent = " (∆ wrong numbers, no error)" if reason.silent else ""
    return (
        f"{escaped(sign)} {EFFECTS[reason.effect]}",
        f"{title}{silent}",
        escaped(named(reason.hardware)),
        escaped(verdict),
        escaped(release_of(reason.first_fixed)) or "-",
    )


def link(text: str, target: str) -> str:
    """A link where the target is a full address; a path leads nowhere on the page of somebody else."""
    return f"[{escaped(text)}](<{target}>)" if _ADDRESS.match(target) else escaped(text)


def _rest(ruling: Ruling, count: int, base: str) -> str:
    if not count:
        return ""
    page = build_page(ruling, base)
    return f"And {count} more" + (f": [all of this build](<{page}>)." if page else "; `--format json` tells them all.")


def _reason_block(reason: Reason) -> str:
    fix, others, workaround = fix_in_words(reason), other_workarounds(reason), best_workaround(reason)
    blocks = (
        f"**{escaped(reason.issue)}** {EFFECTS[reason.effect]}: {escaped(reason.why)}",
        f"Caution: {escaped(reason.caveat)}." if reason.caveat else "",
        f"Upstream: {link(upstream_name(reason), reason.upstream)}" if reason.upstream else "",
        f"Upgrade: {escaped(fix)}." if fix else "",
        *(_workaround_blocks(workaround) if workaround else ()),
        f"Workarounds, measured: {escaped(others)}." if others else "",
    )
    return "\n\n".join(filter(None, blocks))


def _workaround_blocks(workaround: MeasuredWorkaround) -> tuple[str, str]:
    how, trade_off = escaped(workaround.how), f" ({escaped(workaround.trade_off)})" if workaround.trade_off else ""
    title = f"Workaround {how}, **{escaped(workaround.id)}**: {escaped(workaround.title)}{trade_off}"
    return title, quoted(workaround.snippet)


def _alike_block(group: Sequence[Reason]) -> str:
    first = group[0]
    issues = ", ".join(dict.fromkeys(escaped(reason.issue) for reason in group))
    return f"{escaped(mark_of(first)[1])}, {EFFECTS[first.effect]}: {escaped(first.why)}: {issues}"


def _unanswered_lines(ruling: Ruling) -> Iterator[str]:
    issues = unanswered_issues(ruling)
    if issues:
        yield f"- watched, without an answer ({len(issues)}): {', '.join(map(escaped, issues))}"


def _settled_lines(ruling: Ruling, shown: int | None) -> Iterator[str]:
    for reason in settled_reasons(ruling)[:shown]:
        where = escaped(named(reason.hardware))
        yield f"- **{escaped(reason.issue)}** on {where} {escaped(why_it_passes(reason))}"
    for mark, issues in plain_passes(ruling).items():
        yield f"- {escaped(mark.word)} ({len(issues)}): {', '.join(map(escaped, issues))}"
