"""An issue and its history as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Packages, Requires, Variant, Workaround
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import ClaimStanding, doubts_about, held_claims
from knowngood.domain.verdicts.history import FailingSpan, History, Release
from knowngood.domain.verdicts.verdict import Cell
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_body
from knowngood.web.json_body import Body, English, IssueUrl, fields_of, read_from


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


class IssueDetailBody(IssueBody):
    """`cells` are the measured ones, of every build and hardware class."""

    history: list[HistoryBody]
    held_claims: list[HeldClaimBody]
    cells: list[CellBody]


def issue_body(issue: Issue) -> IssueBody:
    return IssueBody.of(issue, context=issue)


def issues_body(issues: Iterable[Issue], next_: str | None = None) -> IssuesBody:
    return IssuesBody(issues=[issue_body(issue) for issue in issues], next=next_)


def issue_detail(
    issue: Issue, histories: Mapping[str, History], cells: Iterable[Cell], builds: Mapping[str, Build], now: datetime
) -> IssueDetailBody:
    known = [(builds[cell.build], cell) for cell in cells if cell.build in builds]
    return IssueDetailBody(
        **vars(issue_body(issue)),
        held_claims=held_claim_bodies(issue, known),
        history=history_bodies(issue, histories),
        cells=[cell_body(cell, build, now) for build, cell in known],
    )


def held_claim_bodies(issue: Issue, known: Sequence[tuple[Build, Cell]]) -> list[HeldClaimBody]:
    return [HeldClaimBody.of(one) for one in held_claims(issue, known)]


def history_bodies(issue: Issue, histories: Mapping[str, History]) -> list[HistoryBody]:
    return [
        HistoryBody(hardware=hardware, beside=list(map(english, doubts_about(issue, history))), **vars(history))
        for hardware, history in histories.items()
    ]
