"""A comparison of two builds in words: plain text for a terminal, Markdown for an issue or a pull request.

The words for groups and turns stand here, so that page, terminal and Markdown call one thing by one name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from knowngood.domain.issue import Left
from knowngood.domain.verdicts.inference import in_words, own_reason
from knowngood.gate.renderers.common import one_line, wrapped
from knowngood.gate.renderers.markdown import escaped
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
    Group.STILL_FAILS: "fails on both builds in the same way",
    Group.STILL_PASSES: "passes on both builds",
    Group.NOWHERE: "can exist, or be built, on neither of the two",
}

TURN_WORDS = {
    WorkaroundTurn.STOPPED_WORKING: "workaround stopped working: {names}",
    WorkaroundTurn.HARMFUL: "does harm there: {names}",
    WorkaroundTurn.NOW_NEEDED: "needs a workaround there; measured to help: {names}",
    WorkaroundTurn.NO_LONGER_VERIFIED: "workaround not verified there: {names}",
    WorkaroundTurn.NO_LONGER_NEEDED: "workaround no longer needed: {names}",
    WorkaroundTurn.NOW_WORKS: "helps now: {names}",
    WorkaroundTurn.STILL_WORKS: "still helps: {names}",
}

NOTE_WORDS = {
    "luck": "flaky on {build}: the passes beside it may be luck ({needed} in a row would tell)",
    "packages": "with {before}, then {after}",
    "package": "concerns who has {package}",
    "inferred": "{build}: inferred from {ground}",
    "left": "{build}: passes as reported; not covered: {what}",
}

MARK_WORDS = {"once": "1 run", "inferred": "inferred", "old": "old evidence"}

# Of these a line each would bury the answer.
_NAMED_ONLY = frozenset({Group.STILL_PASSES, Group.NOWHERE, Group.PASSES_NEW, Group.GONE})

_INDENT = "      "


def grouped_turns(pair: IssuePair) -> Mapping[WorkaroundTurn, tuple[str, ...]]:
    """Workarounds (ids) by what became of them; what asks for something to be done first."""
    return {
        turn: names
        for turn in WorkaroundTurn
        if (names := tuple(id_ for id_, one in pair.turns.items() if one is turn))
    }


def marks_of(pair: IssuePair) -> Iterator[str]:
    """The marks of a claim that rests on little: words of MARK_WORDS."""
    if any(cell.runs == 1 for cell in pair.sides):
        yield MARK_WORDS["once"]
    if any(cell.basis for cell in pair.sides):
        yield MARK_WORDS["inferred"]
    if any(pair.old):
        yield MARK_WORDS["old"]


def notes_of(
    pair: IssuePair,
    naming: Callable[[Sequence[str]], str] = ", ".join,
    left: Callable[[Left], str] = attrgetter("what"),
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Notes on a pair beside its verdicts: words, and the values of their places. `naming` lists workarounds (ids),
    and `left` says what is left wrong.
    """
    for turn, ids in grouped_turns(pair).items():
        yield TURN_WORDS[turn], {"names": naming(ids)}
    for flaky, passing in ((pair.before, pair.after), (pair.after, pair.before)):
        if standing_of(passing) is SideStanding.PASSES and (needed := passes_needed(flaky, passing)):
            yield NOTE_WORDS["luck"], {"build": flaky.build, "needed": str(needed)}
    inferred = {cell.build: in_words(cell.basis) for cell in pair.sides if cell.basis}
    for build, ground in inferred.items():
        yield NOTE_WORDS["inferred"], {"build": build, "ground": ground}
    yield from left_of(pair, left)
    before, after = pair.packages
    if before != after:
        yield NOTE_WORDS["packages"], {"before": _listed(before), "after": _listed(after)}
    if pair.issue.requires.package:
        yield NOTE_WORDS["package"], {"package": pair.issue.requires.package}


def left_of(
    pair: IssuePair, said: Callable[[Left], str] = attrgetter("what")
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """All that its passes say nothing of."""
    for cell in pair.sides:
        if cell.not_covered:
            what = "; ".join(said(one) for one in pair.issue.left if one.what in cell.not_covered)
            yield NOTE_WORDS["left"], {"build": cell.build, "what": what}


def _listed(packages: tuple[str, ...]) -> str:
    return " ".join(packages) or "nothing beside torch"


def comparison_text(compared: Comparison) -> str:
    """The answer in the first line, then the groups in their order."""
    lines = wrapped(f"{sentence(compared)}.", later="  ")
    for group, pairs in _told(compared).items():
        lines += ["", f"{HEADINGS[group]} ({len(pairs)})"]
        if group in _NAMED_ONLY:
            lines += wrapped("; ".join(one_line(_title(pair)) for pair in pairs), "  ", "  ")
            continue
        for pair in pairs:
            lines += pair_lines(pair)
            if group is Group.NOT_KNOWN_NOW:
                lines += wrapped(one_line(own_reason(pair.after)), _INDENT, _INDENT)
            for words, values in notes_of(pair):
                lines += wrapped(one_line(words.format(**values)), _INDENT, _INDENT + "  ")
    if compared.is_blind:
        lines += ["", *wrapped(_advice(compared), later="  ")]
    return "\n".join(lines) + "\n"


def pair_lines(pair: IssuePair) -> Iterable[str]:
    """One issue for a terminal: its marks on both builds, its title and its marks."""
    silent = "; ∆ wrong numbers, no error" if pair.is_silent else ""
    marks = "".join(f"; {mark}" for mark in marks_of(pair))
    return wrapped(f"{_signs(pair)}  {one_line(_title(pair))}{silent}{marks}", "  ", _INDENT)


def _title(pair: IssuePair) -> str:
    return f"{pair.issue.title} ({pair.issue.id})"


def _signs(pair: IssuePair) -> str:
    key = "'" if pair.has_workaround else "?" if pair.is_untried else ""
    return f"{in_text(pair.before.verdict).sign} → {in_text(pair.after.verdict).sign}{key}"


def _advice(compared: Comparison) -> str:
    builds = f"{compared.before.id},{compared.after.id}"
    return f"No issue answers on both builds. To measure them: knowngood run --builds {builds}"


def _told(compared: Comparison) -> Mapping[Group, Sequence[IssuePair]]:
    """Beside itself nothing of a build is told."""
    return compared.groups if compared.before != compared.after else {}


def comparison_markdown(compared: Comparison, links: Links | None = None) -> str:
    """The answer, then a table for each group; what passes or applies to neither is named in a line."""
    blocks = [f"**{escaped(sentence(compared))}.**"]
    for group, pairs in _told(compared).items():
        if group in _NAMED_ONLY:
            blocks.append(f"{HEADINGS[group]} ({len(pairs)}): {'; '.join(escaped(_title(pair)) for pair in pairs)}")
            continue
        rows = [f"| {' | '.join(_cells(pair, links))} |" for pair in pairs]
        head = f"| issue | {escaped(compared.before.id)} | {escaped(compared.after.id)} | what to know |"
        table = "\n".join([head, "| --- | --- | --- | --- |", *rows])
        heading = f"{HEADINGS[group]} ({len(pairs)})"
        if group is Group.STILL_FAILS:
            blocks.append(f"<details><summary>{heading}</summary>\n\n{table}\n\n</details>")
        else:
            blocks += [f"#### {heading}", table]
    if compared.is_blind:
        blocks.append(escaped(_advice(compared)))
    blocks.append(f"<sub>{escaped(PAIRING_WORDS)}</sub>")
    return "\n\n".join(blocks) + "\n"


def _cells(pair: IssuePair, links: Links | None) -> tuple[str, ...]:
    title = escaped(_title(pair))
    name = f"[{title}](<{links.issue(pair.issue.id)}>)" if links else title
    silent = " (∆ wrong numbers, no error)" if pair.is_silent else ""
    notes = [*marks_of(pair), *(words.format(**values) for words, values in notes_of(pair))]
    said = [own_reason(pair.after), *notes] if pair.group is Group.NOT_KNOWN_NOW else notes
    return (
        f"{name}{silent}",
        _verdict(pair, links, is_old=pair.old[0], after=False),
        _verdict(pair, links, is_old=pair.old[1], after=True),
        "<br>".join(escaped(one) for one in said) or "-",
    )


def _verdict(pair: IssuePair, links: Links | None, *, is_old: bool, after: bool) -> str:
    cell = pair.after if after else pair.before
    sign, word = in_text(cell.verdict)
    helped = ", has a workaround" if after and pair.has_workaround else ""
    old = " (old)" if is_old else ""
    inferred = ", inferred" if cell.basis else ""
    text = f"{escaped(sign)} {word}{helped}{inferred}{old}"
    return f"[{text}](<{links.cell(cell.issue, cell.build, cell.hardware)}>)" if links else text
