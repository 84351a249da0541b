"""A comparison and an upgrade's answer as JSON, for the API and the commands alike."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.builds.release_age import ReleaseAge
from knowngood.domain.issue import Severity
from knowngood.domain.message import english
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.verdict import Assurance, Verdict
from knowngood.matrix.schemas import BuildBody, CellBody, cell_body
from knowngood.move.compare.comparison import PAIRING_WORDS, Comparison, sentence
from knowngood.move.pair import Group, InstalledPackages, Transition, WorkaroundTurn
from knowngood.move.upgrade.candidates import Missing, Rating, Tally
from knowngood.move.upgrade.ranking import LeftOut, UpgradeAdvice
from knowngood.move.upgrade.reasons import FindOut, UpgradeDecision
from knowngood.move.upgrade.wording import answer, requirements
from knowngood.serialization.message_field import MessageField
from knowngood.web.json_body import Body, CellUrl, TitledIssueBody, read_from, rounded
from knowngood.web.urls import build_address, compare_address, issue_address


class PairBody(TitledIssueBody):
    """One issue on both builds. `group` says what a reader does with it; each pair is in one. `runs` is how many
    attempts each side rests on at least, and `assurance` that of the weaker side.
    """

    transition: Transition
    group: Group
    assurance: Assurance
    runs: int
    before: CellBody
    after: CellBody
    workarounds: dict[str, WorkaroundTurn]
    packages: InstalledPackages
    url: str


class CompareBody(Body):
    """`sentence` is the answer. `pairs` stand in the order of `groups`, the most severe of each first; `counts` name
    every transition.

    `blind` says that no issue answers on both builds, so that nothing was compared.
    """

    sentence: MessageField
    a: BuildBody
    b: BuildBody
    hardware: str
    counts: dict[Transition, int]
    groups: dict[Group, int]
    blind: bool
    pairing: str
    pairs: list[PairBody]
    url: str


def compare_body(compared: Comparison, now: datetime, narrowing: Mapping[str, str] | None = None) -> CompareBody:
    """`narrowing` is how the question narrowed it, for the address of the page that shows the same."""
    parameters = {**(narrowing or {}), "hardware": compared.hardware}
    return CompareBody(
        sentence=sentence(compared),
        a=BuildBody.of(compared.before),
        b=BuildBody.of(compared.after),
        hardware=compared.hardware,
        counts=dict(compared.counts),
        groups={group: len(compared.of(group)) for group in Group},
        blind=compared.is_blind,
        pairing=PAIRING_WORDS,
        pairs=[
            PairBody(
                issue=pair.issue.id,
                title=pair.issue.title,
                component=pair.issue.component,
                severity=pair.issue.severity,
                silent=pair.issue.silent,
                transition=pair.transition,
                group=pair.group,
                assurance=pair.assurance,
                runs=pair.runs,
                before=cell_body(pair.before, compared.before, now),
                after=cell_body(pair.after, compared.after, now),
                workarounds=dict(pair.turns),
                packages=pair.packages,
                url=issue_address(pair.issue.id, build=compared.after.id, hardware=pair.after.hardware),
            )
            for pair in compared.pairs
        ],
        url=compare_address(compared.before.id, compared.after.id, **parameters),
    )


class ItemBody(Body):
    """One watched issue on one candidate. `group` is what became of it, as `/api/v1/compare` has it; `runs` how many
    attempts each side rests on at least, and `assurance` that of the weaker side. `measured_on` is the build whose cell
    the answer stands on. `workarounds` are those that help there.
    """

    issue: str = read_from("issue", "id")
    title: str = read_from("issue", "title")
    severity: Severity = read_from("issue", "severity")
    silent: bool = read_from("issue", "silent")
    prospect: Prospect
    group: Group
    assurance: Assurance
    runs: int
    hardware: str = read_from("after", "hardware")
    before: Verdict = read_from("before", "verdict")
    after: Verdict = read_from("after", "verdict")
    measured_on: Annotated[str, BeforeValidator(lambda cell: (cell.basis or cell).build)] = read_from("after")
    measured_at: datetime | None = read_from("after", "measured_at")
    workarounds: list[str]
    url: Annotated[str, BeforeValidator(lambda cell: issue_address(*cell.key))] = read_from("after")
    evidence_url: CellUrl = read_from("after", "key")


class CandidateBody(Body):
    """`measured` of the `applicable` issues were run on the very class, `from_python` of these with another Python;
    `from_cpu` more have an answer of the CPU. `coverage` is the share that has an answer, of all or of those that are
    run on that class, whichever is less; `assurance` the share of those not known to fail there that are known to pass:
    it decides whether enough is measured. `gain` is the weight of what is gained, less that of what newly needs a
    workaround. `packages` are those of the environment that are made for one torch, each with the
    release that goes with the build. `age` says how long its minor release has been out and how many issues of the
    catalogue were first reported since (null: not known).
    """

    build: str = read_from("build", "id")
    packages: dict[str, str]
    age: ReleaseAge | None
    rating: Rating
    why: MessageField
    counts: dict[Tally, int]
    measured: int
    from_python: int
    from_cpu: int
    applicable: int
    coverage: Annotated[float, rounded(4)]
    assurance: Annotated[float, rounded(4)]
    gain: int
    missing: Missing
    items: list[ItemBody]
    url: Annotated[str, AfterValidator(build_address)] = read_from("build", "id")


class UpgradeBody(Body):
    """`base` is the build one is on, held to the same standard as the `candidates`, which stand best first. `build` and
    `requirements` are those of the recommended one.
    """

    decision: UpgradeDecision
    answer: str
    start: str
    build: str | None
    requirements: list[str]
    watched: list[str]
    hardware: list[str]
    constraints: list[str]
    enough: float
    failing: list[str]
    find_out: tuple[FindOut, ...]
    base: CandidateBody
    candidates: list[CandidateBody]
    left_out: tuple[LeftOut, ...]
    notes: list[str]


def upgrade_body(advice: UpgradeAdvice) -> UpgradeBody:
    best = advice.best
    return UpgradeBody(
        decision=advice.decision,
        answer=english(answer(advice)),
        start=advice.start.id,
        build=best.build.id if best else None,
        requirements=list(requirements(best.build, best.packages)) if best else [],
        watched=[issue.id for issue in advice.watched],
        hardware=list(advice.hardware),
        constraints=list(advice.constraints.in_words),
        enough=advice.enough,
        failing=list(advice.failing),
        find_out=advice.find_out,
        base=CandidateBody.of(advice.base),
        candidates=[CandidateBody.of(candidate) for candidate in advice.candidates],
        left_out=advice.left_out,
        notes=list(map(english, advice.notes)),
    )
