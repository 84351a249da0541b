"""Candidates: what each watched issue does on a build that one may move to, and what all of them say of that build.

Everything that is counted of a build is counted here, once: sentences, tables and documents read `Candidate.counts`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.release_age import ReleaseAge
from knowngood.domain.issue import Issue, Severity
from knowngood.domain.measuring.planning import Price
from knowngood.domain.verdicts.inference import DEVICE_RULE, PYTHON_RULE
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect, remedy_of
from knowngood.domain.verdicts.verdict import WorkaroundFinding, WorkaroundVerdict
from knowngood.move.compare.comparison import Group, IssuePair

CONFIRMED = 2
"""Runs on both sides from which on a gain may be the ground of a recommendation.

Source: docs/decisions/019-an-upgrade-is-recommended-on-what-passes.md.
"""


class Message:
    """Words with places for values: told as they are in English, and by whoever translates the words."""

    def __init__(self, words: str, **values: object) -> None:
        self.words = words
        self.values = values

    def __str__(self) -> str:
        return self.words.format(**self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.words, self.values) == (other.words, other.values)

    def __hash__(self) -> int:
        return hash(self.words)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> dict[str, object]:
        """JSON has it as text, in the language of the request that is the writer's context."""
        return {
            "type": "is-instance",
            "cls": cls,
            "serialization": {
                "type": "function-plain",
                "function": lambda one, info: info.context.say(one.words, **one.values) if info.context else str(one),
                "info_arg": True,
                "return_schema": {"type": "str"},
            },
        }


_POINTS = {Severity.LOW: 1, Severity.MEDIUM: 2, Severity.HIGH: 4, Severity.CRITICAL: 8}

WEIGHING_WORDS = (
    "An issue weighs 1 (low severity), 2 (medium), 4 (high) or 8 (critical), and twice that where it gives wrong "
    "numbers without an error."
)


def weight_of(issue: Issue) -> int:
    """The weight of an issue when candidates are ranked: as WEIGHING_WORDS say."""
    return _POINTS[issue.severity] * (2 if issue.silent else 1)


@dataclass(frozen=True)
class Item(IssuePair):
    """One watched issue on one candidate, beside the build one is on: the class where it matters most, of those that
    count.
    """

    @cached_property
    def prospect(self) -> Prospect:
        return remedy_of(self.after)

    @property
    def fails(self) -> bool:
        return self.prospect in FAILING_PROSPECTS

    @property
    def is_of_cpu(self) -> bool:
        """Whether the answer there is the CPU's."""
        return self.after.basis is not None and self.after.basis.rule == DEVICE_RULE

    @property
    def is_grave(self) -> bool:
        return self.is_silent and self.issue.severity in {Severity.HIGH, Severity.CRITICAL}

    @property
    def may_be_lost(self) -> bool:
        """Whether it passed and fails there, or fails there and nothing is known of it before."""
        return self.fails and self.group in {Group.NEWLY_BROKEN, Group.NOT_KNOWN_BEFORE}

    @property
    def is_confirmed(self) -> bool:
        return self.runs >= CONFIRMED

    @property
    def workarounds(self) -> tuple[str, ...]:
        """Ids of those that help there, in the order in which the issue lists them."""
        found = self.after.workarounds
        return tuple(
            one.id
            for one in self.issue.workarounds
            if one.id in found and found[one.id].verdict is WorkaroundVerdict.EFFECTIVE
        )

    @property
    def helps(self) -> WorkaroundFinding | None:
        """The finding of the first of these."""
        return next((self.after.workarounds[id_] for id_ in self.workarounds), None)


class Tally(StrEnum):
    """The counts of a candidate. The first five take each watched issue once; the others say what turned."""

    PASSES = "passes"
    NEEDS_WORKAROUND = "needs_workaround"
    FAILS = "fails"
    NOT_KNOWN = "not_known"
    DOES_NOT_APPLY = "does_not_apply"
    GAINED = "gained"  # failed, and passes there
    LOST = "lost"  # passed, and fails there
    LOST_WITH_WORKAROUND = "lost_with_workaround"  # of these, those for which one was measured to help there
    UNTRIED = "untried"  # of those that fail, those for which not all that may help were run there
    NEW = "new"  # fails there, and could not exist before: no loss
    NOT_KNOWN_BEFORE = "not_known_before"  # fails there, and nothing is known of it before: no loss either


_COUNTED: Mapping[Tally, Callable[[Item], bool]] = {
    Tally.PASSES: lambda item: item.prospect is Prospect.PASSES,
    Tally.NEEDS_WORKAROUND: lambda item: item.prospect is Prospect.NEEDS_WORKAROUND,
    Tally.FAILS: lambda item: item.prospect is Prospect.FAILS,
    Tally.NOT_KNOWN: lambda item: item.prospect is Prospect.NOT_KNOWN,
    Tally.DOES_NOT_APPLY: lambda item: item.prospect is Prospect.DOES_NOT_APPLY,
    Tally.GAINED: lambda item: item.group is Group.FIXED,
    Tally.LOST: lambda item: item.group is Group.NEWLY_BROKEN,
    Tally.LOST_WITH_WORKAROUND: lambda item: item.group is Group.NEWLY_BROKEN and item.has_workaround,
    Tally.UNTRIED: lambda item: item.is_untried,
    Tally.NEW: lambda item: item.group is Group.NEW,
    Tally.NOT_KNOWN_BEFORE: lambda item: item.group is Group.NOT_KNOWN_BEFORE and item.fails,
}


@dataclass(frozen=True)
class Missing:
    """The issues without an answer on a build, and what it takes to have one.

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

    def commands(self, build: str) -> tuple[str, ...]:
        """The commands that fill the gaps on `build`, as they are typed."""
        where = f" --hardware {','.join(self.hardware)}"
        return tuple(
            f"knowngood run --builds {build} --issues {','.join(ids)}{where}{how}"
            for ids, how in ((self.to_run, " --where-affected"), (self.to_ask_again, " --where-affected --force"))
            if ids
        )


@dataclass(frozen=True)
class Doubtful:
    """The gains of a candidate that rest on a single run on either side, and what it takes to run those sides again.

    `builds` are those whose cells the two sides rest on, and `hardware` their classes.
    """

    issues: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    price: Price = field(default=Price(0, 0, 0.0, 0))

    @property
    def commands(self) -> tuple[str, ...]:
        if not self.issues:
            return ()
        builds, issues, hardware = (",".join(part) for part in (self.builds, self.issues, self.hardware))
        return (f"knowngood run --builds {builds} --issues {issues} --hardware {hardware} --confirm",)


class Rating(StrEnum):
    """The rating of a build as a whole. Of those that are good the first is recommended."""

    HERE = "here"  # the build one is on
    RECOMMENDED = "recommended"
    ALSO_GOOD = "also_good"
    TOO_NEW = "too_new"  # good by what is measured, and too new to be preferred to a settled one
    NOT_CONFIRMED = "not_confirmed"  # each of its gains rests on a single run
    MAY_LOSE = "may_lose"  # something fails there of which nothing is known before, or whose workarounds were not tried
    NO_GAIN = "no_gain"
    LOSES = "loses"  # something that passed fails there without a workaround
    NOT_ENOUGH = "not_enough_measured"  # there, or where one is


@dataclass(frozen=True)
class Candidate:
    """A build beside the one that one is on, which may be itself. `items` stand most severe first, one for each watched
    issue that can exist on one of the two. `untried` are losses whose workarounds were not run there. `why` says what
    its rating rests on. Without an `age` nobody knows when its release came out.
    """

    build: Build
    items: tuple[Item, ...]
    missing: Missing
    doubtful: Doubtful = Doubtful()
    untried: Missing = Missing()
    age: ReleaseAge | None = None
    rating: Rating = Rating.NOT_ENOUGH
    why: Message = Message("")  # noqa: RUF009 - never changed

    def of(self, tally: Tally) -> tuple[Item, ...]:
        return tuple(filter(_COUNTED[tally], self.items))

    @cached_property
    def counts(self) -> Mapping[Tally, int]:
        """Every tally, with the zeros."""
        return {tally: len(self.of(tally)) for tally in Tally}

    @cached_property
    def _there(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.prospect is not Prospect.DOES_NOT_APPLY)

    @property
    def applicable(self) -> int:
        return len(self._there)

    @cached_property
    def answered_by(self) -> Mapping[str, int]:
        """How many of the answers there are measured (the empty text), and how many each rule infers."""
        known = (item.after for item in self._there if item.prospect is not Prospect.NOT_KNOWN)
        return Counter(cell.basis.rule if cell.basis else "" for cell in known)

    @property
    def measured(self) -> int:
        """How many were run on the very class that is asked for, with whatever Python."""
        return self.answered_by[""] + self.from_python

    @property
    def from_python(self) -> int:
        """Of these, how many were run with another Python."""
        return self.answered_by[PYTHON_RULE]

    @property
    def from_cpu(self) -> int:
        """The answers that are no part of `measured`, because they were run on the CPU."""
        return self.answered_by[DEVICE_RULE]

    @property
    def coverage(self) -> float:
        """The share of the applicable issues that have an answer, or of those without an answer of the CPU's, whichever
        is less; 0 where none can exist there. Answers of the CPU say how the build does, and not how well it is
        measured on a GPU.
        """
        own = [item for item in self._there if not item.is_of_cpu]
        return min(_coverage(self._there), _coverage(own) if own else 1.0)

    @property
    def assurance(self) -> float:
        """The same without the issues that fail there: of the others, the share that is known to pass; again the lesser
        of those without an answer of the CPU's and of all.

        It is never above `coverage`, and no failure changes it. 1 where nothing is left open.
        """
        return min(_assurance(self.items), _assurance(item for item in self.items if not item.is_of_cpu))

    @property
    def hope(self) -> int:
        """The weight of what is gained, less that of what is lost with a workaround, or may have one: at best it gains
        this.
        """
        lost = (item for item in self.of(Tally.LOST) if item.has_workaround or item.is_untried)
        return weight(self.of(Tally.GAINED)) - weight(lost)

    @property
    def gain(self) -> int:
        """The same, less what fails there with a workaround and may have passed before: at worst it gains this."""
        return weight(self.of(Tally.GAINED)) - weight(
            item for item in self.items if item.may_be_lost and item.has_workaround
        )

    @property
    def unremedied(self) -> tuple[Item, ...]:
        """The items that fail there without a workaround known to help, and passed before, or may have."""
        return tuple(item for item in self.items if item.may_be_lost and not item.has_workaround)

    @property
    def is_settled(self) -> bool:
        return self.age is not None and self.age.settled

    def passes_gravely(self, other: "Candidate") -> bool:
        """Whether an issue passes here that is severe and silent and fails on the other."""
        failing = {item.issue.id for item in other.items if item.fails and item.is_grave}
        return any(item.issue.id in failing for item in self.of(Tally.PASSES))

    @property
    def lost_for_good(self) -> tuple[Item, ...]:
        """Those that passed before, and fail there with whatever was to be tried."""
        return tuple(item for item in self.of(Tally.LOST) if not item.has_workaround and not item.is_untried)

    @property
    def is_confirmed(self) -> bool:
        """Whether at least one gain rests on more than a single run on both sides."""
        return any(item.is_confirmed for item in self.of(Tally.GAINED))


def _coverage(items: Sequence[Item]) -> float:
    known = sum(1 for item in items if item.prospect is not Prospect.NOT_KNOWN)
    return known / len(items) if items else 0.0


def _assurance(items: Iterable[Item]) -> float:
    found = Counter(item.prospect for item in items)
    passing, unknown = found[Prospect.PASSES], found[Prospect.NOT_KNOWN]
    return passing / (passing + unknown) if unknown else 1.0


def weight(items: Iterable[Item]) -> int:
    return sum(weight_of(item.issue) for item in items)
