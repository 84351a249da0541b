"""An issue and its history as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Claim, Issue, Left, Link, Signature
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import Standing, doubts_about, held_claims
from knowngood.domain.verdicts.history import Answer, History
from knowngood.domain.verdicts.verdict import Cell
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_body
from knowngood.web.json_body import Body, English, IssueUrl, read_from


class VariantBody(Body):
    id: str
    title: str
    params: dict[str, str | int | float | bool]
    arms: list[str]
    why_not: str
    reported: bool = read_from("is_reported")


class WorkaroundBody(Body):
    """`body` is Markdown with the snippet to paste; `applies_to` a torch specifier (empty: all); a `decoy`
    is listed because it looks like a workaround and is none.
    """

    id: str
    title: str
    body: str
    trade_off: str
    applies_to: Annotated[str, BeforeValidator(lambda arm, info: info.context.arm(arm).applies_to)] = read_from("id")
    title_zh: str
    body_zh: str
    trade_off_zh: str
    decoy: bool = read_from("is_decoy")


class RequiresBody(Body):
    device: str
    torch: str
    python: str
    compute_capability: Annotated[str, BeforeValidator(lambda parts: ".".join(map(str, parts or ())))]
    package: str
    vector_isas: list[str]


class PackagesBody(Body):
    requires: list[str] = read_from("requirements")
    per_release: dict[str, list[str]]
    no_deps: list[str]


class IssueBody(Body, json_schema_serialization_defaults_required=True):
    """`caveat` says of an issue of a team's own catalogue that its repro was not reviewed (empty for all others), and
    `warnings` what `knowngood check` warns of in it.
    """

    id: str
    title: str
    summary: str
    title_zh: str
    summary_zh: str
    component: str
    culprit: str
    severity: str
    silent: bool
    fidelity: str
    status: str
    reported_on: date | None
    links: list[Link]
    claims: list[Claim]
    requires: RequiresBody
    packages: PackagesBody
    signature: Signature
    variants: list[VariantBody]
    left: list[Left]
    workarounds: list[WorkaroundBody]
    timeout_s: float
    url: IssueUrl = read_from("id")
    repro_url: Annotated[IssueUrl, AfterValidator(lambda url: f"{url}/repro.py")] = read_from("id")
    caveat: str = ""
    warnings: list[str]


class IssuesBody(Body):
    """`next` stands only where the list is in parts: the address of the issues after these (null: there are none)."""

    issues: list[IssueBody]
    next: str | None = None


class ReleaseBody(Body):
    """A release that neither passes nor fails, and what it says instead."""

    release: str = read_from("name")
    answer: Answer


class SpanBody(Body):
    """A run of failing releases; intervals name the two builds that were measured.

    Of the releases that neither pass nor fail, `before` and `after` are those inside `broke_in` and `fixed_in` (where
    one is null: all that are older, or newer), and `within` those between the first and the last that fail.
    """

    first_bad: str
    last_bad: str
    broke_in: str | None
    fixed_in: str | None
    before: list[ReleaseBody]
    within: list[ReleaseBody]
    after: list[ReleaseBody]


class HistoryBody(Body):
    """`measured` counts releases that pass or fail; `beside` is what upstream says against it, a clause each."""

    hardware: str
    sentence: str
    beside: list[str]
    measured: int
    spans: list[SpanBody]


class ClaimStandingBody(Body):
    """How a claim stands on one hardware class; `sentence` says what was measured (empty: nothing that bears on it)."""

    standing: Standing
    sentence: English
    hardware: str


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
        HistoryBody(
            hardware=hardware,
            sentence=english(history.sentence),
            beside=list(map(english, doubts_about(issue, history))),
            measured=history.measured,
            spans=[SpanBody.of(span) for span in history.spans],
        )
        for hardware, history in histories.items()
    ]
