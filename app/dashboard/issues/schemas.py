"""An issue and its history as JSON."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel

from knowngood.app.dashboard.evidence.cell_schemas import CellBody, cell_body
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Claim, Issue, Packages, Requires, Variant, Workaround
from knowngood.app.domain.verdicts.claims import Standing, doubts_about, held_claims
from knowngood.app.domain.verdicts.history import Answer, FailingSpan, History, Release
from knowngood.app.domain.verdicts.verdict import Cell
from knowngood.app.web.urls import issue_address


class LinkBody(BaseModel):
    kind: str
    url: str
    title: str


class ClaimBody(BaseModel):
    """What somebody says, never counted: `says` is affected, fixed, cure, cause or empty."""

    text: str
    source: str
    dated: date | None
    url: str
    says: str


class VariantBody(BaseModel):
    id: str
    title: str
    params: dict[str, str | int | float | bool]
    arms: list[str]
    why_not: str
    reported: bool


class WorkaroundBody(BaseModel):
    """`body` is Markdown with the snippet to paste; `applies_to` a torch specifier (empty: all)."""

    id: str
    title: str
    body: str
    trade_off: str
    applies_to: str
    title_zh: str
    body_zh: str
    trade_off_zh: str


class SignatureBody(BaseModel):
    kind: str
    pattern: str
    signals: list[str]


class RequiresBody(BaseModel):
    device: str
    torch: str
    python: str
    compute_capability: str
    package: str


class PackagesBody(BaseModel):
    requires: list[str]
    per_release: dict[str, list[str]]
    no_deps: list[str]


class IssueBody(BaseModel):
    """`caveat` says of an issue of a team's own catalogue that its repro was not reviewed (empty for all others)."""

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
    links: list[LinkBody]
    claims: list[ClaimBody]
    requires: RequiresBody
    packages: PackagesBody
    signature: SignatureBody
    variants: list[VariantBody]
    workarounds: list[WorkaroundBody]
    timeout_s: float
    url: str
    repro_url: str
    caveat: str = ""


class IssuesBody(BaseModel):
    """`next` stands only where the list is in parts: the address of the issues after these (null: there are none)."""

    issues: list[IssueBody]
    next: str | None = None


class ReleaseBody(BaseModel):
    """A release that neither passes nor fails, and what it says instead."""

    release: str
    answer: Answer


class SpanBody(BaseModel):
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


class HistoryBody(BaseModel):
    """`measured` counts releases that pass or fail; `beside` is what upstream says against it, a clause each."""

    hardware: str
    sentence: str
    beside: list[str]
    measured: int
    spans: list[SpanBody]


class HeldBody(BaseModel):
    """How a claim stands on one hardware class (empty: on none); `sentence` is what was measured."""

    standing: Standing
    sentence: str
    hardware: str


class HeldClaimBody(BaseModel):
    """`held` is empty where the claim names neither releases nor a workaround, and so cannot be held against any."""

    text: str
    source: str
    held: list[HeldBody]


class IssueDetailBody(IssueBody):
    """`cells` are the measured ones, of every build and hardware class."""

    history: list[HistoryBody]
    held_claims: list[HeldClaimBody]
    cells: list[CellBody]


def issue_body(issue: Issue) -> IssueBody:
    return IssueBody(**_fields(issue))


def issue_detail(
    issue: Issue, histories: Mapping[str, History], cells: Iterable[Cell], builds: Mapping[str, Build], now: datetime
) -> IssueDetailBody:
    known = [(builds[cell.build], cell) for cell in cells if cell.build in builds]
    return IssueDetailBody(
        **_fields(issue),
        held_claims=[
            HeldClaimBody(
                text=one.claim.text,
                source=one.claim.source,
                held=[HeldBody(**vars(held)) for held in one.held],
            )
            for one in held_claims(issue, known)
        ],
        history=[_history(issue, hardware, history) for hardware, history in histories.items()],
        cells=[cell_body(cell, build, now) for build, cell in known],
    )


def _fields(issue: Issue) -> dict[str, Any]:
    applies = {arm.id: arm.applies_to for arm in issue.arms}
    signature = issue.signature
    return {
        "id": issue.id,
        "title": issue.title,
        "summary": issue.summary,
        "title_zh": issue.title_zh,
        "summary_zh": issue.summary_zh,
        "component": issue.component,
        "culprit": issue.culprit,
        "severity": issue.severity,
        "silent": issue.silent,
        "fidelity": issue.fidelity,
        "status": issue.status,
        "links": [LinkBody(kind=link.kind, url=link.url, title=link.title) for link in issue.links],
        "claims": [_claim(claim) for claim in issue.claims],
        "requires": _requires(issue.requires),
        "packages": _packages(issue.packages),
        "signature": SignatureBody(kind=signature.kind, pattern=signature.pattern, signals=list(signature.signals)),
        "variants": [_variant(variant) for variant in issue.variants],
        "workarounds": [_workaround(one, applies.get(one.id, "")) for one in issue.workarounds],
        "timeout_s": issue.timeout_s,
        "url": issue_address(issue.id),
        "repro_url": f"{issue_address(issue.id)}/repro.py",
        "caveat": issue.caveat,
    }


def _claim(claim: Claim) -> ClaimBody:
    return ClaimBody(text=claim.text, source=claim.source, dated=claim.dated, url=claim.url, says=claim.says)


def _requires(requires: Requires) -> RequiresBody:
    return RequiresBody(
        device=requires.device,
        torch=requires.torch,
        python=requires.python,
        compute_capability=".".join(str(part) for part in requires.compute_capability or ()),
        package=requires.package,
    )


def _packages(packages: Packages) -> PackagesBody:
    return PackagesBody(
        requires=list(packages.requirements),
        per_release={release: list(names) for release, names in packages.per_release.items()},
        no_deps=list(packages.no_deps),
    )


def _variant(variant: Variant) -> VariantBody:
    return VariantBody(
        id=variant.id,
        title=variant.title,
        params=dict(variant.params),
        arms=list(variant.arms),
        why_not=variant.why_not,
        reported=variant.is_reported,
    )


def _workaround(one: Workaround, applies_to: str) -> WorkaroundBody:
    return WorkaroundBody(
        id=one.id,
        title=one.title,
        body=one.body,
        trade_off=one.trade_off,
        applies_to=applies_to,
        title_zh=one.title_zh,
        body_zh=one.body_zh,
        trade_off_zh=one.trade_off_zh,
    )


def _history(issue: Issue, hardware: str, history: History) -> HistoryBody:
    return HistoryBody(
        hardware=hardware,
        sentence=history.sentence,
        beside=list(doubts_about(issue, history)),
        measured=history.measured,
        spans=[_span(span) for span in history.spans],
    )


def _span(span: FailingSpan) -> SpanBody:
    return SpanBody(
        first_bad=span.first_bad,
        last_bad=span.last_bad,
        broke_in=span.broke_in,
        fixed_in=span.fixed_in,
        before=_silent(span.before),
        within=_silent(span.within),
        after=_silent(span.after),
    )


def _silent(releases: Iterable[Release]) -> list[ReleaseBody]:
    return [ReleaseBody(release=one.name, answer=one.answer) for one in releases]
