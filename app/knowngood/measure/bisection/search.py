"""Between which two builds of one line an issue came or went, found in few jobs.

The search is a function of what is known: given the points of a line it names the next build to ask, or the answer. So
it can be stopped and gone on with at any time, and what is stored is never asked again. A point that tells nothing
(no answer, no such build, another failure) is stepped around: the answer is then an interval with that point inside.

Nothing here assumes that a line changes once. Evidence of a second change ends the search, and all changes are named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, takewhile

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.planning import CONFIRMING, SETTLING, is_failing
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import FAILING, Cell, Verdict
from knowngood.domain.vocabulary import many
from knowngood.move.pair import passes_needed

_ENDS = 2  # both are asked, whatever lies between


class SearchOutcome(StrEnum):
    FOUND = "found"
    """One change is known, and nothing between its two sides is left to ask."""
    NOT_MONOTONE = "not_monotone"
    """The evidence shows more than one change."""
    ENDS_AGREE = "ends_agree"
    """Whatever was asked passes, or whatever was asked fails."""
    CANNOT_SAY = "cannot_say"
    """Fewer than two builds of the line give an answer."""


@dataclass(frozen=True)
class Point:
    """A build of the line and its cell. `is_open` says that a job could tell more: what `run` would ask, and this
    search has not asked in vain yet. Of a stale cell that is open nothing is taken for granted.
    """

    build: Build
    cell: Cell
    is_open: bool = False
    is_stale: bool = False

    @property
    def fails(self) -> bool | None:
        """Whether the cell fails: flaky is failing, for the issue is there. None where it does not tell."""
        return is_failing(self.cell.verdict)

    @property
    def is_settled(self) -> bool:
        return self.fails is not None and not (self.is_stale and self.is_open)

    @property
    def attempts(self) -> int:
        """How many attempts its answer rests on: of the variants that decide it, the one asked most where it fails, and
        the one asked least where it passes.
        """
        deciding = FAILING if self.fails else {Verdict.NOT_AFFECTED}
        counts = [variant.n for variant in self.cell.variants if variant.verdict in deciding]
        return (max if self.fails else min)(counts, default=0)


@dataclass(frozen=True)
class Search:
    """`points` are the line from one end to the other, oldest first. `jobs` were run for it so far; `full` asks every
    point that can be asked. Of one that `is_over` nothing more is asked: somebody stopped it, or only wants to know.
    """

    points: tuple[Point, ...]
    jobs: int = 0
    full: bool = False
    is_over: bool = False

    @property
    def most_jobs(self) -> int:
        """Both ends, and one job for each halving of the line."""
        return len(self.points) if self.full else most_jobs(len(self.points))


def most_jobs(builds: int) -> int:
    """ceil(log2 n) + 2, which no search of `builds` builds exceeds."""
    return (builds - 1).bit_length() + _ENDS


@dataclass(frozen=True)
class ChangePoint:
    """Two builds with opposite answers; what lies `between` them does not tell."""

    before: Point
    after: Point
    between: tuple[Point, ...]

    @property
    def breaks(self) -> bool:
        return self.after.fails is True

    @property
    def interval(self) -> str:
        return f"({self.before.build.label}, {self.after.build.label}]"

    @property
    def missing(self) -> str:
        """The attempts that its two sides still need before it counts as confirmed, in words; empty where it does.

        Three attempts on both sides, as `run --confirm` asks for; ten where one is flaky, and beside a flaky failure so
        many passes that they are no luck.
        """
        sides = (self.before, self.after)
        wanted = needed_attempts(self)
        few = [
            f"{side.build.label} rests on {many(side.attempts, 'attempt')}" for side in sides if side.attempts < wanted
        ]
        if few:
            return f"{' and '.join(few)}, of {wanted} that a change asks for"
        failing, passing = (self.after, self.before) if self.breaks else (self.before, self.after)
        more = passes_needed(failing.cell, passing.cell)
        if more:
            return (
                f"{failing.build.label} fails only now and then: "
                f"{more} passes of {passing.build.label} would tell it from luck"
            )
        return ""


def needed_attempts(change: ChangePoint) -> int:
    is_flaky = Verdict.FLAKY in {change.before.cell.verdict, change.after.cell.verdict}
    return SETTLING if is_flaky else CONFIRMING


@dataclass(frozen=True)
class SearchResult:
    """`changes` are all that the evidence knows, oldest first. Where there is one it is what was looked for."""

    kind: SearchOutcome
    changes: tuple[ChangePoint, ...]
    search: Search

    @property
    def ends_without_answer(self) -> tuple[Point, ...]:
        """Points outside all that have an answer: the requested ends, where they give none."""
        telling = [at for at, point in enumerate(self.search.points) if point.fails is not None]
        if not telling:
            return self.search.points
        return self.search.points[: telling[0]] + self.search.points[telling[-1] + 1 :]


def next_step(search: Search) -> int | SearchResult:
    """The place on the line of the build to ask next, or the result. Guarantees, held by properties in tests: at most
    `most_jobs` asks; no point is asked that is settled; a change is named only between two builds with opposite
    answers, with all that lies between them.
    """
    is_over = search.is_over or search.jobs >= search.most_jobs
    at = None if is_over else _next(search)
    return answer_of(search) if at is None else at


def _next(search: Search) -> int | None:
    points = search.points
    if search.full:
        return next((at for at, point in enumerate(points) if _can_ask(point)), None)
    changes = _changes([at for at, point in enumerate(points) if point.is_settled], points)
    if len(changes) > 1:
        return None
    for places in (range(len(points)), range(len(points) - 1, -1, -1)):
        end = points[places[0]]
        if changes and not end.is_settled and not _can_ask(end):
            continue  # it gives no answer, and a change is known: asking its neighbours would find nothing new
        at = _near_end(points, places)
        if at is not None:
            return at
    return _halving(points, changes[0]) if changes else None


def _near_end(points: Sequence[Point], places: Sequence[int]) -> int | None:
    """The point to ask so that one end of the line tells; `places` go inwards from it. None where it does, or nothing
    can.

    Where the end gives no answer the steps inwards double, up to half of what is left: often a whole stretch of builds
    gives none, because a package has no wheels for them.
    """
    outside = list(takewhile(lambda at: not points[at].is_settled, places))
    can_ask = [depth for depth, at in enumerate(outside) if _can_ask(points[at])]
    if not can_ask:
        return None
    deepest = max((depth for depth in range(len(outside)) if depth not in can_ask), default=-1)
    aim = min(2 * deepest + 1, (deepest + len(outside)) // 2) if can_ask[0] else 0
    return outside[next((depth for depth in can_ask if depth >= aim), can_ask[-1])]


def _halving(points: Sequence[Point], change: ChangePoint) -> int | None:
    """The middle one of what can be asked between the two sides of the one change that is known."""
    between = [at for at in range(points.index(change.before) + 1, points.index(change.after)) if _can_ask(points[at])]
    return between[len(between) // 2] if between else None


def _can_ask(point: Point) -> bool:
    return point.is_open and not point.is_settled


def _changes(places: Sequence[int], points: Sequence[Point]) -> tuple[ChangePoint, ...]:
    """The changes between neighbours among `places`, all of which have an answer."""
    return tuple(
        ChangePoint(points[before], points[after], tuple(points[before + 1 : after]))
        for before, after in pairwise(places)
        if points[before].fails != points[after].fails
    )


def answer_of(search: Search) -> SearchResult:
    """The answer by what is known, as if nothing more were asked. Old evidence counts: it may show a second change."""
    telling = [at for at, point in enumerate(search.points) if point.fails is not None]
    changes = _changes(telling, search.points)
    if len(changes) > 1:
        return SearchResult(SearchOutcome.NOT_MONOTONE, changes, search)
    if changes:
        return SearchResult(SearchOutcome.FOUND, changes, search)
    return SearchResult(SearchOutcome.ENDS_AGREE if len(telling) >= _ENDS else SearchOutcome.CANNOT_SAY, (), search)


def line_between(builds: Sequence[Build], start: Build, end: Build) -> tuple[Build, ...]:
    """The builds of one line from one end to the other, oldest first: the same origin and Python, each with its own
    Triton. On the default index that is the line of releases of `history`. Raises BadRequest where there is no line.
    """
    for build in (start, end):
        if build.is_mismatched:
            raise BadRequest(f"{build.id} has a Triton that is not its own, and stands on no line of builds")
    if start.python != end.python:
        raise BadRequest(f"{start.id} is of Python {start.python} and {end.id} of {end.python}; say --python for both")
    if start.origin != end.origin:
        raise BadRequest(
            f"{start.id} comes from {_place(start)} and {end.id} from {_place(end)}; name two of one origin"
        )
    if start.id == end.id:
        raise BadRequest(f"--from and --to are both {start.id}; name two builds")
    first, last = sorted((start, end), key=lambda build: build.build_id)
    return tuple(
        build
        for build in sorted(builds, key=lambda build: build.build_id)
        if (build.origin, build.python) == (start.origin, start.python)
        and not build.is_mismatched
        and first.build_id <= build.build_id <= last.build_id
    )


def _place(build: Build) -> str:
    return "the default index" if build.origin == "default" else f"the origin {build.origin}"


# -- in words ----------------------------------------------------------------------------------------------------------


def sentences(answer: SearchResult) -> tuple[str, ...]:
    """The answer for people: first what was found, then what limits it, then what to do."""
    findings = _findings(answer)
    where = "" if answer.kind is SearchOutcome.CANNOT_SAY else " outside it"
    unanswered = _without_answer(
        answer.ends_without_answer, where, answer.search, is_wanted=answer.kind is not SearchOutcome.FOUND
    )
    old = [point.build.label for point in answer.search.points if point.is_stale and point.fails is not None]
    stale = [f"the evidence of {', '.join(old)} is old"] if old else []
    return (*findings, *unanswered, *stale)


def _findings(answer: SearchResult) -> list[str]:
    match answer.kind:
        case SearchOutcome.FOUND:
            return [_describe_change(answer.changes[0]), *_limits(answer.changes[0], answer.search)]
        case SearchOutcome.NOT_MONOTONE:
            listed = "; ".join(_describe_change(change) for change in answer.changes)
            more = "" if answer.search.full else ", or ask every build with --full"
            return [
                f"not monotone: {len(answer.changes)} changes are known: {listed}",
                f"bisect one of them with a narrower --from and --to{more}",
            ]
        case SearchOutcome.ENDS_AGREE:
            return [_agree(answer)]
        case SearchOutcome.CANNOT_SAY:
            return ["fewer than two builds of this line give an answer, so that there is nothing between them to find"]


def _describe_change(change: ChangePoint) -> str:
    what = "breaks" if change.breaks else "is fixed"
    return f"{what} in {change.interval}: {_in_words(change.before)}, {_in_words(change.after)}"


def _in_words(point: Point) -> str:
    word = "is flaky" if point.cell.verdict is Verdict.FLAKY else "fails" if point.fails else "passes"
    return f"{word} on {point.build.label}"


def _limits(change: ChangePoint, search: Search) -> list[str]:
    limits = []
    if not change.between:
        first = "first bad" if change.breaks else "first fixed"
        limits.append(f"{first} build: {change.after.build.id}; no known build lies between the two")
    limits += _without_answer(change.between, " in between", search, is_wanted=True)
    if change.missing:
        limits.append(f"not confirmed: {change.missing}; --confirm asks for them")
    return limits


def _without_answer(points: Sequence[Point], where: str, search: Search, *, is_wanted: bool) -> list[str]:
    """Sentences on points without an answer: asked in vain, each with its reason, or not asked. With `is_wanted` they
    would have been asked.
    """
    vain = [point for point in points if not point.is_open]
    lines = [
        f"{point.build.label} gives no answer ({point.cell.verdict}: {english(point.cell.reason)}){where}"
        for point in vain
    ]
    unasked = ", ".join(point.build.label for point in points if point.is_open)
    if not unasked:
        return lines
    used_up = is_wanted and search.jobs >= search.most_jobs
    why = f", for the {search.most_jobs} jobs were used up" if used_up else ""
    again = "; the same question goes on from here" if used_up or (is_wanted and search.is_over) else ""
    return [*lines, f"{unasked}{where}: not asked{why}{again}"]


def _agree(answer: SearchResult) -> str:
    telling = [point for point in answer.search.points if point.fails is not None]
    word = "fail" if telling[0].fails else "pass"
    unknown = [point for point in answer.search.points if point.fails is None and point.is_open]
    ends = f"both ends {word} ({telling[0].build.label} and {telling[-1].build.label})"
    if not unknown:
        return f"{ends}, and so does all that gives an answer between them: there is no change to find"
    return (
        f"{ends}: there is nothing to bisect, although what lies between may differ; "
        f"--full asks the {len(unknown)} builds that were not asked"
    )
