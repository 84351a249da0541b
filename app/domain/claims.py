"""Claims held against measurements: what upstream or a blog says, and whether any cell bears it out.

Only a claim that can be wrong is held: one that names releases (`about`) and says that they fail or are mended, or one
that names a workaround and calls it a cure. All others stand beside the measurements without a word from us.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from packaging.specifiers import SpecifierSet

from app.domain.build import Build
from app.domain.history import FAILING, is_release
from app.domain.issue import Claim, Issue
from app.domain.verdict import Cell, Verdict, WorkaroundVerdict

ANSWERS = FAILING | {Verdict.NOT_AFFECTED}
NO_CURE = frozenset({WorkaroundVerdict.INEFFECTIVE, WorkaroundVerdict.HARMFUL})

_SHOWN = 3


class Standing(StrEnum):
    CONTRADICTED = "contradicted"
    AGREES = "agrees"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True)
class Held:
    """How a claim stands on one hardware class; `sentence` says what was measured (empty: nothing that bears on it)."""

    standing: Standing
    sentence: str = ""
    hardware: str = ""


@dataclass(frozen=True)
class HeldClaim:
    """A claim with its standing on each class that says something, or the one word that none does; `held` is empty
    where it names neither releases nor a workaround, and so cannot be wrong by what is measured here.
    """

    claim: Claim
    held: tuple[Held, ...]


def held_claims(issue: Issue, cells: Iterable[tuple[Build, Cell]]) -> tuple[HeldClaim, ...]:
    """Every claim of an issue, in its order; `cells` are its own, of any hardware class, in any order."""
    by_class: dict[str, list[tuple[Build, Cell]]] = {}
    for build, cell in cells:
        if cell.verdict in ANSWERS:
            by_class.setdefault(cell.hardware, []).append((build, cell))
    return tuple(
        HeldClaim(claim, _on_every_class(claim, by_class) if can_be_wrong(claim) else ()) for claim in issue.claims
    )


def can_be_wrong(claim: Claim) -> bool:
    return bool(claim.workaround) if claim.says == "cure" else bool(claim.about) and claim.says in {"affected", "fixed"}


def _on_every_class(claim: Claim, by_class: dict[str, list[tuple[Build, Cell]]]) -> tuple[Held, ...]:
    held = [(hardware, hold(claim, answered)) for hardware, answered in sorted(by_class.items())]
    said = [Held(one.standing, one.sentence, hardware) for hardware, one in held if one.sentence]
    return tuple(said) or (Held(Standing.NOT_MEASURED),)


def hold(claim: Claim, answered: Sequence[tuple[Build, Cell]]) -> Held:
    """How a claim stands against the cells of one hardware class, each of which gives an answer."""
    meant = [(build, cell) for build, cell in answered if _is_about(claim, build)]
    if not can_be_wrong(claim):
        return Held(Standing.NOT_MEASURED)
    if claim.says == "cure":
        return _as_cure(claim.workaround, meant)
    return _as_word_on_releases(meant, is_fixed=claim.says == "fixed")


def _as_cure(workaround: str, meant: Sequence[tuple[Build, Cell]]) -> Held:
    found = [(build, cell.workarounds[workaround].verdict) for build, cell in meant if workaround in cell.workarounds]
    cured = [build for build, verdict in found if verdict is WorkaroundVerdict.EFFECTIVE]
    failed = [build for build, verdict in found if verdict in NO_CURE]
    if cured:
        beside = f", and not {named(failed)}" if failed else ""
        return Held(Standing.AGREES, f"cured {named(cured)}{beside}")
    return Held(Standing.CONTRADICTED, f"did not cure {named(failed)}") if failed else Held(Standing.NOT_MEASURED)


def _as_word_on_releases(meant: Sequence[tuple[Build, Cell]], *, is_fixed: bool) -> Held:
    """One release that is otherwise contradicts it."""
    failing = [build for build, cell in meant if cell.verdict in FAILING]
    passing = [build for build, cell in meant if cell.verdict is Verdict.NOT_AFFECTED]
    against, with_it = (failing, passing) if is_fixed else (passing, failing)
    if against:
        return Held(Standing.CONTRADICTED, f"{named(against)} {'fails' if is_fixed else 'passes'} here")
    if with_it:
        return Held(Standing.AGREES, f"{named(with_it)} {'passes' if is_fixed else 'fails'} here")
    return Held(Standing.NOT_MEASURED)


def _is_about(claim: Claim, build: Build) -> bool:
    about = SpecifierSet(claim.about)
    return is_release(build) and about.contains(build.build_id.version.base_version, prereleases=True)


def named(builds: Sequence[Build]) -> str:
    """Releases by their names, oldest first; three and a count where there are more."""
    names = list(dict.fromkeys(build.build_id.release for build in sorted(builds, key=lambda build: build.build_id)))
    return ", ".join(names) if len(names) <= _SHOWN else f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
