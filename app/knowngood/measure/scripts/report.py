"""The results of a script on each release: for a terminal, for a thread (Markdown), for programs (JSON)."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

from knowngood.domain.grouping import grouped
from knowngood.measure.bisection.search import answer_of
from knowngood.measure.scripts.rules import Result, Row, Tried, results_of, search_in
from knowngood.measure.scripts.runner import Script

_MOST_ROWS = 18
_MOST_NAMES = 4
_IN_A_CELL = str.maketrans({"`": "'", "|": "\\|"})  # of a table, where neither may end what is code
_ON = {
    Result.FAILS: "fails on",
    Result.COMES_AND_GOES: "comes and goes on",
    Result.FAILS_OTHERWISE: "fails otherwise on",
    Result.OTHER_OUTPUT: "runs with other output on",
    Result.RUNS: "runs on",
    Result.NOT_RUN: "could not be run on",
}


@dataclass(frozen=True)
class Report:
    """`tried` are builds, oldest first; those that were not begun are no rows. Where it `is_line` they are all that are
    known between its ends.
    """

    script: Script
    tried: tuple[Tried, ...]
    is_line: bool = False

    @cached_property
    def rows(self) -> list[Row]:
        rows = zip(self.tried, results_of(self.tried), strict=True)
        return [row for row in rows if row[0].runs or row[0].trouble]

    @cached_property
    def changes(self) -> list[tuple[Row, Row, str]]:
        """Between which two rows what the script shows comes or goes, and that in words."""
        by_build = {row[0].build.id: row for row in self.rows}
        found = answer_of(search_in(self.tried)).changes
        pairs = [(by_build[change.before.build.id], by_build[change.after.build.id]) for change in found]
        ends = ["", ", of those tried" if not self.is_line or any(change.between for change in found) else ""]
        return [(*pair, _change_in_words(*pair) + ends[pair is pairs[-1]]) for pair in pairs]

    @property
    def sentence(self) -> str:
        """The answer: where it fails, then where it runs, and where that changes."""
        by_result = grouped(self.rows, lambda row: row[1])
        groups = [f"{words} {_names(by_result[result])}" for result, words in _ON.items() if result in by_result]
        text = "; ".join([", ".join(groups).replace(" on ", " on torch ", 1), *(words for *_, words in self.changes)])
        return text[:1].upper() + text[1:]


def _change_in_words(before: Row, after: Row) -> str:
    runs = [row[1] in {Result.RUNS, Result.OTHER_OUTPUT} for row in (before, after)]
    old, new = before[0].build.label, after[0].build.label
    if runs[0] is runs[1]:
        return f"the {'output' if runs[0] else 'failure'} changes between {old} and {new}"
    return f"begins to fail on {new} ({old} runs)" if runs[0] else f"stops failing on {new} ({old} fails)"


def _names(rows: Sequence[Row]) -> str:
    labels = [
        f"{each.build.label} (fails in {each.failures} of {len(each.runs)})"
        if result is Result.COMES_AND_GOES
        else each.build.label
        for each, result in rows
    ]
    shown = [*labels[:_MOST_NAMES], *([f"{len(labels) - _MOST_NAMES} more"] if len(labels) > _MOST_NAMES else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _cells(each: Tried, result: Result) -> tuple[str, str, str]:
    """The result with how many runs it rests on, how the process ended, and what it said."""
    if not each.runs:
        return "could not be run", "", each.trouble.sentence if each.trouble else ""
    telling = next((run for run in reversed(each.runs) if run.fails), each.runs[-1])
    count = f" {each.failures or len(each.runs)} of {len(each.runs)}" if len(each.runs) > 1 else ""
    return f"{result}{count}", telling.how, telling.line


def lines_of(report: Report) -> Iterator[str]:
    """At most 25 lines: releases in a row that say the same share one where there are many."""
    yield report.sentence
    rows = [(each, *_cells(each, result)) for each, result in report.rows]
    key = itemgetter(slice(1, None) if len(rows) > _MOST_ROWS else 0)
    together = [list(group) for _, group in groupby(rows, key=key)]
    for group in together[:_MOST_ROWS]:
        (each, *cells), *others = group
        label = f"{each.build.label} to {others[-1][0].build.label}" if others else each.build.label
        yield f"  {label:<8} {cells[0]:<16} {cells[1]:<10} {cells[2]}".rstrip()
    if len(together) > _MOST_ROWS:
        yield f"  and {len(together) - _MOST_ROWS} more; --json has them all"
    yield from map(_revisions, report.changes[:1])
    yield f"{report.script.name} on {environment_of(report)}; --format markdown is for a thread"


def _revisions(change: tuple[Row, Row, str]) -> str:
    (old, _), (new, _), _ = change
    words = " and ".join(f"{side.build.label} is {side.revision[:12] or 'not known'}" for side in (old, new))
    span = f"{old.revision[:12]}...{new.revision[:12]}" if old.revision and new.revision else ""
    return (
        f"revision of pytorch/pytorch: {words}{f': https://github.com/pytorch/pytorch/compare/{span}' if span else ''}"
    )


def environment_of(report: Report) -> str:
    """`cpu-x86_64, Python 3.11.7, AMD EPYC 7B13, ..., isolation filtered`."""
    pythons, hosts = (
        " and ".join(dict.fromkeys(each.imported[key] for each, _ in report.rows if key in each.imported))
        for key in ("python", "host")
    )
    beside = f"with {', '.join(report.script.packages)}" if report.script.packages else ""
    return ", ".join(filter(None, (report.script.hardware, f"Python {pythons or 'not known'}", beside, hosts)))


def markdown_of(report: Report) -> list[str]:
    """To paste into a thread: the answer, the table, the revisions on both sides, the environment and the script."""
    rows = [(each, *_cells(each, result)) for each, result in report.rows]
    table = [
        f"| {each.build.torch} | {result} | {how} | {line and f'`{line.translate(_IN_A_CELL)}`'} |"
        for each, result, how, line in rows
    ]
    fence = "`" * max(3, *(1 + len(word) for word in report.script.text.split() if set(word) == {"`"}), 0)
    return [
        f"{report.sentence}.",
        "",
        "| torch | result | exit | last line |",
        "| --- | --- | --- | --- |",
        *table,
        "",
        *(f"{_revisions(change)}\n" for change in report.changes),
        f"Each on {environment_of(report)}. Measured with `knowngood try`.",
        "",
        f"<details><summary>{report.script.name}</summary>",
        "",
        f"{fence}python",
        report.script.text.rstrip("\n"),
        fence,
        "",
        "</details>",
    ]


def as_body(report: Report) -> dict[str, Any]:
    """`runs` are all runs of a build, oldest first; `changes` stand between neighbours of those that were tried."""
    return {
        "answer": report.sentence,
        "script": {"name": report.script.name, "key": report.script.key, "packages": list(report.script.packages)},
        "hardware": report.script.hardware,
        "builds": [
            {
                "build": each.build.id,
                "result": result.value,
                "failures": each.failures,
                "runs": [{**asdict(run), "ending": run.ending.value} for run in each.runs],
                "imported": dict(each.imported),
                "trouble": each.trouble.sentence if each.trouble else None,
            }
            for each, result in report.rows
        ],
        "changes": [
            {
                "before": before.build.id,
                "after": after.build.id,
                "results": [was.value, is_now.value],
                "revisions": [before.revision, after.revision],
            }
            for (before, was), (after, is_now), _ in report.changes
        ],
    }
