"""The decision on candidates that are rated, the sentences that say why, and what it takes to say more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_names import article_of
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.move.upgrade.candidates import LEAST, Candidate, Rating, Tally, weight
from knowngood.serialization.message_field import MessageField


class UpgradeDecision(StrEnum):
    GO = "go"
    STAY = "stay"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class FindOut:
    """Measurements that are needed before more can be said, as they are typed; `what` names it with its price."""

    what: MessageField
    commands: tuple[str, ...]


def reason_of(candidate: Candidate, best: Candidate | None, base: Candidate) -> Message:
    """Say what the rating of a candidate rests on, next to the recommended one and the build one is on."""
    gained = candidate.counts[Tally.GAINED]
    match candidate.rating:
        case Rating.HERE:
            return _here(candidate)
        case Rating.RECOMMENDED:
            confirmed = sum(1 for item in candidate.of(Tally.GAINED) if item.is_confirmed)
            return Message("of_gained_confirmed", n=gained, confirmed=confirmed)
        case Rating.ALSO_GOOD:
            return _behind(candidate, best or candidate)
        case Rating.TOO_NEW:
            return _too_new(candidate)
        case Rating.NOT_CONFIRMED:
            return Message("gained_unconfirmed", n=gained, minutes=candidate.doubtful.minutes)
        case Rating.MAY_LOSE:
            n = candidate.untried.count
            return Message("lost_untried" if n else "may_be_lost", n=n or candidate.counts[Tally.NOT_KNOWN_BEFORE])
        case Rating.NO_GAIN:
            return Message("gains_too_little" if gained else "gains_nothing", n=gained, m=candidate.counts[Tally.LOST])
        case Rating.LOSES:
            return _loses(candidate)
        case Rating.NOT_ENOUGH:
            return _open(candidate, base)


def _here(base: Candidate) -> Message:
    key = "here" if base.coverage >= LEAST or not base.missing.count else "here_unmeasured"
    return Message(key, n=base.missing.count, minutes=base.missing.minutes)


def _behind(candidate: Candidate, best: Candidate) -> Message:
    """Name the first count in which a candidate is behind the one that is recommended."""
    for tally in _BEHIND:
        n, m = candidate.counts[tally], best.counts[tally]
        if n != m:
            return Message(f"behind_{tally}", n=n, m=m, best=best.build.in_words)
    return Message("behind_nothing", best=best.build.in_words)


_BEHIND = (Tally.GAINED, Tally.LOST, Tally.FAILS, Tally.NOT_KNOWN, Tally.NEEDS_WORKAROUND)


def _too_new(candidate: Candidate) -> Message:
    age = candidate.age
    if age is None:
        return Message("undated", best=candidate.build.in_words, n=candidate.counts[Tally.GAINED])
    return Message(
        "too_new",
        best=candidate.build.in_words,
        n=candidate.counts[Tally.GAINED],
        reported=age.reported,
        minor=age.minor,
        days=age.days,
        read=str(age.read or "?"),
    )


def _loses(candidate: Candidate) -> Message:
    lost = candidate.lost_for_good
    silent = sum(1 for item in lost if item.is_silent)
    return Message("loses_silently", n=len(lost), silent=silent) if silent else Message("loses", n=len(lost))


def _open(candidate: Candidate, base: Candidate) -> Message:
    unknown, missing = candidate.counts[Tally.NOT_KNOWN], candidate.missing
    if not candidate.applicable:
        return Message("cannot_exist_there")
    if not unknown:
        return Message("start_unmeasured", start=base.build.in_words)
    if not missing.count:
        return Message("not_enough", n=unknown)
    return Message("not_enough_run", n=unknown, count=missing.count, minutes=missing.minutes)


_Answer = tuple[UpgradeDecision, tuple[Message, ...], tuple[FindOut, ...]]


def decide(judged: Sequence[Candidate], base: Candidate, newer: Sequence[Build], enough: float) -> _Answer:
    """The answer, its reasons, and what it takes to say more."""
    best = next((candidate for candidate in judged if candidate.rating is Rating.RECOMMENDED), None)
    if best is not None:
        return UpgradeDecision.GO, tuple(_praise(best)), ()
    new = next((candidate for candidate in judged if candidate.rating is Rating.TOO_NEW), None)
    if new is not None:
        return UpgradeDecision.CANNOT_SAY, (new.why,), ()
    if not newer:
        return _stay(Message("no_newer_build"))
    if not judged:
        return _stay(Message("all_break_constraints", n=len(newer)))
    first = judged[0]
    if base.coverage < LEAST:
        lacking = (base, first) if first.assurance < enough else (base,)
        why = (*_hardly_measured(base), *_in_its_place(base, judged, enough))
        return UpgradeDecision.CANNOT_SAY, why, tuple(map(find_out_on, lacking))
    if not any(item.fails for item in base.items):
        return _stay(Message("nothing_fails", start=base.build.in_words))
    return _decide_without_good(judged, base)


def unmeasured_gpu(hardware: str, name: str, known: Known) -> Message:
    """Say what the wheels' lists hold for a GPU on which nothing was measured."""
    builds, article = known.serving(hardware), article_of(name)
    suffix = f"_{article}" if article else ""
    if not builds:
        return Message(f"gpu_unmeasured{suffix}", name=name)
    return Message(f"gpu_code{suffix}", name=name, torch=builds[-1].torch)


def _stay(why: Message) -> _Answer:
    return UpgradeDecision.STAY, (why,), ()


def find_out_on(candidate: Candidate) -> FindOut:
    """The measurements that give an answer on a build."""
    missing = candidate.missing
    what = Message("find_out", build=candidate.build.in_words, n=missing.count, minutes=missing.minutes)
    return FindOut(what, missing.commands)


def _hardly_measured(base: Candidate) -> Iterator[Message]:
    start, missing = base.build.in_words, base.missing
    if not base.applicable:
        yield Message("nothing_can_exist", start=start)
        return
    key = "hardly_measured_cpu" if base.from_cpu else "hardly_measured"
    yield Message(key, start=start, measured=base.measured, applicable=base.applicable, n=base.from_cpu)
    if missing.count:
        yield Message("to_compare_run", n=missing.count, minutes=missing.minutes)


def _in_its_place(base: Candidate, judged: Sequence[Candidate], enough: float) -> Iterator[Message]:
    """Say to readers on a build that is hardly measured which patch of it is, and where they can land."""
    patch = next(
        (
            candidate
            for candidate in judged
            if candidate.build.minor == base.build.minor and candidate.coverage >= LEAST
        ),
        None,
    )
    if patch is not None:
        yield Message("patch_is_measured", build=patch.build.in_words)
    settled = [
        candidate
        for candidate in judged
        if candidate.is_settled and candidate.assurance >= enough and candidate.applicable
    ]
    if settled:
        clean = min(
            settled,
            key=lambda candidate: (weight(candidate.of(Tally.FAILS)), weight(candidate.of(Tally.NEEDS_WORKAROUND))),
        )
        n, m = clean.counts[Tally.FAILS], clean.counts[Tally.NEEDS_WORKAROUND]
        yield Message("cleanest", build=clean.build.in_words, n=n, m=m)


def _praise(best: Candidate) -> Iterator[Message]:
    counts = best.counts
    if best.age and not best.is_settled:
        yield Message("too_new_though", n=best.age.reported)
    yield Message("gained", n=counts[Tally.GAINED])
    lost, new = counts[Tally.LOST], counts[Tally.NEW]
    yield Message("none_lost" if not lost else "lost_helped" if lost == 1 else "all_lost_helped", n=lost)
    said = {
        Message("fail_in_new" if new > 1 else "fails_in_new", n=new): new,
        Message("not_known_before", n=counts[Tally.NOT_KNOWN_BEFORE]): counts[Tally.NOT_KNOWN_BEFORE],
        Message("not_known_there", n=counts[Tally.NOT_KNOWN]): counts[Tally.NOT_KNOWN],
    }
    yield from (message for message, n in said.items() if n)


def _decide_without_good(judged: Sequence[Candidate], base: Candidate) -> _Answer:
    """Decide where no candidate is good. The answer is to stay only where no measured one could turn out to be good."""
    hopeful = next(
        (candidate for candidate in judged if candidate.rating in {Rating.MAY_LOSE, Rating.NOT_CONFIRMED}), None
    )
    if hopeful is not None:
        return _hopeful(hopeful, base)
    first = judged[0]
    gained, best = first.counts[Tally.GAINED], first.build.in_words
    match first.rating:
        case Rating.NOT_ENOUGH if not first.applicable:
            return UpgradeDecision.CANNOT_SAY, (Message("nothing_can_exist", start=best),), ()
        case Rating.NOT_ENOUGH:
            why = Message("none_measured_enough", best=best, measured=first.measured, applicable=first.applicable)
            return UpgradeDecision.CANNOT_SAY, (why,), (find_out_on(first),)
        case Rating.LOSES:
            return _stay(Message("all_lose", best=best, n=gained, m=len(first.lost_for_good)))
        case _ if gained:
            return _stay(Message("none_outweighs", best=best, n=gained, m=first.counts[Tally.LOST]))
        case _:
            return _stay(Message("none_gains", best=best))


def _hopeful(candidate: Candidate, base: Candidate) -> _Answer:
    """Say why a candidate that may turn out to be good may not, and what would tell."""
    build, gained = candidate.build.in_words, candidate.counts[Tally.GAINED]
    if candidate.rating is Rating.NOT_CONFIRMED:
        why = Message("hopeful_unconfirmed", best=build, n=gained)
        what = Message("find_out_confirm", n=candidate.doubtful.count, minutes=candidate.doubtful.minutes)
        find_out = FindOut(what, candidate.doubtful.commands)
    elif candidate.untried.count:
        why = Message("hopeful_untried", best=build, n=gained, m=candidate.untried.count)
        what = Message("find_out_untried", build=build, n=candidate.untried.count, minutes=candidate.untried.minutes)
        find_out = FindOut(what, candidate.untried.commands)
    else:
        why = Message("hopeful_unknown", best=build, n=gained, m=candidate.counts[Tally.NOT_KNOWN_BEFORE])
        find_out = find_out_on(base)
    return UpgradeDecision.CANNOT_SAY, (why,), (find_out,)
