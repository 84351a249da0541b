"""An upgrade as Markdown, ready for a pull request: what to change, what that fixes, what to add and to take out.

Free text is escaped as in the gate's Markdown. Snippets are Markdown by their author's hand and stand in block quotes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import quote, urlencode

from app.domain.issue import LinkKind
from app.domain.prospects import Candidate, Item, Prospect, percent
from app.domain.upgrade import Advice
from app.domain.verdict import Cell
from app.formats.answer_markdown import escaped, quoted
from app.formats.decision import address
from app.formats.upgrade_words import (
    PROSPECT_WORDS,
    Change,
    Step,
    about_missing,
    answer,
    changes,
    index_of,
    requirements,
    steps,
)

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'*+,;=%\[\]-]+\Z")


def migration_note(advice: Advice, candidate: Candidate, *, base: str = "", page: str = "", now: datetime) -> str:
    """The note for moving to `candidate`, recommended or not. `page` is the path of the page that says the same.

    Without `base`, the server's address, links lead to the reports alone.
    """
    blocks = [
        f"## Upgrade torch: {escaped(advice.start.id)} to {escaped(candidate.build.id)}",
        _first_line(advice, candidate),
        "\n".join(f"- Note: {escaped(note)}" for note in advice.notes),
        *_change(advice, candidate),
        *_issues(candidate, base),
        *_workarounds(candidate),
        *_open(candidate),
        _foot(advice, candidate, base, page, now),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _first_line(advice: Advice, candidate: Candidate) -> str:
    if advice.best is candidate:
        return f"**{escaped(answer(advice))}**"
    return f"**{escaped(candidate.build.id)}: {escaped(str(candidate.why))}.** The advice is: {escaped(answer(advice))}"


def _change(advice: Advice, candidate: Candidate) -> Iterator[str]:
    yield "### What to change"
    before = [f"-{line}" for line in requirements(advice.start)]
    after = [f"+{line}" for line in requirements(candidate.build)]
    yield "\n".join(["```diff", *before, *after, "```"])
    yield str(index_of(candidate.build))
    yield "\n".join(_changed(one) for one in changes(advice.start, candidate.build))


def _changed(one: Change) -> str:
    driver = f" (needs NVIDIA driver {one.driver} or newer)" if one.driver else ""
    return f"- {one.name} {escaped(one.before)} to {escaped(one.after)}{driver}"


_TOLD = (
    (Prospect.NEWLY_BROKEN, "Newly broken, without a cure"),
    (Prospect.STILL_AFFECTED, "Still fails, without a cure"),
    (Prospect.FIXED, "Fixed"),
    (Prospect.NEEDS_WORKAROUND, "Fails there, and has a cure"),
)


def _issues(candidate: Candidate, base: str) -> Iterator[str]:
    for prospect, heading in _TOLD:
        items = candidate.of(prospect)
        if items:
            yield f"### {heading} ({len(items)})"
            yield "\n".join(_line(item, candidate, base) for item in items)


def _line(item: Item, candidate: Candidate, base: str) -> str:
    silent = " (∆ wrong numbers, no error)" if item.issue.silent else ""
    new = "; new" if item.prospect is Prospect.NEEDS_WORKAROUND and item.is_new else ""
    unseen = "; nothing is known of it on the present build" if item.is_new and item.was_unknown else ""
    where = f"; {evidence}" if (evidence := _evidence(item.after, candidate, base)) else ""
    return f"- {_named(item)} {escaped(item.issue.title)}{silent}{new}{unseen}{where}"


def _named(item: Item) -> str:
    """The issue, linked to its report."""
    report = next((link.url for link in item.issue.links if link.kind is LinkKind.REPORT), "")
    return _link(item.issue.id, report)


def _evidence(cell: Cell, candidate: Candidate, base: str) -> str:
    if cell.measured_at is None:
        return ""
    elsewhere = f" on {cell.build}" if cell.build != candidate.build.id else ""
    words = f"measured {cell.measured_at:%Y-%m-%d}{elsewhere}"
    path = f"/cells/{quote(cell.issue, safe='')}/{quote(cell.build, safe='')}?{urlencode({'hardware': cell.hardware})}"
    return _link(words, address(base, path))


def _link(text: str, target: str) -> str:
    return f"[{escaped(text)}](<{target}>)" if _ADDRESS.match(target) else escaped(text)


def _workarounds(candidate: Candidate) -> Iterator[str]:
    found = steps(candidate)
    if found.add:
        yield f"### Workarounds to add ({len(found.add)})"
        yield from map(_with_snippet, found.add)
    if found.keep:
        yield f"### Workarounds to keep ({len(found.keep)})"
        yield "They help on both builds; whoever has none in place needs them as well."
        yield from map(_with_snippet, found.keep)
    if found.remove:
        yield f"### Workarounds no longer needed ({len(found.remove)})"
        yield "Their issues pass there without them."
        yield _listed(found.remove)
    if found.avoid:
        yield f"### Workarounds to take out ({len(found.avoid)})"
        yield _listed(found.avoid)


def _with_snippet(step: Step) -> str:
    trade_off = f" ({escaped(step.workaround.trade_off)})" if step.workaround.trade_off else ""
    head = (
        f"**{escaped(step.item.issue.id)}**, {escaped(step.workaround.id)}: {escaped(step.workaround.title)}{trade_off}"
    )
    return f"{head}\n\n{quoted(step.workaround.body)}"


def _listed(found: Iterable[Step]) -> str:
    return "\n".join(
        f"- {escaped(step.item.issue.id)}, {escaped(step.workaround.id)}: {escaped(step.workaround.title)}"
        f"{f'; {escaped(step.why)}' if step.why else ''}"
        for step in found
    )


def _open(candidate: Candidate) -> Iterator[str]:
    items = candidate.of(Prospect.UNKNOWN)
    if not items:
        return
    yield f"### Unknown ({len(items)})"
    yield "\n".join(f"- {_named(item)} {escaped(item.issue.title)}: {escaped(item.after.reason)}" for item in items)
    commands = candidate.missing.commands(candidate.build.id)
    if commands:
        yield f"To find out ({about_missing(candidate)}):"
        yield "\n".join(["```sh", *commands, "```"])


def _foot(advice: Advice, candidate: Candidate, base: str, page: str, now: datetime) -> str:
    counted = [f"{n} {PROSPECT_WORDS[prospect]}" for prospect, n in candidate.counts.items() if n]
    parts = [
        f"{len(candidate.items)} issues watched: {', '.join(counted)}",
        f"{percent(candidate.coverage)} % have an answer there",
        f"must have: {', '.join(map(escaped, _musts(advice)))}" if _musts(advice) else "",
        f"{_link('Known Good', address(base, page)) if base and page else 'Known Good'}, {now:%Y-%m-%d}",
    ]
    return f"---\n\n{'; '.join(part for part in parts if part)}."


def _musts(advice: Advice) -> Sequence[str]:
    return advice.constraints.in_words
