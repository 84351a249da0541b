"""Claims held against measurements: what upstream or a blog says, and whether any cell bears it out.

Only a claim that can be wrong is held: one that names releases (`about`) and says that they fail or are mended, or one
that names a workaround and calls it a cure. All others stand beside the measurements without a word from us.

An interval speaks of more releases than were measured. Where a claim says otherwise of one of them, it stands beside
the interval as a doubt: wherever a fix is named, its doubts are named too.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Claim, Issue, is_within
from knowngood.domain.message import Message, Quoted, joined
from knowngood.domain.verdicts.history import Fix, History, is_release, listed
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import FAILING, Cell, Verdict, WorkaroundVerdict

ANSWERS = FAILING | {Verdict.NOT_AFFECTED}
NO_CURE = frozenset({WorkaroundVerdict.INEFFECTIVE, WorkaroundVerdict.HARMFUL})


class Standing(StrEnum):
    CONTRADICTED = "contradicted"
    AGREES = "agrees"
    IN_PART = "in_part"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True)
class ClaimStanding:
    """How a claim stands on one hardware class; `sentence` is what was measured (None: nothing that concerns it)."""

    standing: Standing
    sentence: Message | None = None
    hardware: str = ""


@dataclass(frozen=True)
class MeasuredClaim:
    """A claim with its standing on each class that says something, or the one word that none does; `held` is empty
    where it names neither releases nor a workaround, and so cannot be wrong by what is measured here.
    """

    claim: Claim
    held: tuple[ClaimStanding, ...]


def held_claims(issue: Issue, cells: Iterable[tuple[Build, Cell]]) -> tuple[MeasuredClaim, ...]:
    """Every claim of an issue, in its order; `cells` are its own, of any hardware class, in any order."""
    answered = ((build, cell) for build, cell in cells if cell.verdict in ANSWERS)
    by_class = grouped(answered, lambda pair: pair[1].hardware)
    return tuple(
        MeasuredClaim(claim, _on_every_class(claim, by_class) if can_be_wrong(claim) else ()) for claim in issue.claims
    )


def can_be_wrong(claim: Claim) -> bool:
    return bool(claim.workaround) if claim.says == "cure" else bool(claim.about) and claim.says in {"affected", "fixed"}


def _on_every_class(claim: Claim, by_class: dict[str, list[tuple[Build, Cell]]]) -> tuple[ClaimStanding, ...]:
    held = [(hardware, hold(claim, answered)) for hardware, answered in sorted(by_class.items())]
    standings = [
        ClaimStanding(answer.standing, answer.sentence, hardware) for hardware, answer in held if answer.sentence
    ]
    return tuple(standings) or (ClaimStanding(Standing.NOT_MEASURED),)


def hold(claim: Claim, answered: Sequence[tuple[Build, Cell]]) -> ClaimStanding:
    """How a claim stands against the cells of one hardware class, each of which gives an answer."""
    meant = [
        (build, cell)
        for build, cell in answered
        if is_release(build) and is_within(claim.about, build.build_id.version.base_version)
    ]
    if not can_be_wrong(claim):
        return ClaimStanding(Standing.NOT_MEASURED)
    if claim.says == "cure":
        return _as_cure(claim.workaround, meant)
    return _as_word_on_releases(meant, is_fixed=claim.says == "fixed")


def _as_cure(workaround: str, meant: Sequence[tuple[Build, Cell]]) -> ClaimStanding:
    tried = [(build, cell.workarounds[workaround].verdict) for build, cell in meant if workaround in cell.workarounds]
    cured = [build for build, verdict in tried if verdict is WorkaroundVerdict.EFFECTIVE]
    partly = [build for build, verdict in tried if verdict is WorkaroundVerdict.PARTIAL]
    failed = [build for build, verdict in tried if verdict in NO_CURE]
    keys = (("cured", cured), ("cured_partly", partly), ("and_not" if cured else "cured_not", failed))
    parts = [Message(key, names=named(builds)) for key, builds in keys if builds]
    if not parts:
        return ClaimStanding(Standing.NOT_MEASURED)
    standing = Standing.AGREES if cured else Standing.IN_PART if partly else Standing.CONTRADICTED
    return ClaimStanding(standing, joined("and_also", parts))


def _as_word_on_releases(meant: Sequence[tuple[Build, Cell]], *, is_fixed: bool) -> ClaimStanding:
    """One release that is otherwise contradicts it."""
    failing = [build for build, cell in meant if cell.verdict in FAILING]
    passing = [build for build, cell in meant if cell.verdict is Verdict.NOT_AFFECTED]
    against, with_it = (failing, passing) if is_fixed else (passing, failing)
    if against:
        return ClaimStanding(
            Standing.CONTRADICTED, Message("fails_here" if is_fixed else "passes_here", names=named(against))
        )
    if with_it:
        return ClaimStanding(
            Standing.AGREES, Message("passes_here" if is_fixed else "fails_here", names=named(with_it))
        )
    return ClaimStanding(Standing.NOT_MEASURED)


def named(builds: Iterable[Build]) -> Message:
    """Releases by their names, oldest first; three and a count where there are more."""
    in_order = sorted(builds, key=lambda build: build.build_id)
    return listed(list(dict.fromkeys(build.build_id.release for build in in_order)))


# -- doubts ------------------------------------------------------------------------------------------------------------


def doubts_about(issue: Issue, history: History) -> tuple[Message, ...]:
    """Upstream's claims against a history on one hardware class, a clause each, to be put after its sentence."""
    return tuple(_doubts(issue, history, history.fails_on))


def doubts_about_fix(issue: Issue, fix: Fix, known: Known, hardware: str) -> tuple[Message, ...]:
    """Reasons against moving to where an issue passes again, a clause each: `but upstream says that 2.12.0 and 2.13.0
    are affected (pytorch/pytorch#193183, the report, 2026-08-12; not measured here)`, and that it was measured to come
    back.
    """
    history = known.history(issue.id, hardware)
    mended = fix.build.build_id.public_version
    again = history.spans[bisect_right(history.spans, mended, key=lambda span: span.begins) :]

    def expected(release: Version) -> bool | None:
        return False if release >= mended and not history.fails_on(release) else None

    return (*(span.comes_back for span in again), *_doubts(issue, history, expected))


def _doubts(issue: Issue, history: History, fails_on: Callable[[Version], bool | None]) -> Iterable[Message]:
    for claim in issue.claims:
        if claim.about and claim.says in {"affected", "fixed"}:
            against = claim.says == "fixed"
            names = [name for name in _spoken_of(claim, history) if fails_on(Version(name)) is against]
            if names:
                measured = {release.name for release in history.releases if release.fails is not None}
                yield _doubt(claim, names, [name for name in names if name in measured])


def _spoken_of(claim: Claim, history: History) -> Iterable[str]:
    """The releases that a claim is about, oldest first: those of the catalogue, and those that it names. A claim that
    something is affected is about what was released on that day.
    """
    exact = (
        specifier.version
        for specifier in SpecifierSet(claim.about)
        if specifier.operator == "==" and "*" not in specifier.version
    )
    names = {Version(name): name for name in exact}
    for release in history.releases:
        was_out = not (claim.dated and release.released and release.released > claim.dated)
        if is_within(claim.about, release.name) and (was_out or claim.says == "fixed"):
            names[Version(release.name)] = release.name
    return (names[version] for version in sorted(names))


def _doubt(claim: Claim, names: Sequence[str], measured: Sequence[str]) -> Message:
    """`measured` are those of `names` that say otherwise themselves."""
    by_whom = f"{claim.source}, {claim.dated}" if claim.dated else claim.source
    does = {"affected": ("passes_here", "pass_here"), "fixed": ("fails_here", "fail_here")}[claim.says]
    seen = [Message(does[len(measured) > 1], names=listed(measured)) if measured else Message("not_measured_here")]
    seen += [Message("rest_not_measured")] if 0 < len(measured) < len(names) else []
    many = "upstream_all" if len(names) > 1 else "upstream"
    return Message(f"{many}_{claim.says}", names=_in_a_row(names), source=Quoted(by_whom), seen=joined("then", seen))


def _in_a_row(names: Sequence[str]) -> Message:
    """`2.12.0, 2.12.1 and 2.13.0`."""
    all_ = listed(names)
    is_long = all_.key != "names" or len(names) == 1
    return all_ if is_long else Message("in_a_row", names=tuple(names[:-1]), last=names[-1])
