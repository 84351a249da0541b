"""The overview as JSON."""

from collections.abc import Iterable
from datetime import date, datetime

from knowngood.ask.front.service import BuildStanding, IssueStanding, Overview, Yours, standing_of
from knowngood.domain.message import english
from knowngood.domain.verdicts.status import Prospect
from knowngood.domain.verdicts.verdict import Verdict, is_silent
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.wording import because, verdict
from knowngood.web.json_body import Body, TitledIssueBody
from knowngood.web.urls import cell_address, issue_address


class NextBuildBody(Body):
    """The advice of `/api/v1/upgrade` from this build, on this class. `build` is null where none is recommended."""

    decision: UpgradeDecision
    build: str | None
    answer: str
    because: str


class IssueStandingBody(TitledIssueBody):
    """One issue on the build. `history` is where it came and went on that class."""

    verdict: Verdict
    prospect: Prospect
    history: str
    url: str
    cell_url: str


class NewsBody(Body):
    """Verdicts that became other ones from this day on: how many cells, of which issues."""

    since: date
    cells: int
    issues: list[str]


class OverviewBody(Body):
    """`example` says that no build was asked for: `standing` is then about the newest measured release (null: none is
    measured). `next` is null where no advice can be given: `/api/v1/upgrade` says why.

    `watch_out` are issues of high or critical severity that give wrong numbers there without an error, `severe` the
    twelve that weigh most, `releases` every measured one, class by class.
    """

    issues: int
    builds: int
    hardware: list[str]
    newest: datetime | None
    example: bool
    standing: BuildStanding | None
    next: NextBuildBody | None
    watch_out: list[IssueStandingBody]
    severe: list[IssueStandingBody]
    changes: NewsBody
    releases: list[BuildStanding]


def overview_body(overview: Overview, *, is_example: bool) -> OverviewBody:
    yours, news = overview.yours, overview.news
    return OverviewBody(
        issues=len(overview.catalogue),
        builds=overview.builds,
        hardware=list(overview.hardware),
        newest=overview.newest,
        example=is_example,
        standing=yours.standing if yours else None,
        next=_next(yours) if yours else None,
        watch_out=_issues(yours.watch_out) if yours else [],
        severe=_issues(yours.severe) if yours else [],
        changes=NewsBody(
            since=news.since.date(),
            cells=news.cells,
            issues=list(dict.fromkeys(issue for change in news.changes for issue in change.issues)),
        ),
        releases=[
            standing_of(release.build, rate.hardware, release.counts)
            for rate in overview.rates
            for release in rate.releases
        ],
    )


def _next(yours: Yours) -> NextBuildBody | None:
    advice = yours.advice
    if advice is None:
        return None
    best = advice.best
    return NextBuildBody(
        decision=advice.decision,
        build=best.build.id if best else None,
        answer=english(verdict(advice)),
        because=english(because(advice)),
    )


def _issues(rows: Iterable[IssueStanding]) -> list[IssueStandingBody]:
    return [
        IssueStandingBody(
            issue=row.issue.id,
            title=row.issue.title,
            component=row.issue.component,
            severity=row.issue.severity,
            silent=is_silent(row.issue, row.cell),
            verdict=row.cell.verdict,
            prospect=row.prospect,
            history=english(row.history),
            url=issue_address(row.issue.id, build=row.cell.build, hardware=row.cell.hardware),
            cell_url=cell_address(*row.cell.key),
        )
        for row in rows
    ]
