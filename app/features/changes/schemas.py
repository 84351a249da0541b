"""What changed, as JSON."""

from datetime import datetime

from pydantic import BaseModel

from knowngood.app.domain.verdicts.changes import Cause, CellTurn, Change, CureNews
from knowngood.app.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.app.features.changes.atom import summary
from knowngood.app.web.urls import cell_address, run_address


class WorkaroundTurnBody(BaseModel):
    """`news` is what it means to whoever uses the workaround."""

    before: WorkaroundVerdict
    after: WorkaroundVerdict
    news: CureNews


class CellTurnBody(BaseModel):
    """One cell before and after. `workarounds` are those whose verdict is another one, by id.

    `first` says that nobody had ever measured it. `earlier` is the last verdict of a cell whose repro has become
    another one since, so that it was not run.
    """

    issue: str
    build: str
    hardware: str
    before: Verdict
    after: Verdict
    first: bool
    earlier: Verdict | None
    reason: str
    at: datetime
    workarounds: dict[str, WorkaroundTurnBody]
    url: str


class ChangeBody(BaseModel):
    """What one cause did. `run` and `run_url` where the cause is a run, `origin` where it is an import."""

    key: str
    at: datetime
    cause: Cause
    run: str
    run_url: str | None
    origin: str
    issues: list[str]
    summary: str
    cells: list[CellTurnBody]


class ChangesBody(BaseModel):
    """Newest first."""

    changes: list[ChangeBody]


def change_body(change: Change) -> ChangeBody:
    return ChangeBody(
        key=change.key,
        at=change.at,
        cause=change.cause,
        run=change.run,
        run_url=run_address(change.run) if change.run else None,
        origin=change.origin,
        issues=list(change.issues),
        summary=summary(change),
        cells=[_turn(turn) for turn in change.turns],
    )


def _turn(turn: CellTurn) -> CellTurnBody:
    return CellTurnBody(
        issue=turn.issue,
        build=turn.build,
        hardware=turn.hardware,
        before=turn.before,
        after=turn.after,
        first=turn.is_first,
        earlier=turn.earlier,
        reason=turn.reason,
        at=turn.at,
        workarounds={
            id_: WorkaroundTurnBody(before=one.before, after=one.after, news=one.news)
            for id_, one in turn.workarounds.items()
        },
        url=cell_address(turn.issue, turn.build, turn.hardware),
    )
