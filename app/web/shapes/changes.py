"""What changed, as JSON."""

from datetime import datetime

from pydantic import BaseModel

from app.domain.changes import Cause, CellTurn, Change
from app.domain.verdict import Verdict, WorkaroundVerdict
from app.web.addresses import cell_address, issue_address, run_address


class WorkaroundTurnBody(BaseModel):
    before: WorkaroundVerdict
    after: WorkaroundVerdict


class CellTurnBody(BaseModel):
    """One cell before and after. `workarounds` are those whose verdict is another one, by id."""

    build: str
    hardware: str
    before: Verdict
    after: Verdict
    reason: str
    at: datetime
    workarounds: dict[str, WorkaroundTurnBody]
    url: str


class ChangeBody(BaseModel):
    """What one cause did to one issue. `run` and `run_url` where the cause is a run, `origin` where it is an import."""

    issue: str
    at: datetime
    cause: Cause
    run: str
    run_url: str | None
    origin: str
    cells: list[CellTurnBody]
    url: str


class ChangesBody(BaseModel):
    """Newest first."""

    changes: list[ChangeBody]


def change_body(change: Change) -> ChangeBody:
    return ChangeBody(
        issue=change.issue,
        at=change.at,
        cause=change.cause,
        run=change.run,
        run_url=run_address(change.run) if change.run else None,
        origin=change.origin,
        cells=[_turn(change.issue, turn) for turn in change.turns],
        url=issue_address(change.issue),
    )


def _turn(issue: str, turn: CellTurn) -> CellTurnBody:
    return CellTurnBody(
        build=turn.build,
        hardware=turn.hardware,
        before=turn.before,
        after=turn.after,
        reason=turn.reason,
        at=turn.at,
        workarounds={id_: WorkaroundTurnBody(before=b, after=a) for id_, (b, a) in turn.workarounds.items()},
        url=cell_address(issue, turn.build, turn.hardware),
    )
