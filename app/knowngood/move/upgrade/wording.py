"""Words that all forms of an upgrade's answer share: the answer itself, what to install, what becomes of
workarounds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from knowngood.domain.builds.architectures import oldest_driver
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Workaround
from knowngood.domain.message import Message, joined
from knowngood.domain.verdicts.verdict import WorkaroundFinding
from knowngood.domain.vocabulary import many
from knowngood.environments.resolve import index_of_variant
from knowngood.move.pair import Group, IssuePair, WorkaroundTurn
from knowngood.move.upgrade.candidates import Candidate, Rating, Tally
from knowngood.move.upgrade.constraints import BY_WHEELS, companions_of
from knowngood.move.upgrade.ranking import UpgradeAdvice
from knowngood.move.upgrade.reasons import UpgradeDecision

RATING_WORDS: Mapping[Rating, str] = {
    Rating.HERE: "where you are",
    Rating.RECOMMENDED: "recommended",
    Rating.ALSO_GOOD: "also good",
    Rating.TOO_NEW: "too new to judge",
    Rating.NOT_CONFIRMED: "to be confirmed",
    Rating.MAY_LOSE: "may lose something",
    Rating.NO_GAIN: "gains too little",
    Rating.LOSES: "loses something",
    Rating.NOT_ENOUGH: "not enough measured",
}

COLUMN_WORDS: Mapping[Tally, str] = {
    Tally.PASSES: "passes",
    Tally.NEEDS_WORKAROUND: "workaround",
    Tally.FAILS: "fails",
    Tally.NOT_KNOWN: "not known",
    Tally.GAINED: "gained",
    Tally.LOST: "lost",
    Tally.NEW: "new",
}
"""Heads of the columns that are counts; `measured` follows them."""

MEASURED_WORDS = "measured"

REPORTED_WORDS = "reported since"
"""The last column: issues of the catalogue first reported after the release came out."""

SECTION_WORDS: Mapping[Tally, str] = {
    Tally.LOST: "Lost: passed, and fails there",
    Tally.GAINED: "Gained: failed, and passes there",
    Tally.NEW: "Fails in new features",
    Tally.NOT_KNOWN_BEFORE: "Fails there, not known before",
    Tally.NOT_KNOWN: "Not known there",
    Tally.FAILS: "Still fails",
    Tally.BIGGER: "Takes more memory",
    Tally.MORE_WORK: "Does more work",
    Tally.SLOWER: "Takes longer",
    Tally.NEEDS_WORKAROUND: "Still needs a workaround",
    Tally.PASSES: "Passes too",
    Tally.DOES_NOT_APPLY: "Cannot exist there",
}

_BY_GROUP = {Group.NEWLY_BROKEN: Tally.LOST, Group.FIXED: Tally.GAINED, Group.NEW: Tally.NEW}


def sections(candidate: Candidate) -> Mapping[Tally, Sequence[IssuePair]]:
    """Its items, each once: by what turned, and else by what they do there. None is empty."""
    by_tally = grouped(candidate.items, _section)
    return {tally: by_tally[tally] for tally in SECTION_WORDS if tally in by_tally}


def _section(item: IssuePair) -> Tally:
    if item.group is Group.NOT_KNOWN_BEFORE and item.fails:
        return Tally.NOT_KNOWN_BEFORE
    return _BY_GROUP.get(item.group, Tally(item.prospect.value))


def measured(candidate: Candidate) -> Message:
    n, m = candidate.from_cpu, candidate.from_python
    key = f"measured_of{'_python' if m else ''}{'_and' if m and n else ''}{'_cpu' if n else ''}"
    return Message(key, measured=candidate.measured, applicable=candidate.applicable, n=n, m=m)


def figures(candidate: Candidate, *, untried: str, eased: str) -> Iterator[str]:
    """The counts of a candidate in the order of COLUMN_WORDS. In brackets stands how many of the failures have a
    workaround that was not `untried` there, and how many of the losses are `eased` by one.
    """
    counts = candidate.counts
    parts = {
        Tally.FAILS: (untried, counts[Tally.UNTRIED]),
        Tally.LOST: (eased, counts[Tally.LOST_WITH_WORKAROUND]),
    }
    for tally in COLUMN_WORDS:
        words, n = parts.get(tally, ("", 0))
        yield f"{counts[tally]} ({words.format(n=n)})" if n else str(counts[tally])


def verdict(advice: UpgradeAdvice) -> Message:
    """The first sentence: what to do. As on the page of a release, one that is too new to judge is for its fixes."""
    match advice.decision:
        case UpgradeDecision.GO if advice.best:
            build = advice.best.build.in_words
            packages = tuple(f"{name} {release}" for name, release in advice.best.packages.items())
            is_too_new = advice.best.age is not None and not advice.best.is_settled
            key = f"go{'_with' if packages else ''}{'_for_fixes' if is_too_new else ''}"
            return Message(key, build=build, packages=packages)
        case UpgradeDecision.STAY:
            return Message("stay", build=advice.start.in_words)
        case _:
            return Message("cannot_say")


def because(advice: UpgradeAdvice) -> Message:
    """The reasons that follow it, in one sentence or two, what stands beside them, and what of the environment's
    packages comes along.
    """
    best, why = advice.best, advice.why
    if best is not None:
        rests_on = Message("measured_there_and_here", there=measured(best), here=measured(advice.base))
        why = (Message("stop", first=joined("then", why), rest=rests_on),)
    return joined("sentences", (*why, *advice.beside, *_packages(advice)))


def _packages(advice: UpgradeAdvice) -> Iterator[Message]:
    """Name the releases of packages that are made for one torch: what moves with that of the first candidate, by what
    wheels ask for; by what upstream says, what goes with each candidate, newest first; and for which there is none.
    """
    python = advice.constraints.python or advice.start.python
    candidates = [candidate.build for candidate in advice.candidates]
    newer = [build for build in advice.newer if build in candidates or build.python == python]
    going = {
        build.id: {each.package: each for each in companions_of(build, advice.constraints, advice.start)}
        for build in newer
    }
    bound = {name: companion for companions in going.values() for name, companion in companions.items()}
    first = advice.candidates[0] if advice.candidates and advice.best is None else None
    moving = tuple(f"{name} {release}" for name, release in (first.packages if first else {}).items())
    if first and moving:
        yield Message("moves_with_torch", torch=first.build.requirement, packages=moving)
    for name in (name for name in advice.constraints.packages if name in bound):
        pairs = [
            Message("release_of_package", torch=build.requirement, package=name, release=going[build.id][name].release)
            for build in reversed(newer)
            if build in candidates and name in going[build.id]
        ]
        if pairs and bound[name].source != BY_WHEELS:
            yield Message("built_for_one_minor", package=name, pairs=joined("then", dict.fromkeys(pairs)))
        minors = list(dict.fromkeys(build.minor for build in newer))
        held = [build.minor for build in newer if name not in going[build.id] or going[build.id][name].release]
        above = minors[minors.index(held[-1]) + 1 :] if held else minors
        lacking = (*(minor for minor in minors if minor not in (*held, *above)), *above[:1])
        if lacking:
            key, for_python = "no_package_from" if len(above) > 1 else "no_package_for", python or DEFAULT_PYTHON
            yield Message(key, package=name, minors=lacking, python=for_python, asked=str(bound[name].asked))


def answer(advice: UpgradeAdvice) -> Message:
    return Message("sentences", first=verdict(advice), rest=because(advice))


def situation(advice: UpgradeAdvice) -> str:
    """The question, in one line."""
    must = advice.constraints.in_words
    parts = [f"You are on {advice.start.in_words}.", f"You watch {many(len(advice.watched), 'issue')}."]
    return " ".join([*parts, *([f"Must have: {', '.join(must)}."] if must else [])])


def candidate_in_detail(advice: UpgradeAdvice) -> Candidate | None:
    """The candidate whose issues the answer lists where nobody asks for another: the recommended one; else the first,
    of which at least something is known. None where it could not be compared.
    """
    if advice.best or advice.decision is UpgradeDecision.STAY:
        return advice.best or next(iter(advice.candidates), None)
    return next(
        (candidate for candidate in advice.candidates if candidate.rating in {Rating.MAY_LOSE, Rating.NOT_CONFIRMED}),
        None,
    )


def left_out_by_reason(advice: UpgradeAdvice) -> dict[Message, list[str]]:
    """The builds that break a constraint, in release order, by the first that they break."""
    groups = grouped(advice.left_out, lambda left_out: left_out.reasons[0])
    return {reason: [left_out.build for left_out in alike] for reason, alike in groups.items()}


def changes(start: Build, build: Build) -> list[tuple[str, str, str, str]]:
    """The differences between the two environments: what it is, before, after, and the oldest NVIDIA driver of a new
    major version of CUDA (empty: nothing new).
    """
    old, new = ((side.cuda or "").partition(".")[0] for side in (start, build))
    driver = str(oldest_driver(new) or "") if new and new != old else ""
    rows = (
        ("torch", start.build_id.release, build.build_id.release, ""),
        ("CUDA", start.cuda or "none", build.cuda or "none", driver),
        ("Triton", start.triton or "none", build.triton or "none", ""),
        ("Python", start.python, build.python, ""),
    )
    return [row for row in rows if row[1] != row[2]]


def requirements(build: Build, packages: Mapping[str, str]) -> tuple[str, ...]:
    """Lines of a requirements.txt that install the very wheels that were measured, and these releases of packages."""
    if build.origin == "default":
        lines = [f"torch=={build.requirement}"]
    else:
        lines = [f"--extra-index-url {index_of_variant(build.origin)}", f"torch=={build.torch}"]
    lines += [f"triton=={build.triton}"] if build.is_mismatched and build.triton else []
    return (*lines, *(f"{name}=={release}" for name, release in packages.items()))


def index_of(build: Build) -> Message:
    """The index that the wheels come from, in words, as Markdown."""
    if build.origin == "default":
        return Message("from_pypi", requirement=build.requirement, torch=build.torch)
    return Message("from_index", origin=build.origin)


@dataclass(frozen=True)
class WorkaroundStep:
    """Something to do about one workaround of one issue, and why. `helps` is what was found of one to add or keep."""

    item: IssuePair
    workaround: Workaround
    why: Message | None = None
    helps: WorkaroundFinding | None = None


def steps(candidate: Candidate) -> dict[str, list[WorkaroundStep]]:
    """The steps for each workaround, by what to do: `add` and `keep` are workarounds for what fails on the
    candidate, one for each issue; `remove` are not needed there any more; `avoid` do harm, or no longer help.

    Those in place are not known: those that help on the build one is on stand in.
    """
    needed = [step for item in candidate.of(Tally.NEEDS_WORKAROUND) if (step := _step(item))]
    working = [step for step in needed if step.item.turns.get(step.workaround.id) is WorkaroundTurn.STILL_WORKS]
    return {
        "add": [step for step in needed if step not in working],
        "keep": working,
        "remove": list(_turned(candidate.items, {WorkaroundTurn.NO_LONGER_NEEDED: None})),
        "avoid": list(_turned(candidate.items, _AVOIDED)),
    }


_AVOIDED = {
    WorkaroundTurn.HARMFUL: Message("harmful_there"),
    WorkaroundTurn.STOPPED_WORKING: Message("stopped_there"),
}


def _step(item: IssuePair) -> WorkaroundStep | None:
    """The first that helped on both, so that nothing need be changed; else the first that helps there."""
    turns = item.turns
    working = [id_ for id_ in item.workarounds if turns.get(id_) is WorkaroundTurn.STILL_WORKS]
    chosen = next(iter([*working, *item.workarounds]), "")
    return WorkaroundStep(item, item.issue.workaround(chosen), helps=item.after.workarounds[chosen]) if chosen else None


def _turned(items: Iterable[IssuePair], wanted: Mapping[WorkaroundTurn, Message | None]) -> Iterator[WorkaroundStep]:
    for item in items:
        for workaround in item.issue.workarounds:
            turn = item.turns.get(workaround.id)
            if turn is not None and turn in wanted:
                finding = item.after.workarounds.get(workaround.id)
                why = wanted[turn]
                if why and finding and finding.note:
                    why = Message("because", first=why, said=finding.note)
                yield WorkaroundStep(item, workaround, why)
