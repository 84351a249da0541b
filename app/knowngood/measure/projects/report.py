"""The answer for a terminal, for a pull request (Markdown), and for programs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from knowngood.ask.explain.answer import Explanation, Strength
from knowngood.ask.explain.cli import helping
from knowngood.cli.console import bytes_in_words
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.domain.vocabulary import many
from knowngood.gate.renderers.common import one_line, wrapped
from knowngood.gate.renderers.markdown import escaped
from knowngood.gate.renderers.text import fitting, snippet_in_short
from knowngood.measure.projects.environments import versions_in
from knowngood.measure.projects.rules import Answer, Change, Comparison, Outcome, Side, failures, moves, words_of
from knowngood.measure.scripts.rules import error_line

_ROOM, _NAMED = 14, 3
_COUNTED = {
    Change.NEWLY_PASSING: "fixed by the bump",
    Change.FLAKY: "flaky on both",
    Change.FAILS: "fail on both",
    Change.ADDED: "run on the new torch alone",
    Change.SKIPPED: "skipped on both",
    Change.PASSES: "pass on both",
}


@dataclass(frozen=True)
class Target:
    """A release of torch to go to: its lock and what the tests do there, or why the two cannot be installed together.
    `explained` are its new failures, by id.
    """

    torch: str
    lock: str = ""
    comparison: Comparison | None = None
    explained: dict[str, Explanation] | None = None
    refusal: str = ""

    @property
    def answer(self) -> Answer:
        return self.comparison.answer if self.comparison else Answer.NOT_YET

    def passed(self) -> int:
        return len(self.comparison.ids(Change.PASSES)) if self.comparison else 0


@dataclass(frozen=True)
class Report:
    """`base` is the lock of the project as it is. `tests` is the command, `host` where it was run."""

    base: str
    targets: tuple[Target, ...]
    tests: str
    host: str
    download_bytes: int = 0

    @property
    def torch(self) -> str:
        return versions_in(self.base)["torch"]

    @property
    def answer(self) -> Answer:
        """The worst of them."""
        return max((target.answer for target in self.targets), key=list(Answer).index)

    def sentence(self, target: Target) -> str:
        """Of one target, the answer first."""
        if target.comparison is None:
            return f"Not yet: torch {target.torch} cannot be installed with what the project has"
        found = target.comparison
        problems = dict(zip((self.torch, target.torch), found.problems, strict=True))
        could_not = "; ".join(
            f"the tests could not be run on torch {name}: {why}" for name, why in problems.items() if why
        )
        if could_not:
            return f"Cannot say: {could_not}"
        new, unsure, ran = found.ids(Change.NEWLY_FAILING), found.unsure, _ran(found)
        sides = f"on torch {target.torch} and not on {self.torch}"
        match target.answer:
            case Answer.NOT_YET:
                fail = "fails" if len(new) == 1 else "fail"
                known = sum(_is_known(target, id_) for id_ in new)
                return f"Not yet: {len(new)} of your {many(ran, 'test')} {fail} {sides}; {known} of them known here"
            case Answer.OK:
                both = f"{many(target.passed(), 'test')} of {ran} pass there and on {self.torch}"
                return f"Ok: no test newly fails on torch {target.torch}; {both}"
            case _:
                why = (
                    f"{many(len(unsure) or len(new), 'test')} cannot be settled"
                    if unsure or new
                    else "no test passes on both"
                )
                return f"Cannot say: {why} between torch {self.torch} and {target.torch}"


def _ran(found: Comparison) -> int:
    """The tests that ran on either side, and were not skipped on both."""
    return len(found.changes) - len(found.ids(Change.SKIPPED))


def _is_known(target: Target, id_: str) -> bool:
    explained = (target.explained or {}).get(id_)
    return explained is not None and explained.known


def lines_of(report: Report) -> Iterator[str]:
    for target in report.targets:
        yield from wrapped(f"{report.sentence(target)}.", later="  ")
        yield from _details(report, target)
    used = f", {bytes_in_words(report.download_bytes)} downloaded" if report.download_bytes else ""
    ran = f"{report.tests} on {report.host}" if report.host else report.tests
    yield from ["", *wrapped(f"{ran}{used}. Resumable; nothing of your checkout was changed.", later="  ")]
    yield "Pull request note: --format markdown       Everything: --json"
    if any(not _is_known(target, id_) for target in report.targets for id_ in target.explained or ()):
        yield "A failure that nobody knows:  knowngood try FILE --keep pytorch-NUMBER       makes it a candidate row"


def _details(report: Report, target: Target) -> Iterator[str]:
    """The tests that decide, what else differs, and what moved with torch."""
    found = target.comparison
    if found is None:
        yield from wrapped(one_line(target.refusal), "  ", "  ")
        return
    blocks = [["", *_block(target, found, id_)] for id_ in (*found.ids(Change.NEWLY_FAILING), *found.unsure)]
    lines, shown = fitting(blocks, _ROOM)
    yield from lines
    yield from [f"{len(blocks) - shown} more: --json"] if shown < len(blocks) else []
    yield from ["", *(line for words in _rest(found) for line in wrapped(words, later="  "))]
    yield from wrapped(_moved(report, target), later="  ")


def _block(target: Target, found: Comparison, id_: str) -> Iterator[str]:
    change = found.changes[id_]
    (was, runs), (fails, of) = failures(found.base, id_), failures(found.target, id_)
    how = {
        Change.NEWLY_FAILING: f"fails {fails} of {of}",
        Change.UNSETTLED: f"fails {was} of {runs} before and {fails} of {of} after: flaky",
        Change.GONE: "passes before, and is not run after",
    }
    yield f"{one_line(id_)}    {how[change]}"
    explained = (target.explained or {}).get(id_)
    if explained is None:
        return
    words = error_line(words_of(found.target, id_).splitlines())
    yield from wrapped(one_line(words[:300]), "    ", "    ")
    yield from (f"  {line}" for line in _meaning(explained))


def _meaning(explained: Explanation) -> Iterator[str]:
    """The row of the catalogue that it is, with what helps; or what an installation means by it; or neither."""
    if (match := explained.sure) is not None:
        yield from wrapped(f"{match.issue}: {match.title}", later="  ")
        for cure in helping(match)[:1]:
            yield from snippet_in_short(cure.body, cure.title)
            if match.cures_on and cure.verdict is WorkaroundVerdict.EFFECTIVE:
                yield f"    works on {match.cures_on.build}"
    for meaning in explained.meanings[:1]:
        if meaning.strength is Strength.SURE and explained.sure is None:
            yield from [*wrapped(meaning.title), f"    {meaning.command}"]
    yield from (line for message in explained.wheel for line in wrapped(english(message)))
    if not explained.known:
        yield "not known here"


def _rest(found: Comparison) -> Iterator[str]:
    counts = Counter(found.changes.values())
    said = [f"{words}: {counts[change]}" for change, words in _COUNTED.items() if counts[change]]
    yield "   ".join(said)
    for change in (Change.NEWLY_PASSING, Change.FLAKY, Change.ADDED):
        if ids := found.ids(change):
            more = f" and {len(ids) - _NAMED} more" if ids[_NAMED:] else ""
            yield f"{_COUNTED[change]}: {', '.join(map(one_line, ids[:_NAMED]))}{more}"
    if found.otherwise:
        yield f"{many(len(found.otherwise), 'test')} that fail on both fail otherwise now, which may hide a new failure"


def _moved(report: Report, target: Target) -> str:
    moved, of_cuda = moves(versions_in(report.base), versions_in(target.lock))
    moved += [many(of_cuda, "package") + " of CUDA"] if of_cuda else []
    return f"moved with torch {report.torch} -> {versions_in(target.lock)['torch']}: {', '.join(moved) or 'nothing'}"


# -- Markdown and JSON -------------------------------------------------------------------------------------------------


def markdown_of(report: Report) -> Iterator[str]:
    """The note for a pull request, with the table for a README."""
    yield from (f"**{escaped(report.sentence(target))}.**\n" for target in report.targets)
    yield from [
        "| torch | passed | failed | skipped | newly failing | answer |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    sides = [(report.torch, target.comparison.base) for target in report.targets[:1] if target.comparison]
    rows = [[name, *_counts(side), "", "as it is"] for name, side in sides]
    for target in report.targets:
        found = target.comparison
        new = str(len(found.ids(Change.NEWLY_FAILING))) if found else ""
        rows.append([target.torch, *_counts(found.target if found else ()), new, target.answer])
    yield from (f"| {' | '.join(row)} |" for row in rows)
    for target in report.targets:
        details = [escaped(line.strip()) for line in _details(report, target) if line]
        yield from ["", f"torch {target.torch}", "", *(f"- {line}" for line in details)]
    yield from [
        "",
        f"`{report.tests.replace('`', chr(39))}` on {escaped(report.host)}. Measured with `knowngood try-bump`.",
    ]


def _counts(side: Side) -> list[str]:
    """Of the run of the whole suite."""
    counts = Counter(side[0].outcomes.values() if side and not side[0].problem else ())
    return [str(counts[outcome]) for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)]


def as_body(report: Report) -> dict[str, Any]:
    return {
        "answer": report.answer.value,
        "torch": report.torch,
        "tests": report.tests,
        "host": report.host,
        "targets": [_target_body(report, target) for target in report.targets],
    }


def _target_body(report: Report, target: Target) -> dict[str, Any]:
    found, told = target.comparison, target.explained or {}
    return {
        "torch": target.torch,
        "answer": target.answer.value,
        "sentence": report.sentence(target),
        "refusal": target.refusal,
        "moved": moves(versions_in(report.base), versions_in(target.lock))[0] if target.lock else [],
        "packages": versions_in(target.lock) if target.lock else {},
        "changes": {change.value: list(found.ids(change)) for change in Change} if found else {},
        "fails_otherwise": list(found.otherwise) if found else [],
        "new_failures": [
            {
                "id": id_,
                "fails": failures(found.target, id_)[0],
                "runs": failures(found.target, id_)[1],
                "text": words_of(found.target, id_),
                "explanation": told.get(id_),
            }
            for id_ in found.ids(Change.NEWLY_FAILING)
        ]
        if found
        else [],
        "seconds": [round(run.end.seconds, 1) for side in (found.base, found.target) for run in side] if found else [],
    }
