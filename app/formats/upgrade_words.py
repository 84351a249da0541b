"""What all forms of an upgrade's answer say: the answer itself, what to install, what becomes of workarounds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.domain.build import Build
from app.domain.compare import WorkaroundTurn
from app.domain.constraints import OLDEST_DRIVER
from app.domain.environment import index_of_variant
from app.domain.issue import Workaround
from app.domain.prospects import Candidate, Item, Prospect, Rating, Said, percent
from app.domain.upgrade import Advice, Decision

Say = Callable[[Said], str]

PROSPECT_WORDS: Mapping[Prospect, str] = {
    Prospect.NEWLY_BROKEN: "newly broken",
    Prospect.STILL_AFFECTED: "still affected",
    Prospect.UNKNOWN: "unknown",
    Prospect.NEEDS_WORKAROUND: "needs a workaround",
    Prospect.FIXED: "fixed",
    Prospect.PASSES: "passes",
    Prospect.DOES_NOT_APPLY: "does not apply",
}

RATING_WORDS: Mapping[Rating, str] = {
    Rating.RECOMMENDED: "recommended",
    Rating.ALSO_GOOD: "also good",
    Rating.NO_GAIN: "gains nothing",
    Rating.BREAKS: "newly broken",
    Rating.NOT_ENOUGH: "not enough measured",
}

COLUMN_WORDS = ("fixed", "still", "new", "cure", "unknown", "measured")
"""Heads of the table of candidates, in the order in which `figures` gives them."""


def figures(candidate: Candidate) -> tuple[str, ...]:
    counts = candidate.counts
    wanted = (
        Prospect.FIXED,
        Prospect.STILL_AFFECTED,
        Prospect.NEWLY_BROKEN,
        Prospect.NEEDS_WORKAROUND,
        Prospect.UNKNOWN,
    )
    return (*(str(counts[prospect]) for prospect in wanted), f"{percent(candidate.coverage)} %")


def verdict(advice: Advice, say: Say = str) -> str:
    """The first sentence: what to do."""
    match advice.decision:
        case Decision.GO if advice.best:
            return say(Said("Go to {build}.", build=advice.best.build.id))
        case Decision.STAY:
            return say(Said("Stay on {build}.", build=advice.start.id))
        case _:
            return say(Said("Cannot say yet."))


def because(advice: Advice, say: Say = str, comma: str = ", ", stop: str = ". ") -> str:
    """What follows it: why, in one sentence or two."""
    if advice.best is None:
        return " ".join(say(part) for part in advice.why)
    measured = Said("{percent} % of your list is measured there.", percent=percent(advice.best.coverage))
    return f"{comma.join(say(part) for part in advice.why)}{stop}{say(measured)}"


def answer(advice: Advice) -> str:
    return f"{verdict(advice)} {because(advice)}"


def situation(advice: Advice) -> str:
    """What was asked, in one line."""
    n = len(advice.watched)
    must = advice.constraints.in_words
    parts = [f"You are on {advice.start.id}.", f"You watch {n} {'issue' if n == 1 else 'issues'}."]
    return " ".join([*parts, *([f"Must have: {', '.join(must)}."] if must else [])])


def left_out_by_reason(advice: Advice) -> dict[str, list[str]]:
    """The builds that break a constraint, in release order, by what they break."""
    found: dict[str, list[str]] = {}
    for one in advice.left_out:
        found.setdefault("; ".join(one.reasons), []).append(one.build.id)
    return found


def about_missing(candidate: Candidate) -> str:
    missing = candidate.missing
    n = missing.count
    return f"about {missing.minutes} min for {n} {'issue' if n == 1 else 'issues'}, one after another"


@dataclass(frozen=True)
class Change:
    """One fact of an environment, on both builds. `driver` is the oldest NVIDIA driver of a new major version of CUDA
    (empty: nothing new).
    """

    name: str
    before: str
    after: str
    driver: str = ""


def changes(start: Build, build: Build) -> tuple[Change, ...]:
    """What differs between the two environments."""
    found = (
        Change("torch", start.torch, build.torch),
        Change("CUDA", start.cuda or "none", build.cuda or "none", _new_driver(start, build)),
        Change("Triton", start.triton or "none", build.triton or "none"),
        Change("Python", start.python, build.python),
    )
    return tuple(one for one in found if one.before != one.after)


def _new_driver(start: Build, build: Build) -> str:
    before, after = ((one.cuda or "").partition(".")[0] for one in (start, build))
    return str(OLDEST_DRIVER.get(int(after), "")) if after and before != after else ""


def requirements(build: Build) -> tuple[str, ...]:
    """Lines of a requirements.txt that install the very wheels that were measured."""
    if build.origin == "default":
        lines = [f"torch=={build.requirement}"]
    else:
        lines = [f"--extra-index-url {index_of_variant(build.origin)}", f"torch=={build.torch}"]
    return (*lines, *([f"triton=={build.triton}"] if build.is_mismatched and build.triton else []))


def index_of(build: Build) -> Said:
    """In words, where the wheels come from, as Markdown."""
    if build.origin == "default":
        return Said(
            "From PyPI, without an extra index: `torch=={requirement}` there is {torch}. An index line of PyTorch's "
            "that stands in the file would bring another CUDA variant.",
            requirement=build.requirement,
            torch=build.torch,
        )
    return Said(
        "The index holds the {origin} wheels; with uv the same is `--torch-backend {origin}`.", origin=build.origin
    )


@dataclass(frozen=True)
class Step:
    """Something to do about one workaround of one issue, and why."""

    item: Item
    workaround: Workaround
    why: str = ""


@dataclass(frozen=True)
class Steps:
    """`add` and `keep` are cures of what fails on the candidate, one for each issue; `remove` are not needed there any
    more; `avoid` do harm, or no longer help.
    """

    add: tuple[Step, ...]
    keep: tuple[Step, ...]
    remove: tuple[Step, ...]
    avoid: tuple[Step, ...]


def steps(candidate: Candidate) -> Steps:
    """What becomes of workarounds; those in place are not known, so the known cures of the build one is on count."""
    cures = [step for item in candidate.of(Prospect.NEEDS_WORKAROUND) if (step := _cure(item))]
    kept = [step for step in cures if _turn(step) is WorkaroundTurn.STILL_WORKS]
    return Steps(
        add=tuple(step for step in cures if step not in kept),
        keep=tuple(kept),
        remove=tuple(_turned(candidate.items, {WorkaroundTurn.NO_LONGER_NEEDED: ""})),
        avoid=tuple(_turned(candidate.items, _AVOIDED)),
    )


_AVOIDED = {
    WorkaroundTurn.HARMFUL: "does harm there",
    WorkaroundTurn.STOPPED_WORKING: "helps now, and does not there",
}


def _turn(step: Step) -> WorkaroundTurn | None:
    return step.item.pair.workarounds.get(step.workaround.id)


def _cure(item: Item) -> Step | None:
    """The first that helped on both, so that nothing need be changed; else the first that helps there."""
    turns = item.pair.workarounds
    kept = [id_ for id_ in item.cures if turns.get(id_) is WorkaroundTurn.STILL_WORKS]
    chosen = next(iter([*kept, *item.cures]), "")
    return Step(item, item.issue.workaround(chosen)) if chosen else None


def _turned(items: Iterable[Item], wanted: Mapping[WorkaroundTurn, str]) -> Iterator[Step]:
    for item in items:
        for one in item.issue.workarounds:
            turn = item.pair.workarounds.get(one.id)
            if turn is not None and turn in wanted:
                finding = item.after.workarounds.get(one.id)
                note = finding.note if finding and wanted[turn] else ""
                yield Step(item, one, ": ".join(part for part in (wanted[turn], note) if part))
