"""A cell as JSON, short as the matrix lists it. Nothing here needs a store: `compare --json` writes it too."""

from datetime import datetime
from typing import Any

from knowngood.domain.builds.build import Build
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
from knowngood.web.json_body import Body, fields_of
from knowngood.web.urls import attempt_address


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


LEFT_OUT = frozenset({"line", "variants", "superseded", "voided", "evidence", "reported", "basis", "differences"})
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
    failure is `cure` (one works), `partial` (one helps in part), `untried` (not all were run here), `fails` (all were,
    and none helps) or `variant` (passes as reported).
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
        "workaround_findings": {id_: _over_variants(cell, one) for id_, one in cell.workarounds.items()},
        "assurance": cell.assurance,
        "grounds": [GroundBody(**vars(cell.basis), measured_at=cell.measured_at)] if cell.basis else [],
        "runs": cell.runs,
        "as_reported": cell.as_reported.verdict if cell.as_reported else None,
        "sign": status_of(cell),
    }


def _over_variants(cell: Cell, found: WorkaroundFinding) -> WorkaroundVariantsBody:
    is_known = found.verdict is not WorkaroundVerdict.UNVERIFIED
    assurance = Assurance.NOT_KNOWN if not is_known else Assurance.INFERRED if found.ground else cell.assurance
    return WorkaroundVariantsBody(**vars(found), assurance=assurance)
