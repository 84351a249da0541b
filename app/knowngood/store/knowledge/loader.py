"""Everything the gate knows, in one value, brought up to date by what changed since."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from sys import intern

import sqlalchemy as sa

from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.grouping import gathered, grouped
from knowngood.domain.hardware_classes import whole_classes
from knowngood.domain.issue import COSTS, Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.paired_time import TimedCost, cost_of
from knowngood.domain.verdicts.verdict import Cell, CellPlace, Verdict
from knowngood.serialization import codec
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec, documents
from knowngood.store.evidence.changes import load_cells_at
from knowngood.store.knowledge.model import Knowledge, LazyCells
from knowngood.store.queries import (
    load_builds,
    load_generation,
    load_issues,
    load_readable_builds,
)
from knowngood.store.tables import attempts, cells, environments, issues, machines
from knowngood.store.watch_lists import load_watch_lists


@dataclass(frozen=True)
class KnowledgeSnapshot:
    """The knowledge at one generation of the store. `revisions` say which state of each issue was read, `known_at` when
    the store was last seen to be at that generation, `environments` how many had been imported
    by then. It `is_whole` unless an issue or a build could not be read.
    """

    generation: int
    knowledge: Knowledge
    revisions: Mapping[str, str]
    cells: LazyCells[str]
    known_at: datetime
    environments: int = 0
    is_whole: bool = True


def load_knowledge(
    s: Session, now: datetime, before: KnowledgeSnapshot | None = None, *, whole: bool = True
) -> KnowledgeSnapshot:
    """The knowledge of now, from that of `before`; that itself where the store has not moved since. Raises
    Unreadable where an issue or a build cannot be read; without `whole` it is left out.

    Only cells written since are read. Their generation says which: writers come one after the other, and each begins
    with raising it (`cells.touch`). A store that went backwards was put in the place of another and is read anew.
    """
    generation = load_generation(s)
    if before is not None and before.generation == generation and (before.is_whole or not whole):
        return before
    if before is not None and before.generation > generation:
        before = None
    known_cells, verdicts, flaky, changed = _cells(s, before)
    revisions, known_issues = _issues(s, before, whole=whole)
    readable, left_out = load_readable_builds(s, whole=whole)
    number = count_environments(s)
    wheels = (
        before.knowledge.known.wheels if before is not None and before.environments == number else load_wheel_code(s)
    )
    known = Known(
        issues=known_issues,
        builds={build.id: build for build in readable},
        cells=known_cells,
        hardware=whole_classes(hardware for _, _, hardware in known_cells),
        as_of=now,
        flaky=flaky,
        verdicts=verdicts,
        wheels=wheels,
        costs=load_costs(s, [id_ for id_, issue in known_issues.items() if not issue.is_timed]),
    )
    if before is not None and before.knowledge.known.builds == known.builds:
        revised = {id_ for id_ in revisions if before.revisions.get(id_) != revisions[id_]}
        known.remember_rows(before.knowledge.known, changed | revised)
    knowledge = Knowledge(known, known.tested, load_watch_lists(s))
    is_whole = not left_out and len(known_issues) == len(revisions)
    return KnowledgeSnapshot(generation, knowledge, revisions, known_cells, now, number, is_whole)


def _issues(s: Session, before: KnowledgeSnapshot | None, *, whole: bool) -> tuple[dict[str, str], dict[str, Issue]]:
    """Revision (with the looks at its threads) and issue by id; only what has another revision than before is read."""
    listed = s.execute(sa.select(issues.c.id, issues.c.revision, issues.c.looks).where(issues.c.is_present)).all()
    revisions = {row.id: f"{row.revision} {row.looks}" for row in sorted(listed)}
    unchanged = {
        id_: before.knowledge.known.issues[id_]
        for id_, revision in revisions.items()
        if before is not None and before.revisions.get(id_) == revision and id_ in before.knowledge.known.issues
    }
    query = sa.select(issues.c.id, issues.c.doc, issues.c.looks).where(issues.c.is_present)
    wanted = sorted(revisions.keys() - unchanged.keys())
    read = s.execute(query.where(issues.c.id.in_(wanted)) if unchanged else query) if wanted else ()
    rows = ((row[0], row[1:]) for row in read)
    parsed = unreadable.readable("issues", rows, lambda words: documents.parse_issue(*words), whole=whole)
    readable = unchanged | {issue.id: issue for issue in parsed}
    return revisions, {id_: readable[id_] for id_ in revisions if id_ in readable}


def _cells(
    s: Session, before: KnowledgeSnapshot | None
) -> tuple[LazyCells[str], Mapping[CellPlace, Verdict], frozenset[CellPlace], set[str]]:
    """The cells, their verdicts, which of them are flaky, and the issues that have a new one. A cell that is gone
    leaves no trace but in the number of them; then all are read anew.
    """
    texts, verdicts = _texts(s, since=before.generation if before else None)
    flaky, changed = documents.flaky_places(texts), {issue for issue, _, _ in texts}
    if before is None:
        return LazyCells(documents.read_cell, texts), verdicts, flaky, changed
    current = before.cells.with_changes(texts)
    number = s.execute(sa.select(sa.func.count()).select_from(cells)).scalar_one()
    if len(current) != number:
        return _cells(s, None)
    known = before.knowledge.known
    return (
        current,
        {**(known.verdicts or {}), **verdicts},
        ((known.flaky or frozenset()) - texts.keys()) | flaky,
        changed,
    )


def _texts(s: Session, *, since: int | None) -> tuple[dict[CellPlace, str], dict[CellPlace, Verdict]]:
    query = sa.select(cells.c.issue, cells.c.build, cells.c.hardware, cells.c.doc, cells.c.verdict)
    if since is not None:
        query = query.where(cells.c.changed > since)
    # A name stands in thousands of rows, and each row of the driver brings a copy of its own.
    texts, verdicts = {}, {}
    for issue, build, hardware, doc, verdict in s.execute(query).all():
        place = (intern(issue), intern(build), intern(hardware))
        texts[place], verdicts[place] = doc, _VERDICTS.get(verdict, Verdict.INCONCLUSIVE)  # a later release's
    return texts, verdicts


_VERDICTS = {verdict.value: verdict for verdict in Verdict}


def load_known(s: Session, now: datetime) -> Known:
    """Everything that is known now, less what cannot be read."""
    return load_knowledge(s, now, whole=False).knowledge.known


def load_known_at(s: Session, at: datetime, **wanted: Collection[str] | None) -> Known:
    """The knowledge as of a past moment, of the issues, builds or classes that are `wanted`: only what was measured.

    Nothing is inferred of the past, because the evidence that rules rest on is not at hand. Raises BadRequest where too
    many attempts would have to be judged anew.
    """
    cells_then: dict[CellPlace, Cell] = {cell.key: cell for cell in load_cells_at(s, at, **wanted)}
    return Known(
        issues={issue.id: issue for issue in load_issues(s)},
        builds={build.id: build for build in load_builds(s)},
        cells=cells_then,
        hardware=whole_classes(hardware for _, _, hardware in cells_then),
        as_of=at,
        infers=False,
    )


# The lists of GPU architectures that processes read in their wheels.


def count_environments(s: Session) -> int:
    """The number of environments in which an attempt ran: while it stays, so do the lists."""
    query = sa.select(sa.func.count(sa.distinct(attempts.c.lock_digest)))
    return int(s.execute(query).scalar_one())


def load_wheel_code(s: Session) -> dict[str, WheelCode]:
    """The code in wheels by torch's version with its variant, from the environments of attempts. Two lists of one
    version that differ are not those of one wheel: none of them counts.
    """
    first = sa.select(attempts.c.lock_digest, sa.func.min(attempts.c.finished_at).label("at"))
    dated = first.group_by(attempts.c.lock_digest).subquery()
    query = sa.select(environments.c.imported, dated.c.lock_digest, dated.c.at).join(
        dated, dated.c.lock_digest == environments.c.lock_digest
    )
    read = (
        WheelCode(imported.get("torch", ""), tuple(imported["arch"].split()), at, lock)
        for imported, lock, at in s.execute(query)
        if imported.get("arch")
    )
    codes = grouped(read, lambda code: code.torch)
    return {
        torch: min(lists, key=lambda code: (code.read_at, code.lock))
        for torch, lists in sorted(codes.items())
        if len({code.architectures for code in lists}) == 1
    }


# What workarounds were measured to cost.


def load_costs(s: Session, wanted: Collection[str]) -> dict[str, dict[str, TimedCost]]:
    """The newest cost of each workaround, by issue and workaround, as long as neither side of it was edited since."""
    a = attempts.c
    of_costs = (a.issue.in_(sorted(wanted)), a.arm > COSTS, a.arm < f"{COSTS}~")
    counted = (sa.text("counts_as <> 'env_error'"), a.counts_as == Outcome.PASS.value)  # the first is the index's own
    query = sa.select(attempts, machines.c.doc).join(machines, machines.c.digest == a.machine, isouter=True)
    rows = s.execute(query.where(*of_costs, *counted).order_by(a.finished_at, a.id)).mappings()
    read = unreadable.readable("attempts", ((row["id"], row) for row in rows), _cost)
    costs = gathered((issue, (cost.workaround, cost)) for issue, cost in read if cost)
    return {issue: dict(by_workaround) for issue, by_workaround in costs.items()}


def _cost(row: sa.RowMapping) -> tuple[str, TimedCost | None]:
    machine = codec.MACHINE.validate_json(row["doc"]) if row["doc"] else None
    return row["issue"], cost_of(attempt_codec.parse_attempt(row), machine)
