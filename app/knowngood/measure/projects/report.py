"""The answer for a terminal, for a pull request (Markdown), and for programs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from knowngood.ask.explain.answer import Explanation, Strength
from knowngood.ask.explain.cli import helping
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
_LISTED = (Change.NEWLY_PASSING, Change.FLAKY, Change.ADDED)


@dataclass(frozen=True)
class Target:
    """A release of torch to go to: its lock and what the tests do there, or why the two cannot be installed together.
    `explained` are its new failures, by id.
    """

    torch: str
    lock: str = ""
    refusal: str = ""
    comparison: Comparison | None = None
    explained: Mapping[str, Explanation] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        return self.comparison.answer if self.comparison else Answer.NOT_YET

    @property
    def new_failures(self) -> dict[str, str]:
        """Their words, by id."""
        found = self.comparison
        return {id_: words_of(found.target, id_) for id_ in found.ids(Change.NEWLY_FAILING)} if found else {}


@dataclass(frozen=True)
class Report:
    """`base` is the lock of the project as it is. `tests` is the command, `host` where it was run."""

    base: str
    targets: tuple[Target, ...]
    tests: str
    host: str

    @property
    def torch(self) -> str:
        return versions_in(self.base)["torch"]

    @property
    def answer(self) -> Answer:
        """The worst of them."""
        return max((target.answer for target in self.targets), key=list(Answer).index)

    def sentence(self, target: Target) -> str:
        """Of one target, the answer first."""
        found, there = target.comparison, f"on torch {target.torch}"
        if found is None:
            return f"Not yet: torch {target.torch} cannot be installed with what the project has"
        if any(found.problems):
            sides = zip((self.torch, target.torch), found.problems, strict=True)
            told = (f"the tests could not be run on torch {name}: {why}" for name, why in sides if why)
            return f"Cannot say: {'; '.join(told)}"
        new, both = found.ids(Change.NEWLY_FAILING), len(found.ids(Change.PASSES))
        ran = many(len(found.changes) - len(found.ids(Change.SKIPPED)), "test")
        if target.answer is Answer.NOT_YET:
            known = sum(explained.known for explained in target.explained.values())
            fail = "fails" if len(new) == 1 else "fail"
            return (
                f"Not yet: {len(new)} of your {ran} {fail} {there} and not on {self.torch}; {known} of them known here"
            )
        if target.answer is Answer.OK:
            return f"Ok: no test newly fails {there}; {both} of your {ran} pass there and on {self.torch}"
        open_ = len(found.unsure) or len(new)
        why = f"{many(open_, 'test')} cannot be settled" if open_ else "no test passes on both"
        return f"Cannot say: {why} between torch {self.torch} and {target.torch}"


def lines_of(report: Report) -> Iterator[str]:
    for target in report.targets:
        yield from [*wrapped(f"{report.sentence(target)}.", later="  "), *_details(report, target), ""]
    last = f"{report.tests} on {report.host or 'no machine'}. Resumable; nothing of your checkout was changed."
    yield from wrapped(last, later="  ")
    yield "Pull request note: --format markdown       Everything: --json"
    if not all(explained.known for target in report.targets for explained in target.explained.values()):
        yield "A failure that nobody knows:  knowngood try FILE --keep pytorch-NUMBER       makes it a candidate row"


def _details(report: Report, target: Target) -> list[str]:
    """The tests that decide, what else differs, and what moved with torch."""
    found = target.comparison
    if found is None:
        return wrapped(one_line(target.refusal), "  ", "  ")
    blocks = [["", *_block(target, found, id_)] for id_ in (*found.ids(Change.NEWLY_FAILING), *found.unsure)]
    lines, shown = fitting(blocks, _ROOM)
    more = [f"{len(blocks) - shown} more: --json"] if shown < len(blocks) else []
    rest = [*_rest(found), _moved(report, target)]
    return [*lines, *more, "", *chain.from_iterable(wrapped(words, later="  ") for words in rest)]


def _block(target: Target, found: Comparison, id_: str) -> Iterator[str]:
    (was, runs), (fails, of) = failures(found.base, id_), failures(found.target, id_)
    how = {
        Change.NEWLY_FAILING: f"fails {fails} of {of}",
        Change.UNSETTLED: f"fails {was} of {runs} before and {fails} of {of} after: flaky",
        Change.GONE: "passes before, and is not run after",
    }
    yield f"{one_line(id_)}    {how[found.changes[id_]]}"
    if id_ in target.explained:
        words = error_line(target.new_failures[id_].splitlines())
        yield from wrapped(one_line(words[:300]), "    ", "    ")
        yield from (f"  {line}" for line in _meaning(target.explained[id_]))


def _meaning(explained: Explanation) -> Iterator[str]:
    """The row of the catalogue that it is, with what helps; or what an installation means by it; or neither."""
    if (match := explained.sure) is not None:
        yield from wrapped(f"{match.issue}: {match.title}", later="  ")
        for cure in helping(match)[:1]:
            yield from snippet_in_short(cure.body, cure.title)
            if match.cures_on and cure.verdict is WorkaroundVerdict.EFFECTIVE:
                yield f"    works on {match.cures_on.build}"
    elif explained.meanings and explained.meanings[0].strength is Strength.SURE:
        yield from [*wrapped(explained.meanings[0].title), f"    {explained.meanings[0].command}"]
    yield from (line for message in explained.wheel for line in wrapped(english(message)))
    if not explained.known:
        yield "not known here"


def _rest(found: Comparison) -> Iterator[str]:
    yield "   ".join(f"{words}: {len(found.ids(change))}" for change, words in _COUNTED.items() if found.ids(change))
    for change, ids in ((change, found.ids(change)) for change in _LISTED):
        more = f" and {len(ids) - _NAMED} more" if ids[_NAMED:] else ""
        yield f"{_COUNTED[change]}: {', '.join(map(one_line, ids[:_NAMED]))}{more}" if ids else ""
    if found.otherwise:
        yield f"fail on both, otherwise now, which may hide a new failure: {len(found.otherwise)}"


def _moved(report: Report, target: Target) -> str:
    after = versions_in(target.lock)
    moved, of_cuda = moves(versions_in(report.base), after)
    moved += [f"{many(of_cuda, 'package')} of CUDA"] if of_cuda else []
    return f"moved with torch {report.torch} -> {after['torch']}: {', '.join(moved) or 'nothing'}"


# -- Markdown and JSON -------------------------------------------------------------------------------------------------


def markdown_of(report: Report) -> Iterator[str]:
    """The note for a pull request, with the table for a README."""
    yield from (f"**{escaped(report.sentence(target))}.**\n" for target in report.targets)
    yield from [
        "| torch | passed | failed | skipped | newly failing | answer |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    run = [(target, target.comparison) for target in report.targets if target.comparison]
    rows = [[report.torch, *_counts(found.base), "", "as it is"] for _, found in run[:1]]
    rows += [
        [target.torch, *_counts(found.target), str(len(found.ids(Change.NEWLY_FAILING))), target.answer]
        for target, found in run
    ]
    rows += [[target.torch, "", "", "", "", target.answer] for target in report.targets if not target.comparison]
    yield from (f"| {' | '.join(row)} |" for row in rows)
    for target in report.targets:
        details = (escaped(line.strip()) for line in _details(report, target) if line)
        yield from ["", f"torch {target.torch}", "", *(f"- {line}" for line in details)]
    tests = report.tests.replace("`", "'")
    yield from ["", f"`{tests}` on {escaped(report.host)}. Measured with `knowngood try-bump`."]


def _counts(side: Side) -> list[str]:
    """Of the run of the whole suite."""
    counts = Counter(side[0].outcomes.values() if side and not side[0].problem else ())
    return [str(counts[outcome]) for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)]


def as_body(report: Report) -> dict[str, Any]:
    targets = [_target_body(report, target) for target in report.targets]
    body = {"answer": report.answer.value, "torch": report.torch, "tests": report.tests, "host": report.host}
    return {**body, "targets": targets}


def _target_body(report: Report, target: Target) -> dict[str, Any]:
    found, after = target.comparison, versions_in(target.lock) if target.lock else {}
    body: dict[str, Any] = {"torch": target.torch, "answer": target.answer.value, "sentence": report.sentence(target)}
    body |= {"refusal": target.refusal, "packages": after, "moved": moves(versions_in(report.base), after)[0]}
    if found is None:
        return body
    return {
        **body,
        "changes": {change.value: list(found.ids(change)) for change in Change},
        "fails_otherwise": list(found.otherwise),
        "new_failures": [
            {
                "id": id_,
                **dict(zip(("fails", "runs"), failures(found.target, id_), strict=True)),
                "text": words,
                "explanation": target.explained.get(id_),
            }
            for id_, words in target.new_failures.items()
        ],
        "seconds": [run.end.seconds for side in (found.base, found.target) for run in side],
    }
