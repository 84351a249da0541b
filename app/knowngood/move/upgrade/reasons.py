"""The decision on candidates that are rated, the sentences that say why, and what it takes to say more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_names import article_of
from knowngood.domain.verdicts.known import Known
from knowngood.move.upgrade.candidates import (
    LEAST,
    Candidate,
    Message,
    Rating,
    Tally,
    weight,
)


class UpgradeDecision(StrEnum):
    GO = "go"
    STAY = "stay"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class FindOut:
    """Measurements that are needed before more can be said, as they are typed; `what` names it with its price."""

    what: Message
    commands: tuple[str, ...]


def reason_of(one: Candidate, best: Candidate | None, base: Candidate) -> Message:
    """Say what the rating of a candidate rests on, beside the one that is recommended and the build one is on."""
    gained = one.counts[Tally.GAINED]
    match one.rating:
        case Rating.HERE:
            return _here(one)
        case Rating.RECOMMENDED:
            confirmed = sum(1 for item in one.of(Tally.GAINED) if item.is_confirmed)
            return Message(
                "of the {n} gained, on two runs or more on both sides: {confirmed}", n=gained, confirmed=confirmed
            )
        case Rating.ALSO_GOOD:
            return _behind(one, best or one)
        case Rating.TOO_NEW:
            return _too_new(one)
        case Rating.NOT_CONFIRMED:
            return Message(
                "{n} gained, each on a single run (to confirm: about {minutes} min)",
                n=gained,
                minutes=one.doubtful.minutes,
            )
        case Rating.MAY_LOSE:
            return _may_lose(one)
        case Rating.NO_GAIN:
            return _no_gain(gained, one.counts[Tally.LOST])
        case Rating.LOSES:
            return _loses(one)
        case Rating.NOT_ENOUGH:
            return _open(one, base)


def _may_lose(one: Candidate) -> Message:
    if one.untried.count:
        return Message("{n} lost, workaround not tried there", n=one.untried.count)
    return Message("{n} fail there that are not known before", n=one.counts[Tally.NOT_KNOWN_BEFORE])


def _no_gain(gained: int, lost: int) -> Message:
    if not gained:
        return Message("gains nothing")
    return Message("the {n} gained weigh no more than the {m} lost, which need a workaround", n=gained, m=lost)


def _here(base: Candidate) -> Message:
    if base.coverage >= LEAST or not base.missing.count:
        return Message("where you are")
    return Message(
        "where you are; too little to compare: run {n} (about {minutes} min)",
        n=base.missing.count,
        minutes=base.missing.minutes,
    )


def _behind(one: Candidate, best: Candidate) -> Message:
    """The first thing of those with a number in which it stands behind the one that is recommended."""
    for tally, words in _BEHIND_WORDS.items():
        n, m = one.counts[tally], best.counts[tally]
        if n != m:
            return Message(words, n=n, m=m, best=best.build.id)
    return Message(
        "as good: {best} is preferred as the newer release, or the wheel of the default index", best=best.build.id
    )


_BEHIND_WORDS = {
    Tally.GAINED: "also good: {n} gained, {m} on {best}",
    Tally.LOST: "also good: {n} lost with a workaround, {m} on {best}",
    Tally.FAILS: "also good: {n} fail without a workaround known to help, {m} on {best}",
    Tally.NOT_KNOWN: "also good: {n} not known, {m} on {best}",
    Tally.NEEDS_WORKAROUND: "also good: {n} need a workaround, {m} on {best}",
}


def _too_new(one: Candidate) -> Message:
    age = one.age
    if age is None:
        return Message(_UNDATED_WORDS, best=one.build.id, n=one.counts[Tally.GAINED])
    return Message(
        _TOO_NEW_WORDS,
        best=one.build.id,
        n=one.counts[Tally.GAINED],
        reported=age.reported,
        minor=age.minor,
        days=age.days,
        read=age.read or "?",
    )


_UNDATED_WORDS = "{best} gains {n}, but the day of its release is not known, and so not whether it is too new to judge."


_TOO_NEW_WORDS = (
    "{best} gains {n}, but is too new to judge: {minor} is {days} days old, and {reported} issues were reported since "
    "(upstream was read on {read})."
)


def _loses(one: Candidate) -> Message:
    lost = one.lost_for_good
    silent = sum(1 for item in lost if item.is_silent)
    if silent:
        return Message(
            "{n} lost without a workaround, {silent} of them with wrong numbers and no error",
            n=len(lost),
            silent=silent,
        )
    return Message("{n} lost without a workaround", n=len(lost))


def _open(one: Candidate, base: Candidate) -> Message:
    if not one.applicable:
        return Message("nothing that you watch can exist there")
    if not one.counts[Tally.NOT_KNOWN]:
        return Message("nothing to compare with: {start} is hardly measured", start=base.build.id)
    if not one.missing.count:
        return Message("not enough measured: {n} have no answer", n=one.counts[Tally.NOT_KNOWN])
    return Message(
        "not enough measured: {n} have no answer (run {count}: about {minutes} min)",
        n=one.counts[Tally.NOT_KNOWN],
        count=one.missing.count,
        minutes=one.missing.minutes,
    )


_Answer = tuple[UpgradeDecision, tuple[Message, ...], tuple[FindOut, ...]]


def decide(judged: Sequence[Candidate], base: Candidate, newer: Sequence[Build], enough: float) -> _Answer:
    """The answer, its reasons, and what it takes to say more."""
    best = next((one for one in judged if one.rating is Rating.RECOMMENDED), None)
    if best is not None:
        return UpgradeDecision.GO, tuple(_praise(best)), ()
    new = next((one for one in judged if one.rating is Rating.TOO_NEW), None)
    if new is not None:
        return UpgradeDecision.CANNOT_SAY, (new.why,), ()
    start = base.build.id
    if not newer:
        return _stay(Message("No newer build is in the catalogue."))
    if not judged:
        return _stay(Message("Each of the {n} newer builds breaks a constraint.", n=len(newer)))
    first = judged[0]
    if base.coverage < LEAST:
        lacking = (base, first) if first.assurance < enough else (base,)
        why = (*_hardly_measured(base), *_in_its_place(base, judged, enough))
        return UpgradeDecision.CANNOT_SAY, why, tuple(map(find_out_on, lacking))
    if not any(item.fails for item in base.items):
        return _stay(Message("Nothing that you watch fails on {start}.", start=start))
    return _without_a_good_one(judged, base)


def unmeasured_gpu(hardware: str, name: str, known: Known) -> Message:
    """Of a GPU on which nothing was measured: what the wheels' lists say."""
    found = known.serving(hardware)
    torch = found[-1].torch if found else ""
    return Message(_UNMEASURED_WORDS[article_of(name)][bool(found)], name=name, torch=torch)


_UNMEASURED_WORDS = {
    "a": (
        "Nothing was measured on a {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on a {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
    "an": (
        "Nothing was measured on an {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on an {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
    "": (
        "Nothing was measured on {name}, and no tested wheel is known to hold code for it.",
        "Nothing was measured on {name}; the newest tested wheel that holds code for it is {torch}.",
    ),
}


def _stay(why: Message) -> _Answer:
    return UpgradeDecision.STAY, (why,), ()


def find_out_on(one: Candidate) -> FindOut:
    """The measurements that give an answer on a build."""
    said = Message(
        "On {build} without an answer: {n} (about {minutes} min)",
        build=one.build.id,
        n=one.missing.count,
        minutes=one.missing.minutes,
    )
    return FindOut(said, one.missing.commands)


def _hardly_measured(base: Candidate) -> Iterator[Message]:
    start, missing = base.build.id, base.missing
    if not base.applicable:
        yield Message("Nothing that you watch can exist on {start}.", start=start)
        return
    yield Message(
        _HARDLY_WORDS[base.from_cpu > 0],
        start=start,
        measured=base.measured,
        applicable=base.applicable,
        n=base.from_cpu,
    )
    if missing.count:
        yield Message("To compare, run {n} there (about {minutes} min).", n=missing.count, minutes=missing.minutes)


def _in_its_place(base: Candidate, judged: Sequence[Candidate], enough: float) -> Iterator[Message]:
    """Whoever starts from a build that is hardly measured may mean a patch of it that is, and can land somewhere."""
    patch = next((one for one in judged if one.build.minor == base.build.minor and one.coverage >= LEAST), None)
    if patch is not None:
        yield Message("{build} is measured: name it if that is what you have.", build=patch.build.id)
    settled = [one for one in judged if one.is_settled and one.assurance >= enough and one.applicable]
    if settled:
        clean = min(settled, key=lambda one: (weight(one.of(Tally.FAILS)), weight(one.of(Tally.NEEDS_WORKAROUND))))
        yield Message(
            "What you gain is not known; the cleanest settled one to land on is {build}: {n} fail there without a "
            "workaround, and {m} with one.",
            build=clean.build.id,
            n=clean.counts[Tally.FAILS],
            m=clean.counts[Tally.NEEDS_WORKAROUND],
        )


_HARDLY_WORDS = (
    "{start} is hardly measured: {measured} of {applicable} have an answer there.",
    (
        "{start} is hardly measured: {measured} of {applicable} were run on what is asked for, and {n} more have an "
        "answer of the CPU."
    ),
)


def _praise(best: Candidate) -> Iterator[Message]:
    counts = best.counts
    if best.age and not best.is_settled:
        yield Message("Too new to judge ({n} issues reported since its release)", n=best.age.reported)
    yield Message("{n} gained", n=counts[Tally.GAINED])
    if counts[Tally.LOST]:
        yield Message(_LOST_WORDS[counts[Tally.LOST] > 1], n=counts[Tally.LOST])
    else:
        yield Message("none lost")
    for tally, (one, several) in _ALSO_WORDS.items():
        if counts[tally]:
            yield Message(several if counts[tally] > 1 else one, n=counts[tally])


_LOST_WORDS = ("{n} lost (it has a workaround)", "{n} lost (each has a workaround)")


_ALSO_WORDS = {
    Tally.NEW: ("{n} fails in new features", "{n} fail in new features"),
    Tally.NOT_KNOWN_BEFORE: ("{n} not known before", "{n} not known before"),
    Tally.NOT_KNOWN: ("{n} not known there", "{n} not known there"),
}


def _without_a_good_one(judged: Sequence[Candidate], base: Candidate) -> _Answer:
    """To stay is said only where no measured candidate could turn out to be good."""
    hopeful = next((one for one in judged if one.rating in {Rating.MAY_LOSE, Rating.NOT_CONFIRMED}), None)
    if hopeful is not None:
        return _hopeful(hopeful, base)
    first = judged[0]
    gained, best = first.counts[Tally.GAINED], first.build.id
    match first.rating:
        case Rating.NOT_ENOUGH if not first.applicable:
            said = Message("Nothing that you watch can exist on {start}.", start=best)
            return UpgradeDecision.CANNOT_SAY, (said,), ()
        case Rating.NOT_ENOUGH:
            said = Message(
                "No newer build is measured enough: most is known of {best}, {measured} of {applicable}.",
                best=best,
                measured=first.measured,
                applicable=first.applicable,
            )
            return UpgradeDecision.CANNOT_SAY, (said,), (find_out_on(first),)
        case Rating.LOSES:
            return _stay(
                Message(
                    "Every newer build with enough measured loses something without a workaround: the best, {best}, "
                    "gains {n} and loses {m} so.",
                    best=best,
                    n=gained,
                    m=len(first.lost_for_good),
                )
            )
        case _ if gained:
            return _stay(
                Message(
                    "On no newer build with enough measured does what is gained outweigh what newly needs a "
                    "workaround: on the best, {best}, {n} are gained and {m} lost, each with a workaround.",
                    best=best,
                    n=gained,
                    m=first.counts[Tally.LOST],
                )
            )
        case _:
            return _stay(Message("No newer build with enough measured gains anything: the best is {best}.", best=best))


def _hopeful(one: Candidate, base: Candidate) -> _Answer:
    """Of a candidate that may turn out to be good: why it may not, and what would tell."""
    build, gained = one.build.id, one.counts[Tally.GAINED]
    if one.rating is Rating.NOT_CONFIRMED:
        why = Message("{best} gains {n}, but each of them rests on a single run.", best=build, n=gained)
        what = Message(
            "To confirm {n} on both sides (about {minutes} min)", n=one.doubtful.count, minutes=one.doubtful.minutes
        )
        find_out = FindOut(what, one.doubtful.commands)
    elif one.untried.count:
        n, minutes = one.untried.count, one.untried.minutes
        why = Message(
            "{best} gains {n}, but {m} are lost, and their workarounds were not tried there.",
            best=build,
            n=gained,
            m=n,
        )
        what = Message(
            "On {build} workarounds not tried: of {n} (about {minutes} min)", build=build, n=n, minutes=minutes
        )
        find_out = FindOut(what, one.untried.commands)
    else:
        why = Message(
            "{best} gains {n}, but {m} fail there that are not known before: each may be a loss.",
            best=build,
            n=gained,
            m=one.counts[Tally.NOT_KNOWN_BEFORE],
        )
        find_out = find_out_on(base)
    return UpgradeDecision.CANNOT_SAY, (why,), (find_out,)
