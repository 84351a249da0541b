"""A release over an earlier one: the pairs that `compare` makes of the two, each issue once, and one word of advice.

Source: docs/decisions/019-an-upgrade-is-recommended-on-what-passes.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.release_age import SETTLED_DAYS, SETTLED_REPORTS, ReleaseAge
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Severity, Workaround
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.message import Message, clauses, joined
from knowngood.domain.verdicts.history import FailingSpan, is_release, releases_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column, families_of, helped_elsewhere
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.verdict import Cell
from knowngood.environments.wheels.table import WheelClaim, WheelTable
from knowngood.gate.renderers.common import code_of
from knowngood.move.compare.comparison import Comparison, compare
from knowngood.move.pair import Group, IssuePair
from knowngood.move.releases.install import InstallFacts, install_facts
from knowngood.serialization.message_field import MessageField
from knowngood.web.urls import issue_address, page_of_build

LEAST_KNOWN = 0.5
"""The share of the issues that has to have an answer on both releases before one is advised."""


class ReleaseAdvice(StrEnum):
    INSTALL = "install"
    WAIT = "wait"
    STAY = "stay"
    CANNOT_SAY = "cannot_say"


@dataclass(frozen=True)
class ReleaseIssue:
    """One issue on the classes where it is fixed, broken or failing. It fails `since` a release, or since an older one
    where nothing older is known to pass (`is_since_before`); empty where this very release broke it, or it fails there
    in another way.
    `runs` is how many attempts its answers rest on at least; `inferred_from` is the CPU, or another Python, where an
    answer is inferred.

    `workaround` works there, and on `works_on` alone where it is not verified on this release (empty: it is); `snippet`
    is its code. Empty: none is known to work.
    """

    issue: str
    title: str
    component: str
    severity: Severity
    silent: bool
    hardware: tuple[str, ...]
    since: str
    is_since_before: bool
    runs: int
    inferred_from: str
    workaround: str
    works_on: str
    snippet: str
    url: str


@dataclass(frozen=True)
class ReleaseStanding:
    """The issues on one class: those `fixed` and `broken` over the release before, and all of them as they are now.
    `silent` ones give wrong numbers without an error; `helped` fail with a workaround that works on this very release.
    `bigger`, `more_work` and `slower` give the right answer, and take more memory, work or time than they must: they
    neither fail nor pass. `measured` of the answers were run on that class, the others on the CPU.
    """

    hardware: str
    fixed: int
    fixed_silent: int
    broken: int
    broken_silent: int
    fails: int
    fails_silent: int
    helped: int
    bigger: int
    more_work: int
    slower: int
    passes: int
    not_known: int
    does_not_apply: int
    measured: int
    known_on_both: int

    @property
    def answers(self) -> int:
        return self.fails + self.bigger + self.more_work + self.slower + self.passes

    @property
    def is_judged(self) -> bool:
        """Whether enough of the issues that exist have an answer on both releases."""
        return self.known_on_both >= LEAST_KNOWN * (self.answers + self.not_known)


@dataclass(frozen=True)
class ReleaseSummary:
    """`release` is 2.15.0, `before` what it is compared with (empty: nothing older is known). `headline` is the advice
    with the number that decided.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    release: str
    build: str
    cuda: str | None
    released: date | None
    age: ReleaseAge | None
    before: str
    advice: ReleaseAdvice
    headline: MessageField
    standings: tuple[ReleaseStanding, ...]
    url: str


@dataclass(frozen=True)
class ReleaseAnswer(ReleaseSummary):
    """Each list has an issue once, wrong numbers first. `failing` are those that fail and are not `broken`; what is
    `bigger`, `slower` or does `more_work` is on no other list.
    """

    fixed: tuple[ReleaseIssue, ...]
    broken: tuple[ReleaseIssue, ...]
    failing: tuple[ReleaseIssue, ...]
    bigger: tuple[ReleaseIssue, ...]
    more_work: tuple[ReleaseIssue, ...]
    slower: tuple[ReleaseIssue, ...]
    install: InstallFacts


@dataclass(frozen=True)
class ReleaseLine:
    """The releases of a catalogue, oldest first, each with all its Pythons in one column."""

    known: Known

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(family for release in releases_of(self.known.builds.values()) for family in families_of(release))

    @cached_property
    def measured(self) -> tuple[Build, ...]:
        return tuple(
            column.cell_build
            for column in self.columns
            if any(self.known.is_measured(build, self.known.hardware) for build in column.builds)
        )

    def find(self, name: str) -> Build | None:
        """The release that is called `2.15.0`, or the newest measured patch of `2.15`; None where there is none."""
        every = {column.head.build_id.release: column.cell_build for column in self.columns}
        patches = [build for build in every.values() if build.minor == name]
        measured = [build for build in patches if build in self.measured]
        return every.get(name) or next(reversed(measured or patches), None)

    def patches(self, build: Build) -> tuple[Build, ...]:
        """The measured releases of the same minor, newest first."""
        return tuple(other for other in reversed(self.measured) if other.minor == build.minor)

    def before(self, build: Build) -> Build | None:
        """The release to compare with: the last measured patch of the minor before; for a build of another CUDA or
        another Triton the release of the same number. None where none is older.
        """
        same = self.find(build.build_id.release)
        if not is_release(build) and same:
            return same
        version = Version(f"{build.minor}.0")
        return next((other for other in reversed(self.measured) if other.build_id.public_version < version), None)


def every_release(known: Known) -> tuple[ReleaseSummary, ...]:
    """Each measured release over the one before it, newest first."""
    line = ReleaseLine(known)
    return summarize(reversed(line.measured), line)


def summarize(builds: Iterable[Build], line: ReleaseLine) -> tuple[ReleaseSummary, ...]:
    """Each of the builds over the one before it, on every measured class."""
    return tuple(summary_over(line.before(build), build, line.known.hardware, line.known) for build in builds)


def summary_over(
    before: Build | None, build: Build, hardware: Sequence[str], known: Known, lacking: Sequence[str] = ()
) -> ReleaseSummary:
    """A build over another one, such as the reader's own, on these classes. The packages that are `lacking` have no
    release for it.
    """
    return _summary(build, before, _compared(build, before, hardware, known), known, lacking)


def judge_release(
    build: Build,
    before: Build | None,
    hardware: Sequence[str],
    known: Known,
    table: WheelTable,
    claims: Sequence[WheelClaim],
) -> ReleaseAnswer:
    """Compare a build with an older one on each class. Without one nothing is fixed or broken."""
    compared = _compared(build, before, hardware, known)
    broken = _of_group(compared, Group.NEWLY_BROKEN)
    failing = _by_issue(pair for each in compared for pair in each.pairs if pair.fails)
    return ReleaseAnswer(
        **vars(_summary(build, before, compared, known)),
        fixed=_listed(_of_group(compared, Group.FIXED), before or build, known),
        broken=_listed(broken, None, known),
        failing=_listed({id_: pairs for id_, pairs in failing.items() if id_ not in broken}, build, known),
        bigger=_listed(_of_group(compared, Group.BIGGER), build, known),
        more_work=_listed(_of_group(compared, Group.MORE_WORK), build, known),
        slower=_listed(_of_group(compared, Group.SLOWER), build, known),
        install=install_facts(build, before, known, table, claims),
    )


def _compared(build: Build, before: Build | None, hardware: Sequence[str], known: Known) -> list[Comparison]:
    return [compare(known.issues.values(), before or build, build, class_, known) for class_ in hardware]


def _summary(
    build: Build, before: Build | None, compared: Sequence[Comparison], known: Known, lacking: Sequence[str] = ()
) -> ReleaseSummary:
    age, standings = known.age(build), tuple(map(_standing, compared))
    fixed, broken = _of_group(compared, Group.FIXED), _of_group(compared, Group.NEWLY_BROKEN)
    stays = [issue for issue, pairs in broken.items() if any(p.is_grave and not p.has_workaround for p in pairs)]
    advice, because = advise(len(stays), age, standings, lacking)
    return ReleaseSummary(
        release=build.build_id.release,
        build=build.id,
        cuda=build.cuda,
        released=build.released,
        age=age,
        before=before.build_id.release if before else "",
        advice=advice,
        headline=_headline(advice, because, standings, 0 if lacking else len(fixed), len(broken)),
        standings=standings,
        url=page_of_build(build),
    )


def _standing(compared: Comparison) -> ReleaseStanding:
    pairs = compared.pairs
    failing, fixed, broken = [p for p in pairs if p.fails], compared.of(Group.FIXED), compared.of(Group.NEWLY_BROKEN)
    by_prospect = grouped(pairs, lambda pair: pair.prospect)
    passing = by_prospect.get(Prospect.PASSES, ())
    bigger, more_work, slower = map(compared.of, (Group.BIGGER, Group.MORE_WORK, Group.SLOWER))
    answers = (*failing, *bigger, *more_work, *slower, *passing)
    return ReleaseStanding(
        hardware=compared.hardware,
        fixed=len(fixed),
        fixed_silent=_silent(fixed),
        broken=len(broken),
        broken_silent=_silent(broken),
        fails=len(failing),
        fails_silent=_silent(failing),
        helped=sum(pair.has_workaround for pair in failing),
        bigger=len(bigger),
        more_work=len(more_work),
        slower=len(slower),
        passes=len(passing),
        not_known=len(by_prospect.get(Prospect.NOT_KNOWN, ())),
        does_not_apply=len(by_prospect.get(Prospect.DOES_NOT_APPLY, ())),
        measured=sum(not pair.is_of_cpu for pair in answers),
        known_on_both=sum(pair.group not in {Group.NOT_KNOWN_BEFORE, Group.NOT_KNOWN_NOW} for pair in answers),
    )


def _silent(pairs: Iterable[IssuePair]) -> int:
    return sum(pair.is_silent for pair in pairs)


def _of_group(compared: Iterable[Comparison], group: Group) -> Mapping[str, list[IssuePair]]:
    return _by_issue(pair for each in compared for pair in each.of(group))


def _by_issue(pairs: Iterable[IssuePair]) -> Mapping[str, list[IssuePair]]:
    return grouped(pairs, lambda pair: pair.issue.id)


def advise(
    stays: int, age: ReleaseAge | None, standings: Sequence[ReleaseStanding], lacking: Sequence[str] = ()
) -> tuple[ReleaseAdvice, Message]:
    """The advice, and the number that decided it beside those of what is fixed and broken."""
    if stays:
        return ReleaseAdvice.STAY, Message("breaks_gravely", n=stays)
    if lacking:
        return ReleaseAdvice.WAIT, Message("packages_lacking_for_it", names=tuple(lacking))
    if age is None:
        return ReleaseAdvice.WAIT, Message("age_unknown")
    if age.days < SETTLED_DAYS:
        return ReleaseAdvice.WAIT, Message("too_young", minor=age.minor, days=age.days)
    if age.reported < SETTLED_REPORTS:
        return ReleaseAdvice.WAIT, Message("too_few_reports", n=age.reported, minor=age.minor, least=SETTLED_REPORTS)
    unjudged = tuple(
        Message("known_of", known=one.known_on_both, of=one.answers + one.not_known, hardware=one.hardware)
        for one in standings
        if not one.is_judged
    )
    if len(unjudged) == len(standings):
        return ReleaseAdvice.CANNOT_SAY, Message("too_little_known", clauses=unjudged)
    others = [Message("not_judged", clauses=unjudged)] if unjudged else []
    return ReleaseAdvice.INSTALL, clauses([Message("reported_since", n=age.reported, minor=age.minor), *others])


def _headline(
    advice: ReleaseAdvice, because: Message, standings: Sequence[ReleaseStanding], fixed: int, broken: int
) -> Message:
    """`Wait, unless you need one of its 13 fixes: it breaks nothing we know of, but it is too new to judge (..)`."""
    unless = Message("unless_fixes" if fixed > 1 else "unless_fix", n=fixed)
    is_excepted = fixed and advice in {ReleaseAdvice.WAIT, ReleaseAdvice.STAY}
    first = joined("then", [Message(f"advice_{advice}"), *([unless] if is_excepted else [])])
    judged = tuple(standing.hardware for standing in standings if standing.is_judged)
    breaks = Message("it_breaks" if broken else "breaks_nothing", n=broken)
    if advice is ReleaseAdvice.INSTALL:
        first = first if len(judged) == len(standings) else Message("advice_install_on", names=judged)
        fixes = Message("it_fixes" if fixed else "fixes_nothing", n=fixed)
        because = clauses([Message("both", first=fixes, rest=breaks), because])
    if advice is ReleaseAdvice.WAIT:
        because = Message("both" if broken else "though", first=breaks, rest=because)
    return Message("answer_because", answer=first, said=because)


def _listed(pairs: Mapping[str, Sequence[IssuePair]], failing: Build | None, known: Known) -> tuple[ReleaseIssue, ...]:
    """`failing` is the release on which they fail; None where they are new there."""
    return tuple(_issue_of(of, failing, known) for of in sorted(pairs.values(), key=_worst_first))


def _worst_first(pairs: Sequence[IssuePair]) -> tuple[bool, int, bool, str]:
    issue = pairs[0].issue
    silent, helped = any(pair.is_silent for pair in pairs), any(pair.has_workaround for pair in pairs)
    return not silent, -SEVERITY_RANK[issue.severity], helped, issue.id


def _issue_of(pairs: Sequence[IssuePair], failing: Build | None, known: Known) -> ReleaseIssue:
    issue, cell = pairs[0].issue, pairs[0].after
    spans = known.telling_history(issue, cell.hardware)[0].spans if failing else ()
    within = next((span for span in spans if failing and _is_within(failing.build_id.public_version, span)), None)
    grounds = (_ground(other, known) for pair in pairs for other in pair.sides if other.basis)
    workaround, works_on = next(_helping(pairs, known), (None, ""))
    return ReleaseIssue(
        issue=issue.id,
        title=issue.title,
        component=issue.component,
        severity=issue.severity,
        silent=any(pair.is_silent for pair in pairs),
        hardware=tuple(pair.after.hardware for pair in pairs),
        since=within.first_bad if within else "",
        is_since_before=within is not None and within.good_before is None,
        runs=min(pair.runs if failing is None or pair.group is Group.FIXED else pair.after.runs for pair in pairs),
        inferred_from=", ".join(dict.fromkeys(grounds)),
        workaround=workaround.id if workaround else "",
        works_on=works_on,
        snippet="\n".join(code_of(workaround.body)) if workaround else "",
        url=issue_address(issue.id, build=cell.build, hardware=cell.hardware),
    )


def _is_within(release: Version, span: FailingSpan) -> bool:
    return span.begins <= release and (span.good_after is None or release < Version(span.good_after))


def _ground(cell: Cell, known: Known) -> str:
    if cell.basis is None or cell.basis.hardware != cell.hardware:
        return "CPU"
    return f"Python {known.builds[cell.basis.build].python}"


def _helping(pairs: Sequence[IssuePair], known: Known) -> Iterator[tuple[Workaround, str]]:
    for pair in pairs:
        yield from ((pair.issue.workaround(id_), "") for id_ in pair.workarounds)
    for pair in pairs:
        if elsewhere := helped_elsewhere(pair.issue, pair.after, known):
            yield elsewhere[0], elsewhere[1].build_id.release
