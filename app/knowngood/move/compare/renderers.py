"""A comparison of two builds in words: plain text for a terminal, Markdown for an issue or a pull request.

The words for groups and turns are here, so that page, terminal and Markdown call one thing by one name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from knowngood.cli.encoding import SCREEN
from knowngood.domain.issue import Left
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.message import Message, english
from knowngood.domain.verdicts.inference import in_words, own_reason
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.gate.renderers.common import one_line, wrapped
from knowngood.gate.renderers.markdown import escaped
from knowngood.gate.renderers.text import fitting, snippet_in_short
from knowngood.move.compare.comparison import PAIRING_WORDS, Comparison, sentence
from knowngood.move.pair import Group, IssuePair, SideStanding, WorkaroundTurn, passes_needed, standing_of
from knowngood.serialization.marks import in_text
from knowngood.share.exports.extract import Links

HEADINGS = {
    Group.NEWLY_BROKEN: "Newly broken",
    Group.FIXED: "Fixed",
    Group.NEW: "Fails in new features",
    Group.NOT_KNOWN_BEFORE: "Not known before",
    Group.NOT_KNOWN_NOW: "Not known there",
    Group.FAILS_OTHERWISE: "Fails in another way",
    Group.GONE: "Left behind",
    Group.PASSES_NEW: "New, and passes",
    Group.BIGGER: "Takes more memory",
    Group.MORE_WORK: "Does more work",
    Group.SLOWER: "Takes longer",
    Group.STILL_FAILS: "Still fails",
    Group.STILL_PASSES: "Still passes",
    Group.NOWHERE: "Applies to neither",
}

MEANINGS = {
    Group.NEWLY_BROKEN: "passed, and fails now: lost",
    Group.FIXED: "failed, and passes now, with proof: gained",
    Group.NEW: "could not exist, or not be built, before; fails now: no loss",
    Group.NOT_KNOWN_BEFORE: "nothing certain was known of it before: neither a loss nor a gain",
    Group.NOT_KNOWN_NOW: "the second build gives no answer, or passes too few times to be sure",
    Group.FAILS_OTHERWISE: "fails on both builds, with another failure than before",
    Group.GONE: "cannot exist or cannot be built on the second build; no fix was seen",
    Group.PASSES_NEW: "could not exist, or not be built, before; passes now",
    Group.BIGGER: "right on the second build, and takes more memory than it must",
    Group.MORE_WORK: "right on the second build, and takes more compilations, kernels or copies than it must",
    Group.SLOWER: "right on the second build, and takes longer than it must",
    Group.STILL_FAILS: "fails on both builds in the same way",
    Group.STILL_PASSES: "passes on both builds",
    Group.NOWHERE: "can exist, or be built, on neither of the two",
}

# Of these a line each would bury the answer.
_FOLDED = frozenset({Group.NOT_KNOWN_NOW, Group.STILL_FAILS})
_NAMED_ONLY = frozenset({Group.STILL_PASSES, Group.NOWHERE, Group.PASSES_NEW, Group.GONE})

_INDENT = "      "


def marks_of(pair: IssuePair) -> Iterator[str]:
    """The marks of a claim that rests on little."""
    marks = {
        "1 run": any(cell.runs == 1 for cell in pair.sides),
        "inferred": any(cell.basis for cell in pair.sides),
        "old evidence": any(pair.old),
    }
    return (mark for mark, holds in marks.items() if holds)


def notes_of(
    pair: IssuePair,
    naming: Callable[[Sequence[str]], str] = ", ".join,
    left: Callable[[Left], str] = attrgetter("what"),
) -> Iterator[Message]:
    """Notes on a pair, next to its verdicts. `naming` lists workarounds (ids), and `left` says what is left wrong."""
    for turn in WorkaroundTurn:
        if ids := [id_ for id_, change in pair.turns.items() if change is turn]:
            yield Message(f"turn_{turn}", names=naming(ids))
    for flaky, passing in ((pair.before, pair.after), (pair.after, pair.before)):
        if standing_of(passing) is SideStanding.PASSES and (needed := passes_needed(flaky, passing)):
            yield Message("may_be_luck", build=flaky.build, needed=needed)
    yield from grounds_of(pair)
    yield from left_of(pair, left)
    sides = pair.packages.before, pair.packages.after
    before, after = (" ".join(side) or Message("nothing_beside_torch") for side in sides)
    if before != after:
        yield Message("with_packages", before=before, after=after)
    if pair.issue.requires.package:
        yield Message("concerns_who_has", package=pair.issue.requires.package)


def grounds_of(pair: IssuePair) -> Iterator[Message]:
    """The cells that its sides are inferred from, each once."""
    inferred = {cell.build: in_words(cell.basis) for cell in pair.sides if cell.basis}
    return (Message("build_inferred", build=build, ground=ground) for build, ground in inferred.items())


def left_of(pair: IssuePair, describe: Callable[[Left], str] = attrgetter("what")) -> Iterator[Message]:
    """Notes on all that the passes of a pair say nothing of."""
    for cell in pair.sides:
        if cell.not_covered:
            what = "; ".join(describe(gap) for gap in pair.issue.left if gap.what in cell.not_covered)
            yield Message("build_not_covered", build=cell.build, what=what)


def comparison_text(compared: Comparison, *, in_full: bool = False) -> str:
    """The answer in the first line, then what is broken and fixed: as much as fits on a screen, or all groups."""
    groups = _select_groups(compared)
    first = [wrapped(f"{english(sentence(compared))}.", later="  ")]
    last = [wrapped(_advice(compared), later="  ")] if compared.is_blind else []
    full = [*first, *([_heading(group, pairs), *_lines(group, pairs)] for group, pairs in groups.items()), *last]
    if in_full or sum(len(block) + 1 for block in full) <= SCREEN:
        return _joined(full)
    others = " · ".join(_heading(group, pairs) for group, pairs in groups.items() if group not in _TURNED)
    last = [wrapped(f"{others}. Every issue: --all"), *last]
    room = SCREEN - sum(len(block) + 1 for block in (*first, *last))
    turned = list[list[str]]()
    for group in (group for group in _TURNED if group in groups):
        block = list(_in_short(group, groups[group], room // 2 if group is Group.NEWLY_BROKEN else room))
        turned, room = [*turned, block], room - len(block) - 1
    return _joined([*first, *turned, *last])


def _joined(blocks: Iterable[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


_TURNED = (Group.NEWLY_BROKEN, Group.FIXED)


def _in_short(group: Group, pairs: Sequence[IssuePair], room: int) -> Iterator[str]:
    """A group in at most so many lines: silent issues first, what is broken with what to do about it."""
    yield _heading(group, pairs)
    in_order = sorted(pairs, key=lambda pair: (not pair.is_silent, -SEVERITY_RANK[pair.issue.severity]))
    blocks = ([*line_in_short(pair, is_broken=group is Group.NEWLY_BROKEN)] for pair in in_order)
    lines, shown = fitting(blocks, room - len(["heading", "left"]))
    yield from lines
    if shown < len(pairs):
        yield f"{len(pairs) - shown} more"


def line_in_short(pair: IssuePair, *, is_broken: bool) -> Iterator[str]:
    yield from wrapped(f"{'∆' if pair.is_silent else '✕'}   {one_line(_title(pair))}", later="    ")
    if is_broken and pair.workarounds:
        workaround = pair.issue.workaround(pair.workarounds[0])
        yield from snippet_in_short(workaround.body, f"workaround that works there: {workaround.title}")


def _heading(group: Group, pairs: Sequence[IssuePair]) -> str:
    return f"{HEADINGS[group]} ({len(pairs)})"


def _lines(group: Group, pairs: Sequence[IssuePair]) -> Iterator[str]:
    if group in _NAMED_ONLY:
        yield from wrapped("; ".join(one_line(_title(pair)) for pair in pairs), "  ", "  ")
        return
    for pair in pairs:
        yield from pair_lines(pair)
        if group is Group.NOT_KNOWN_NOW:
            yield from wrapped(one_line(english(own_reason(pair.after))), _INDENT, _INDENT)
        for note in notes_of(pair):
            yield from wrapped(one_line(english(note)), _INDENT, _INDENT + "  ")


def pair_lines(pair: IssuePair) -> Iterable[str]:
    """One issue for a terminal: its marks on both builds, its title and its marks."""
    silent = "; ∆ wrong numbers, no error" if pair.is_silent else ""
    marks = "".join(f"; {mark}" for mark in marks_of(pair))
    key = "'" if pair.has_workaround else "?" if pair.is_untried else ""
    signs = f"{in_text(pair.before.verdict).sign} → {in_text(pair.after.verdict).sign}{key}"
    return wrapped(f"{signs}  {one_line(_title(pair))}{silent}{marks}", "  ", _INDENT)


def _title(pair: IssuePair) -> str:
    return f"{pair.issue.title} ({pair.issue.id})"


def _advice(compared: Comparison) -> str:
    builds = f"{compared.before.id},{compared.after.id}"
    return f"No issue answers on both builds. To measure them: knowngood run --builds {builds}"


def _select_groups(compared: Comparison) -> Mapping[Group, Sequence[IssuePair]]:
    """The groups to print; none where a build is compared with itself."""
    return compared.groups if compared.before != compared.after else {}


def comparison_markdown(compared: Comparison, links: Links | None = None) -> str:
    """The answer, then a table for each group; what passes or applies to neither is named in a line."""
    blocks = [f"**{escaped(english(sentence(compared)))}.**"]
    head = f"| issue | {escaped(compared.before.in_words)} | {escaped(compared.after.in_words)} | what to know |"
    for group, pairs in _select_groups(compared).items():
        heading = _heading(group, pairs)
        if group in _NAMED_ONLY:
            blocks.append(f"{heading}: {'; '.join(escaped(_title(pair)) for pair in pairs)}")
            continue
        rows = [f"| {' | '.join(_cells(pair, links))} |" for pair in pairs]
        table = "\n".join([head, "| --- | --- | --- | --- |", *rows])
        if group in _FOLDED:
            blocks.append(f"<details><summary>{heading}</summary>\n\n{table}\n\n</details>")
        else:
            blocks += [f"#### {heading}", table]
    blocks += [escaped(_advice(compared))] if compared.is_blind else []
    return "\n\n".join([*blocks, f"<sub>{escaped(PAIRING_WORDS)}</sub>"]) + "\n"


def _cells(pair: IssuePair, links: Links | None) -> tuple[str, ...]:
    title = escaped(_title(pair))
    name = f"[{title}](<{links.issue(pair.issue.id)}>)" if links else title
    silent = " (∆ wrong numbers, no error)" if pair.is_silent else ""
    reason = [english(own_reason(pair.after))] if pair.group is Group.NOT_KNOWN_NOW else []
    notes = [*reason, *marks_of(pair), *map(english, notes_of(pair))]
    return (
        f"{name}{silent}",
        _verdict(pair.before, links, is_old=pair.old[0]),
        _verdict(pair.after, links, is_old=pair.old[1], helped=", has a workaround" if pair.has_workaround else ""),
        "<br>".join(map(escaped, notes)) or "-",
    )


def _verdict(cell: Cell, links: Links | None, *, is_old: bool, helped: str = "") -> str:
    sign, word = in_text(cell.verdict)
    text = f"{escaped(sign)} {word}{helped}{', inferred' if cell.basis else ''}{' (old)' if is_old else ''}"
    if not links or cell.verdict is Verdict.NOT_RUN:  # of what was not run the page says no more
        return text
    return f"[{text}](<{links.cell(*cell.key)}>)"
