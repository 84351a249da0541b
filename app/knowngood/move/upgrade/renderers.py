"""An upgrade's answer for a terminal, the answer in the first line, and as Markdown fit for a pull request: what to
change, what is gained and lost, which workarounds go in and out, what is not known.

In Markdown free text is escaped as in the gate's. Snippets are Markdown by their author's hand and stand in block
quotes, folded; for as many as there is room, the others are linked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from knowngood.cli.encoding import SCREEN
from knowngood.domain.issue import Issue
from knowngood.domain.message import english, sentence
from knowngood.domain.vocabulary import many
from knowngood.gate.renderers.common import wrapped
from knowngood.gate.renderers.json import address
from knowngood.gate.renderers.markdown import escaped, link, quoted
from knowngood.gate.renderers.text import fitting, note_lines
from knowngood.move.compare.renderers import grounds_of, left_of, line_in_short, marks_of
from knowngood.move.pair import IssuePair
from knowngood.move.upgrade.candidates import Candidate, Tally
from knowngood.move.upgrade.ranking import UpgradeAdvice
from knowngood.move.upgrade.reasons import FindOut
from knowngood.move.upgrade.wording import (
    COLUMN_WORDS,
    MEASURED_WORDS,
    RATING_WORDS,
    REPORTED_WORDS,
    SECTION_WORDS,
    WorkaroundStep,
    answer,
    candidate_in_detail,
    changes,
    figures,
    index_of,
    measured,
    requirements,
    sections,
    situation,
    steps,
)
from knowngood.web.urls import cell_address, issue_address

# Of these the number is enough: `compare` names them.
_COUNTED_ONLY = frozenset({Tally.NEEDS_WORKAROUND, Tally.PASSES, Tally.DOES_NOT_APPLY})
_ROWS = 4  # of the table on a screen
_SNIPPET_ROOM = 4  # lines of a title and its snippet


def upgrade_text(advice: UpgradeAdvice, *, in_full: bool = True) -> str:
    """The answer, the build one is on and the candidates, best first; then the issues of the one shown in detail, what
    would tell more, and what was asked. Not `in_full`: what fits on a screen, of the issues those that are lost.
    """
    shown, first = candidate_in_detail(advice), wrapped(english(answer(advice)))
    if advice.best:
        first.append(f"    pip install {' '.join(requirements(advice.best.build, advice.best.packages))}")
    table = list(_columns(advice.compared[: None if in_full else _ROWS], is_narrow=not in_full))
    last = [line for step in advice.find_out for line in _step_lines(step, in_full=in_full)]
    last += wrapped(situation(advice))
    last += [] if in_full else ["Every candidate and issue: --all. The note for a pull request: --format markdown"]
    last += note_lines(map(english, advice.notes))
    room = None if in_full else SCREEN - sum(len(block) + 1 for block in (first, table, last)) - len(["heading"])
    detail = list(_issues_of(advice, shown, room)) if shown else []
    texts = ("\n".join(block) for block in (first, table, detail, last))
    return "\n\n".join(text for text in texts if text) + "\n"


def _step_lines(step: FindOut, *, in_full: bool) -> list[str]:
    if in_full:
        return [*wrapped(f"{english(step.what)}:"), *(f"  {command}" for command in step.commands)]
    return wrapped(f"{english(step.what)}: --all has the command.")


def _issues_of(advice: UpgradeAdvice, candidate: Candidate, room: int | None) -> Iterator[str]:
    """Issues that turn or fail on a candidate; where there is room for so many lines, as much as it holds of what is
    lost.
    """
    if room is None:
        why = f"{candidate.build.in_words}: {RATING_WORDS[candidate.rating]}; {english(candidate.why)}"
        yield from wrapped(why, later="  ")
    for tally, items in sections(candidate).items():
        has_room, told = room is None or room > _SNIPPET_ROOM, () if tally in _COUNTED_ONLY else items
        blocks = [list(line_in_short(item, is_broken=item.fails and has_room)) for item in told]
        lines, n = fitting(blocks, room or len(blocks) * SCREEN)
        if room is None or tally is Tally.LOST:
            some = f", {n} shown" if blocks[n:] else ""
            yield from [f"{SECTION_WORDS[tally]} ({len(items)}{some})", *lines]
    if room is None:
        hardware = f" --hardware {advice.hardware[0]}" if len(advice.hardware) == 1 else ""
        yield f"In words: knowngood compare {advice.start.id} {candidate.build.id}{hardware} --all"


def _columns(candidates: Sequence[Candidate], *, is_narrow: bool = False) -> Iterator[str]:
    """A table with a candidate a row; a narrow one leaves out what is counted elsewhere."""
    reported = REPORTED_WORDS.partition(" ")[0] if is_narrow else REPORTED_WORDS
    heads = ["build", *COLUMN_WORDS.values(), MEASURED_WORDS, reported]
    pythons = {candidate.build.python for candidate in candidates}
    of_all = f", Python {next(iter(pythons))}" if is_narrow and len(pythons) == 1 else ""
    rows = [
        [
            candidate.build.in_words.removeprefix("torch ").replace(of_all, "", int(bool(of_all))),
            *figures(candidate, untried="{n}?", eased="{n}'"),
            english(measured(candidate)),
            str(candidate.age.reported) if candidate.age else "?",
        ]
        for candidate in candidates
    ]
    kept = [at for at, head in enumerate(heads) if not (is_narrow and head in _WIDE)]
    widths = {at: max(len(row[at]) for row in (heads, *rows)) + 2 for at in kept}
    for row, rating in [(heads, ""), *zip(rows, (RATING_WORDS[one.rating] for one in candidates), strict=True)]:
        name, *cells = (f"{row[at]:>{wide}}" for at, wide in widths.items())
        yield f"{name.strip():<{widths[0] - 2}}{''.join(cells)}  {rating}".rstrip()
    legend = {
        "' has a workaround that was measured to help there": Tally.LOST_WITH_WORKAROUND,
        "? workaround not verified there": Tally.UNTRIED,
    }
    used = [words for words, tally in legend.items() if any(candidate.counts[tally] for candidate in candidates)]
    yield from [" · ".join(used)] if used else []


_WIDE = frozenset({COLUMN_WORDS[Tally.PASSES], COLUMN_WORDS[Tally.NEW], MEASURED_WORDS})


LONGEST = 80
"""Lines that a note for a team's list has room for; one for dozens of issues takes what it takes, without snippets."""

_THREAD = re.compile(r"https://github\.com/[\w.-]+/([\w.-]+)/(?:issues|pull|discussions)/(\d+)")


def migration_note(
    advice: UpgradeAdvice, candidate: Candidate | None, *, base: str = "", page: str = "", now: datetime
) -> str:
    """The note for moving to `candidate`, recommended or not; where there is none the answer, with no word of what an
    upgrade would change. `page` is the path of the page that says the same.

    Without `base`, the server's address, links lead to the reports alone.
    """
    foot, told = _foot(advice, base, page, now), escaped(english(answer(advice)))
    if candidate is None:
        measurements = [
            part for step in advice.find_out for part in (f"{escaped(english(step.what))}:", _shell(step.commands))
        ]
        return _joined([f"**{told}**", _notes(advice), *measurements, _table(advice.compared), foot])
    against = f"**Not recommended: {escaped(english(candidate.why))}.**"
    blocks = [
        f"## Upgrade {escaped(advice.start.in_words)} to {escaped(candidate.build.in_words)}",
        f"**{told}**" if advice.best is candidate else f"{against} The advice is: {told}",
        _notes(advice),
        *_change(advice, candidate),
        _table([advice.base, candidate]),
        *_issues(candidate, base),
    ]
    missing = candidate.missing
    to_run = [f"To find out what is not known there (about {missing.minutes} min):", _shell(missing.commands)]
    below = [*(to_run if missing.commands else []), foot]
    room = LONGEST - _joined([*blocks, *below]).count("\n")
    return _joined([*blocks, *_workarounds(advice, candidate, base, room), *below])


def _shell(commands: Iterable[str]) -> str:
    return "\n".join(["```sh", *commands, "```"])


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def _notes(advice: UpgradeAdvice) -> str:
    return "\n".join(f"- {escaped(sentence(note))}" for note in advice.notes)


def _change(advice: UpgradeAdvice, candidate: Candidate) -> Iterator[str]:
    own = {name: version for name in candidate.packages if (version := advice.packages_here.get(name))}
    before = [f"-{line}" for line in requirements(advice.start, own)]
    after = [f"+{line}" for line in requirements(candidate.build, candidate.packages)]
    yield "\n".join(["```diff", *before, *after, "```"])
    differences = (
        f"{name} {escaped(old)} to {escaped(new)}{f' (needs NVIDIA driver {driver} or newer)' if driver else ''}"
        for name, old, new, driver in changes(advice.start, candidate.build)
    )
    yield f"{english(index_of(candidate.build))} What changes: {'; '.join(differences)}."


def _table(rows: Sequence[Candidate]) -> str:
    heads = ["", *COLUMN_WORDS.values(), MEASURED_WORDS]
    lines = [f"| {' | '.join(heads)} |", f"| --- {'| ---: ' * (len(heads) - 1)}|"]
    for row in rows:
        counts = figures(row, untried="{n} with a workaround not verified", eased="{n} with a workaround")
        name = escaped(row.build.in_words.removeprefix("torch "))
        lines.append(f"| {' | '.join([name, *counts, english(measured(row))])} |")
    return "\n".join(lines)


_SHOWN_TALLIES = (
    Tally.LOST,
    Tally.GAINED,
    Tally.NEW,
    Tally.NOT_KNOWN_BEFORE,
    Tally.FAILS,
    Tally.BIGGER,
    Tally.MORE_WORK,
    Tally.SLOWER,
    Tally.NOT_KNOWN,
)


def _issues(candidate: Candidate, base: str) -> Iterator[str]:
    by_tally = sections(candidate)
    for tally in _SHOWN_TALLIES:
        if tally in by_tally:
            heading = f"{SECTION_WORDS[tally]} ({len(by_tally[tally])})"
            lines = "\n".join(_line(item, base) for item in by_tally[tally])
            is_open = tally is not Tally.NOT_KNOWN  # of dozens, which nothing is said of
            yield f"### {heading}\n\n{lines}" if is_open else _folded(heading, lines)


def _line(item: IssuePair, base: str) -> str:
    """The issue with its thread upstream, what the claim rests on, and a link to the evidence."""
    parts = [
        _upstream(item.issue),
        "∆ wrong numbers, no error" if item.is_silent else "",
        f"has a workaround ({escaped(item.helps.rests_on)})" if item.helps else "",
        "workaround not verified there" if item.is_untried else "",
        *map(escaped, (*marks_of(item), *map(english, (*grounds_of(item), *left_of(item))))),
        _evidence(item, base),
    ]
    return f"- {escaped(item.issue.title)} ({'; '.join(part for part in parts if part)})"


def _upstream(issue: Issue) -> str:
    """`pytorch#151290, closed as of 2026-11-20`, linked to the thread; the id of an issue that names none."""
    report = issue.report
    if report is None:
        return escaped(issue.id)
    thread = _THREAD.match(report.url)
    seen = f" as of {report.seen:%Y-%m-%d}" if report.seen else ""
    state = f", {escaped(report.state)}{seen}" if report.state else ""
    return f"{link(f'{thread[1]}#{thread[2]}' if thread else issue.id, report.url)}{state}"


def _evidence(item: IssuePair, base: str) -> str:
    """A link to what was measured, or why nothing was; without a server's address nothing can be linked."""
    cell = item.after
    if cell.measured_at is None:
        return escaped(english(cell.reason))
    return link(f"measured {cell.measured_at:%Y-%m-%d}", address(base, cell_address(*cell.key))) if base else ""


_STEPS = {
    "add": "Workarounds to add",
    "keep": "Workarounds to keep",
    "remove": "Workarounds no longer needed",
    "avoid": "Workarounds to take out",
}


def _workarounds(advice: UpgradeAdvice, candidate: Candidate, base: str, room: int) -> list[str]:
    """Workarounds to add, keep and take out. `room` is how many lines there are for all of it: snippets are folded in
    for as long as they fit.
    """
    groups = steps(candidate)
    entries = {
        _STEPS[name]: [_render_step(step, advice, base) for step in group] for name, group in groups.items() if group
    }
    room -= sum(len(lines) + 3 for lines in entries.values())
    for name in ("add", "keep"):
        for place, step in enumerate(groups[name]):
            folded = _folded("snippet", quoted(step.workaround.body))
            lines = folded.count("\n") + 3  # with an empty line on either side
            if lines <= room:
                room -= lines
                entries[_STEPS[name]][place] += f"\n\n{folded}\n"
    return [f"### {heading} ({len(lines)})\n\n" + "\n".join(lines).rstrip("\n") for heading, lines in entries.items()]


def _render_step(step: WorkaroundStep, advice: UpgradeAdvice, base: str) -> str:
    cost = advice.costs.get(step.item.issue.id, {}).get(step.workaround.id)
    costs = english(cost.in_words) if cost else ""
    parts = [step.workaround.trade_off, costs, step.helps.rests_on] if step.helps else [english(step.why)]
    note = "; ".join(escaped(part.rstrip(".")) for part in parts if part)
    title = link(step.item.issue.title, address(base, issue_address(step.item.issue.id)))
    return f"- **{escaped(step.workaround.title)}**{f' ({note})' if note else ''}, for: {title}"


def _foot(advice: UpgradeAdvice, base: str, page: str, now: datetime) -> str:
    musts = advice.constraints.in_words
    parts = [
        f"{many(len(advice.watched), 'issue')} watched",
        f"must have: {', '.join(map(escaped, musts))}" if musts else "",
        f"{link('Known Good', address(base, page)) if base and page else 'Known Good'}, {now:%Y-%m-%d}",
    ]
    return f"---\n\n{'; '.join(part for part in parts if part)}."
