"""Issues, builds and cells as JSON: the rows, the columns and the fields of the matrix.

Nothing here needs a store or a server: `matrix --json`, `compare --json` and a site's data are made of it too.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Packages, Requires, Variant, Workaround
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import ClaimStanding, doubts_about, held_claims
from knowngood.domain.verdicts.history import FailingSpan, History, Release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.paired_time import Says, TimedCost
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import (
    Assurance,
    Basis,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_stale,
)
from knowngood.domain.vocabulary import StatusLabel
from knowngood.web.json_body import Body, English, IssueUrl, fields_of, read_from
from knowngood.web.urls import attempt_address, build_address


@fields_of(Basis)
class GroundBody(Body):
    """A measured cell that an inferred one stands on: by which rule, and in how many of the pairs that were measured on
    both sides the rule held.
    """

    measured_at: datetime | None


@fields_of(WorkaroundFinding, without={"applies", "ground"})
class WorkaroundVariantsBody(Body):
    """A workaround over the variants that are affected or flaky in the cell; `runs` is the least number of passes with
    one of `helped`.
    """

    assurance: Assurance


LEFT_OUT = frozenset(
    {"line", "variants", "superseded", "voided", "evidence", "reported", "basis", "differences", "amounts"}
)
"""Of a cell: what its short form says in another way, or not at all."""


@fields_of(Cell, without=LEFT_OUT)
class CellBody(Body):
    """(issue, build, hardware class) and what is claimed of it. `attempts` counts the baseline's outcomes.

    `assurance` says whether that was measured here, is inferred from the cells in `grounds`, or is not known; `runs`
    how many attempts the verdict rests on. `as_reported` is the verdict with the variant that the report ran, where
    it is another one. `silent` says of what fails whether it gives wrong numbers without an error here (null: nothing
    fails, or it is as the issue says of itself). `proof` is `call` where the harness looked at the suspect call itself
    with every variant, `process` where it looked at the process around it, null where nothing was measured.
    `not_covered` is what is left wrong, of a pass that says nothing of it. `reason` is a sentence; `reason_key` and
    `reason_values` are the same for programs: names, numbers, other messages, words of somebody else (`text`), and
    lists of these. `sign` says how it stands with its workarounds, by the name of the sign that `/signs` shows: a
    failure is `cure` (one works), `partial` (one helps in part), `untried` (one has no answer here), `fails` (all were
    run, and none helps) or `variant` (passes as reported).
    """

    reason_key: str
    reason_values: dict[str, Any]
    stale: bool
    signature_line: str
    evidence_url: str | None
    workarounds: dict[str, WorkaroundVerdict]
    workaround_findings: dict[str, WorkaroundVariantsBody]
    assurance: Assurance
    grounds: list[GroundBody]
    runs: int
    as_reported: Verdict | None
    sign: StatusLabel


def cell_body(cell: Cell, build: Build, now: datetime) -> CellBody:
    return CellBody(**cell_fields(cell, build, now))


def cell_fields(cell: Cell, build: Build, now: datetime) -> dict[str, Any]:
    return {
        **vars(cell),
        "reason_key": cell.reason.key,
        "reason_values": cell.reason.values,
        "stale": is_stale(cell, build, now),
        "signature_line": cell.line,
        "evidence_url": attempt_address(cell.evidence) if cell.evidence else None,
        "workarounds": {id_: finding.verdict for id_, finding in cell.workarounds.items()},
        "workaround_findings": {id_: _over_variants(cell, finding) for id_, finding in cell.workarounds.items()},
        "assurance": cell.assurance,
        "grounds": [GroundBody(**vars(cell.basis), measured_at=cell.measured_at)] if cell.basis else [],
        "runs": cell.runs,
        "as_reported": cell.as_reported.verdict if cell.as_reported else None,
        "sign": status_of(cell),
    }


def _over_variants(cell: Cell, finding: WorkaroundFinding) -> WorkaroundVariantsBody:
    is_known = finding.verdict is not WorkaroundVerdict.UNVERIFIED
    assurance = Assurance.NOT_KNOWN if not is_known else Assurance.INFERRED if finding.ground else cell.assurance
    return WorkaroundVariantsBody(**vars(finding), assurance=assurance)


@fields_of(Build, without={"companions"})
class BuildBody(Body):
    """`torch` is the version as imported, `requirement` as asked of the index.

    `mismatched` says that Triton is not that torch's own pin; `git` is torch's revision, empty where nobody knows it.
    """

    mismatched: bool = read_from("is_mismatched")
    url: Annotated[str, AfterValidator(build_address)] = read_from("id")


class BuildsBody(Body):
    """`next` stands only where the list is in parts: the address of the builds after these (null: there are none)."""

    builds: list[BuildBody]
    next: str | None = None


class ArchitecturesBody(Body):
    """`names` as the compiler has them: `sm_90`, and `compute_90` for code that the driver compiles."""

    names: list[str] = read_from("architectures")
    read_at: datetime


class BuildDetailBody(BuildBody):
    """`cells` are all issues on one hardware class, not_run ones too. `architectures` are those that this very wheel
    holds code for, as they were read in it (null: nobody read them).
    """

    architectures: ArchitecturesBody | None
    cells: list[CellBody]


def build_detail(build: Build, cells: Iterable[Cell], wheel: WheelCode | None, now: datetime) -> BuildDetailBody:
    return BuildDetailBody(
        **vars(BuildBody.of(build)),
        architectures=ArchitecturesBody.of(wheel) if wheel else None,
        cells=[cell_body(cell, build, now) for cell in cells],
    )


@fields_of(Variant, without={"is_reported"})
class VariantBody(Body):
    reported: bool = read_from("is_reported")


@fields_of(Workaround, without={"is_decoy"})
class WorkaroundBody(Body):
    """`body` is Markdown with the snippet to paste; `applies_to` a torch specifier (empty: all); a `decoy`
    is listed because it looks like a workaround and is none.
    """

    applies_to: Annotated[str, BeforeValidator(lambda arm, info: info.context.arm(arm).applies_to)] = read_from("id")
    decoy: bool = read_from("is_decoy")


@fields_of(Requires)
class RequiresBody(Body):
    compute_capability: Annotated[str, BeforeValidator(lambda parts: ".".join(map(str, parts or ())))]


@fields_of(Packages, without={"requirements", "mutates"})
class PackagesBody(Body):
    requires: list[str] = read_from("requirements")


@fields_of(Issue, without={"arms", "script", "default", "is_smoke", "observed", "suspect", "is_of_team"})
class IssueBody(Body, json_schema_serialization_defaults_required=True):
    """`caveat` says of an issue of a team's own catalogue that its repro was not reviewed (empty for all others), and
    `warnings` what `knowngood check` warns of in it.
    """

    requires: RequiresBody
    packages: PackagesBody
    variants: list[VariantBody]
    workarounds: list[WorkaroundBody]
    url: IssueUrl = read_from("id")
    repro_url: Annotated[IssueUrl, AfterValidator(lambda url: f"{url}/repro.py")] = read_from("id")
    caveat: str = ""


class IssuesBody(Body):
    """`next` stands only where the list is in parts: the address of the issues after these (null: there are none)."""

    issues: list[IssueBody]
    next: str | None = None


@fields_of(Release, without={"name", "released"})
class ReleaseBody(Body):
    """A release that neither passes nor fails, and what it says instead."""

    release: str = read_from("name")


@fields_of(FailingSpan, without={"good_before", "good_after"})
class SpanBody(Body):
    """A run of failing releases; intervals name the two builds that were measured.

    Of the releases that neither pass nor fail, `before` and `after` are those inside `broke_in` and `fixed_in` (where
    one is null: all that are older, or newer), and `within` those between the first and the last that fail.
    """

    broke_in: str | None
    fixed_in: str | None
    before: list[ReleaseBody]
    within: list[ReleaseBody]
    after: list[ReleaseBody]


class HistoryBody(Body):
    """`measured` counts releases that pass or fail; `beside` is what upstream says against it, a clause each."""

    hardware: str
    sentence: English
    beside: list[str]
    measured: int
    spans: list[SpanBody]


@fields_of(ClaimStanding)
class ClaimStandingBody(Body):
    """How a claim stands on one hardware class; `sentence` says what was measured (empty: nothing that bears on it)."""


class HeldClaimBody(Body, json_schema_serialization_defaults_required=True):
    """`held` is empty where the claim names neither releases nor a workaround, and so cannot be held against any."""

    text: str = read_from("claim", "text")
    source: str = read_from("claim", "source")
    held: list[ClaimStandingBody]


@fields_of(TimedCost)
class TimedCostBody(Body):
    """The time that a workaround takes beside the same code without it, each on the one build where it was measured.
    `sentence` says it; `says` is `cannot_say` where the intervals leave that open.
    """

    says: Says = read_from("compared", "says")
    sentence: English = read_from("in_words")


class IssueDetailBody(IssueBody):
    """`cells` are the measured ones, of every build and hardware class."""

    costs: list[TimedCostBody]
    history: list[HistoryBody]
    held_claims: list[HeldClaimBody]
    cells: list[CellBody]


def issue_body(issue: Issue) -> IssueBody:
    return IssueBody.of(issue, context=issue)


def issues_body(issues: Iterable[Issue], next_: str | None = None) -> IssuesBody:
    return IssuesBody(issues=[issue_body(issue) for issue in issues], next=next_)


def issue_detail(
    issue: Issue, histories: Mapping[str, History], cells: Iterable[Cell], knowledge: Known, now: datetime
) -> IssueDetailBody:
    known = [(knowledge.builds[cell.build], cell) for cell in cells if cell.build in knowledge.builds]
    return IssueDetailBody(
        **vars(issue_body(issue)),
        costs=[TimedCostBody.of(cost) for cost in knowledge.costs.get(issue.id, {}).values()],
        held_claims=held_claim_bodies(issue, known),
        history=history_bodies(issue, histories),
        cells=[cell_body(cell, build, now) for build, cell in known],
    )


def held_claim_bodies(issue: Issue, known: Sequence[tuple[Build, Cell]]) -> list[HeldClaimBody]:
    return [HeldClaimBody.of(claim) for claim in held_claims(issue, known)]


def history_bodies(issue: Issue, histories: Mapping[str, History]) -> list[HistoryBody]:
    return [
        HistoryBody(hardware=hardware, beside=list(map(english, doubts_about(issue, history))), **vars(history))
        for hardware, history in histories.items()
    ]


class MatrixBody(Body):
    """Every cell of the selection, not_run ones too; titles and snippets stand once, in `issues`.

    Of a part of it, `issues` and `builds` are those of its cells, and `next` is the address of the cells after these
    (null: there are none); it stands only there.
    """

    issues: list[IssueBody]
    builds: list[BuildBody]
    cells: list[CellBody]
    next: str | None = None


def matrix_body(
    issues: Iterable[Issue], builds: Iterable[Build], cells: Iterable[Cell], now: datetime, next_: str | None = None
) -> MatrixBody:
    by_id = {build.id: build for build in builds}
    return MatrixBody(
        issues=[issue_body(issue) for issue in issues],
        builds=[BuildBody.of(build) for build in by_id.values()],
        cells=[cell_body(cell, by_id[cell.build], now) for cell in cells],
        next=next_,
    )
