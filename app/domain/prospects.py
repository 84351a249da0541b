"""What a watched issue does on a build that one may move to, and what all of them say of that build together."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import ceil, floor

from app.domain.build import Build
from app.domain.compare import Group, Pair
from app.domain.issue import Issue
from app.domain.plan import Price
from app.domain.verdict import CONCLUSIVE, Cell, Verdict, WorkaroundVerdict


class Said:
    """Words with places for values: told as they are in English, and by whoever translates the words."""

    def __init__(self, words: str, **values: object) -> None:
        self.words = words
        self.values = values

    def __str__(self) -> str:
        return self.words.format(**self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and (self.words, self.values) == (other.words, other.values)

    def __hash__(self) -> int:
        return hash(self.words)


class Prospect(StrEnum):
    """What a watched issue does on a candidate, for whoever comes from another build. Gravest first."""

    NEWLY_BROKEN = "newly_broken"  # fails there, and not where one is now, as far as is known; nothing helps
    STILL_AFFECTED = "still_affected"  # fails on both, and nothing helps there
    UNKNOWN = "unknown"  # no answer there
    NEEDS_WORKAROUND = "needs_workaround"  # fails there, and a workaround was measured to help on that very build
    FIXED = "fixed"  # failed, and passes there with proof
    PASSES = "passes"  # passes there, and was not known to fail
    DOES_NOT_APPLY = "does_not_apply"  # cannot exist there: no fix, and no gap


_PROSPECTS = {
    Group.NEWLY_BROKEN: Prospect.NEWLY_BROKEN,
    Group.FAILS_UNSEEN: Prospect.NEWLY_BROKEN,
    Group.FAILS_OTHERWISE: Prospect.STILL_AFFECTED,
    Group.STILL_FAILS: Prospect.STILL_AFFECTED,
    Group.CANNOT_SAY: Prospect.UNKNOWN,
    Group.FIXED: Prospect.FIXED,
    Group.GONE: Prospect.DOES_NOT_APPLY,
    Group.PASSES_NOW: Prospect.PASSES,
    Group.STILL_PASSES: Prospect.PASSES,
    Group.NOWHERE: Prospect.DOES_NOT_APPLY,
}
_FAILING = frozenset({Prospect.NEWLY_BROKEN, Prospect.STILL_AFFECTED})


def prospect_of(pair: Pair) -> Prospect:
    """What `compare` found, as it matters to a choice.

    An environment that cannot be installed is no answer. A pass too rare to say that a flaky failure is gone is a pass,
    and no fix.
    """
    if pair.after.verdict is Verdict.NO_BUILD:
        return Prospect.UNKNOWN
    found = _PROSPECTS[pair.group]
    if found is Prospect.UNKNOWN and pair.after.verdict is Verdict.NOT_AFFECTED:
        return Prospect.PASSES
    return Prospect.NEEDS_WORKAROUND if found in _FAILING and pair.is_cured else found


@dataclass(frozen=True)
class Item:
    """One watched issue on one candidate: the class where it matters most, of those that count."""

    pair: Pair
    prospect: Prospect

    @property
    def issue(self) -> Issue:
        return self.pair.issue

    @property
    def before(self) -> Cell:
        return self.pair.before

    @property
    def after(self) -> Cell:
        """It names the very build it was measured on: another Python of the candidate may have answered."""
        return self.pair.after

    @property
    def was_unknown(self) -> bool:
        """Whether nothing is known of it on the build one is on."""
        return self.before.verdict not in CONCLUSIVE

    @property
    def is_new(self) -> bool:
        """Whether it fails there and is not known to fail where one is now, cured or not."""
        return self.pair.group in {Group.NEWLY_BROKEN, Group.FAILS_UNSEEN}

    @property
    def may_be_luck(self) -> bool:
        """Whether it was flaky, and passes there too few times to say that this is over."""
        return self.prospect is Prospect.PASSES and self.pair.group is Group.CANNOT_SAY

    @property
    def is_silently_broken(self) -> bool:
        return self.prospect is Prospect.NEWLY_BROKEN and self.issue.silent

    @property
    def cures(self) -> tuple[str, ...]:
        """Ids of the workarounds that help there, in the order in which the issue lists them."""
        found = self.after.workarounds
        return tuple(
            one.id
            for one in self.issue.workarounds
            if one.id in found and found[one.id].verdict is WorkaroundVerdict.EFFECTIVE
        )


@dataclass(frozen=True)
class Missing:
    """The watched issues without an answer on a candidate, and what it takes to have one.

    `to_run` were never run there; `to_ask_again` gave no answer, and are forced; `closed` cannot be run at all.
    `hardware` are the classes to run on, `price` the time of control and baseline, one after another.
    """

    to_run: tuple[str, ...] = ()
    to_ask_again: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    price: Price = field(default=Price(0, 0, 0.0, 0))

    @property
    def count(self) -> int:
        """How many can be run."""
        return len(self.to_run) + len(self.to_ask_again)

    @property
    def minutes(self) -> int:
        """Whole minutes, rounded up: an estimate, to be told with "about"."""
        return ceil(self.price.seconds / 60)

    def commands(self, build: str) -> tuple[str, ...]:
        """What fills the gaps on `build`, as it is typed."""
        where = f" --hardware {','.join(self.hardware)}"
        return tuple(
            f"knowngood run --builds {build} --issues {','.join(ids)}{where}{how}"
            for ids, how in ((self.to_run, " --where-affected"), (self.to_ask_again, " --where-affected --force"))
            if ids
        )


class Rating(StrEnum):
    RECOMMENDED = "recommended"
    ALSO_GOOD = "also_good"
    NO_GAIN = "no_gain"
    BREAKS = "breaks"
    NOT_ENOUGH = "not_enough_measured"


@dataclass(frozen=True)
class Candidate:
    """`items` stand gravest first, one for each watched issue. `why` says what its rating rests on."""

    build: Build
    items: tuple[Item, ...]
    missing: Missing
    rating: Rating = Rating.NOT_ENOUGH
    why: Said = Said("")  # noqa: RUF009 - never changed

    def of(self, *prospects: Prospect) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.prospect in prospects)

    @cached_property
    def counts(self) -> Mapping[Prospect, int]:
        """Every prospect, with the zeros."""
        found = Counter(item.prospect for item in self.items)
        return {prospect: found[prospect] for prospect in Prospect}

    @property
    def watched(self) -> int:
        """The watched issues that can exist there."""
        return len(self.items) - self.counts[Prospect.DOES_NOT_APPLY]

    @property
    def answered(self) -> int:
        return self.watched - self.counts[Prospect.UNKNOWN]

    @property
    def coverage(self) -> float:
        """The share of the watched issues that have an answer there; 0 where none can exist there."""
        return self.answered / self.watched if self.watched else 0.0

    @property
    def assurance(self) -> float:
        """The same without the issues that fail there: of the others, the share that is known to pass.

        It is never above `coverage`, and no failure changes it. 1 where nothing is left open.
        """
        passing, unknown = self.counts[Prospect.FIXED] + self.counts[Prospect.PASSES], self.counts[Prospect.UNKNOWN]
        return passing / (passing + unknown) if unknown else 1.0

    @property
    def newly_cured(self) -> int:
        """How many fail there newly, each with a cure: that many workarounds are work to be done."""
        return sum(1 for item in self.of(Prospect.NEEDS_WORKAROUND) if item.is_new)

    @property
    def gain(self) -> int:
        """What is fixed, less what newly needs a workaround."""
        return self.counts[Prospect.FIXED] - self.newly_cured

    @property
    def silently_broken(self) -> int:
        return sum(1 for item in self.items if item.is_silently_broken)


def percent(share: float) -> int:
    """Rounded down: 100 is all of it."""
    return floor(share * 100 + 1e-9)
