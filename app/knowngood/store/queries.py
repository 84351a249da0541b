"""Every question that pages, the command line and the planner ask. Frozen values out; nothing is written here."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter, eq
from typing import Any, cast

import sqlalchemy as sa

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import UnknownIssue
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import whole_classes
from knowngood.domain.issue import Issue
from knowngood.domain.measuring.job import LOCAL, Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.planning import ArmKey, KnownAttempts
from knowngood.domain.verdicts.outcome import Outcome, Trouble
from knowngood.domain.verdicts.verdict import INFRASTRUCTURE, Cell, CellPlace, Difference
from knowngood.domain.verdicts.voids import Void
from knowngood.serialization import codec
from knowngood.store import unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence import attempt_codec, documents
from knowngood.store.evidence.voids import load_named_voids
from knowngood.store.records import (
    ArmState,
    AttemptDetail,
    AttemptRow,
    EventRow,
    JobRow,
    JobState,
    Lease,
    RunRow,
    RunState,
    UnknownAttempt,
    UnknownRun,
)
from knowngood.store.statements import among, is_of, place_of
from knowngood.store.tables import (
    UtcDateTime,
    arms,
    attempts,
    builds,
    cells,
    environments,
    events,
    issues,
    jobs,
    leases,
    locks,
    logs,
    machines,
    meta,
    runs,
    tokens,
)

__all__ = [
    "ArmState",
    "AttemptDetail",
    "AttemptRow",
    "EventRow",
    "JobRow",
    "JobState",
    "Lease",
    "RunRow",
    "RunState",
    "UnknownAttempt",
    "UnknownRun",
    "load_active_run",
    "load_attempt",
    "load_attempts",
    "load_builds",
    "load_cells",
    "load_durations",
    "load_events",
    "load_generation",
    "load_hardware",
    "load_issue",
    "load_issues",
    "load_known_attempts",
    "load_last_event",
    "load_lease",
    "load_measured_builds",
    "load_recent_attempts",
    "load_run",
    "load_runs",
    "refuse_unreadable_build",
]


def load_generation(s: Session) -> int:
    """A number that grows with every write that pages can see."""
    query = sa.select(meta.c.value).where(meta.c.name == "generation")
    return cast("int", s.execute(query).scalar_one())


def load_issues(s: Session) -> tuple[Issue, ...]:
    """The catalogue's issues by id, less those that cannot be read."""
    rows = s.execute(sa.select(issues.c.id, issues.c.doc, issues.c.looks).where(issues.c.is_present))
    readable = unreadable.readable(
        "issues", ((id_, words) for id_, *words in rows), lambda words: documents.parse_issue(*words)
    )
    return tuple(sorted(readable, key=lambda issue: issue.id))


def load_issue(s: Session, id_: str) -> Issue:
    """Load an issue. Raises UnknownIssue, also for one that has left the catalogue, and Unreadable."""
    query = sa.select(issues.c.doc, issues.c.looks).where(issues.c.id == id_, issues.c.is_present)
    words = s.execute(query).one_or_none()
    if words is None:
        raise UnknownIssue(f'no issue "{id_}" in the catalogue')
    return unreadable.read("issues", id_, lambda words: documents.parse_issue(*words), words)


def load_builds(s: Session, *, whole: bool = False) -> tuple[Build, ...]:
    """The catalogue's builds in release order, mismatched Triton and other Pythons after the plain build; less those
    that cannot be read: with `whole` Unreadable is raised.
    """
    return load_readable_builds(s, whole=whole)[0]


def load_readable_builds(s: Session, *, whole: bool) -> tuple[tuple[Build, ...], int]:
    """The builds that can be read, and how many cannot."""
    rows = s.execute(sa.select(builds.c.id, builds.c.doc).where(builds.c.is_present)).all()
    readable = list(unreadable.readable("builds", map(tuple, rows), documents.parse_build, whole=whole))
    return tuple(sorted(readable, key=lambda build: build.build_id)), len(rows) - len(readable)


def refuse_unreadable_build(s: Session, id_: str) -> None:
    """Raise Unreadable where the catalogue has this build and it cannot be read."""
    rows = s.execute(sa.select(builds.c.id, builds.c.doc).where(builds.c.id == id_, builds.c.is_present))
    list(unreadable.readable("builds", rows, documents.parse_build, whole=True))


def load_cells(
    s: Session,
    *,
    issues: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
) -> tuple[Cell, ...]:
    """Cells with evidence, by issue, build and class; None means all. One query over one table, however long the
    history: verdicts are derived when evidence comes in.
    """
    wanted = among(*zip(place_of(cells), (issues, builds, hardware), strict=True))
    query = sa.select(*place_of(cells), cells.c.doc).where(*wanted)
    rows: Sequence[Any] = s.execute(query).all()  # row by row takes twice as long
    loaded = [documents.read_cell((issue, build, of), doc) for issue, build, of, doc in rows]
    # Sorted here, because PostgreSQL sorts text by its locale and SQLite by its bytes.
    return tuple(sorted(loaded, key=attrgetter("issue", "build", "hardware")))


def load_hardware(s: Session) -> tuple[str, ...]:
    """The hardware classes that any cell was measured on, those of vector ISAs under the class that they divide."""
    return whole_classes(s.execute(sa.select(cells.c.hardware).distinct()).scalars())


def load_measured_builds(s: Session, hardware: str) -> frozenset[str]:
    """Ids of the builds with any evidence on one hardware class."""
    query = sa.select(cells.c.build).where(cells.c.hardware == hardware).distinct()
    return frozenset(s.execute(query).scalars())


def load_attempts(
    s: Session, issue: str, build: str, hardware: str, newest: int | None = None
) -> tuple[AttemptRow, ...]:
    """A cell's evidence (or the newest so many), newest first, superseded and voided attempts too. Empty for what the
    catalogue does not know.
    """
    known = _issue_and_build(s, issue, build)
    if known is None:
        return ()
    bindings = attempt_codec.current_bindings(*known)
    stored = attempt_codec.load_evidence(s, *is_of((issue, build, hardware), attempts), newest=newest)
    voids = load_named_voids(s, {evidence.void for evidence in stored})
    return tuple(_attempt_row(evidence, *known, bindings, voids) for evidence in stored)


def _attempt_row(
    evidence: attempt_codec.StoredAttempt,
    issue: Issue,
    build: Build,
    bindings: Mapping[tuple[str, str], str],
    voids: Mapping[int | None, Void],
) -> AttemptRow:
    return AttemptRow(
        evidence.attempt,
        attempt_codec.judgement_of(evidence.attempt, issue, build, evidence.log, evidence.searched),
        evidence.void is None and attempt_codec.counts(evidence.attempt, bindings),
        voids.get(evidence.void),
    )


def load_recent_attempts(  # noqa: PLR0913 - each filter by its name
    s: Session,
    issue: str,
    limit: int,
    *,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    counts_as: Collection[Outcome] | None = None,
    after: tuple[datetime, str] | None = None,
) -> tuple[AttemptRow, ...]:
    """An issue's evidence, newest first, of builds in the catalogue; superseded attempts too unless `counts_as` is
    given: then those that count with one of these outcomes. `after` is the (finished_at, id) of one to go on from.
    Raises UnknownIssue.
    """
    known_issue = load_issue(s, issue)
    known = {build.id: build for build in load_builds(s)}
    wanted = known.keys() if builds is None else known.keys() & set(builds)
    a = attempts.c
    of_these = among((a.build, wanted), (a.hardware, hardware), (a.counts_as, counts_as))
    query = sa.select(a.id).where(a.issue == issue, *of_these)
    if after is not None:
        query = query.where(_older(attempts.c.finished_at, attempts.c.id, after))
    newest = query.order_by(attempts.c.finished_at.desc(), attempts.c.id).limit(limit)
    stored = attempt_codec.load_evidence(s, attempts.c.id.in_(newest))
    bindings = {
        id_: attempt_codec.current_bindings(known_issue, known[id_]) for id_ in {each.attempt.build for each in stored}
    }
    voids = load_named_voids(s, {each.void for each in stored})
    return tuple(
        _attempt_row(each, known_issue, known[each.attempt.build], bindings[each.attempt.build], voids)
        for each in stored
    )


def load_attempt(s: Session, id_: str) -> AttemptDetail:
    """Load an attempt with all that is stored of it. Raises UnknownAttempt and Unreadable."""
    row = s.execute(
        sa.select(
            attempts,
            logs.c.zlib,
            locks.c.zlib.label("lock"),
            environments.c.packages,
            machines.c.doc,
            tokens.c.name.label("token_name"),
            cells.c.doc.label("cell"),
        )
        .join(logs, logs.c.digest == attempts.c.log_digest, isouter=True)
        .join(locks, locks.c.digest == attempts.c.lock_digest, isouter=True)
        .join(environments, environments.c.lock_digest == attempts.c.lock_digest, isouter=True)
        .join(machines, machines.c.digest == attempts.c.machine, isouter=True)
        .join(tokens, tokens.c.id == attempts.c.token, isouter=True)
        .join(cells, sa.and_(*map(eq, place_of(cells), place_of(attempts))), isouter=True)
        .where(attempts.c.id == id_)
    ).mappings()
    values = row.one_or_none()
    known = _issue_and_build(s, values["issue"], values["build"]) if values else None
    if values is None or known is None:
        raise UnknownAttempt(f'no attempt "{id_}" of an issue and build in the catalogue')
    attempt = unreadable.read("attempts", id_, attempt_codec.parse_attempt, values)
    log = attempt_codec.unpack(values["zlib"])
    is_current = attempt_codec.counts(attempt, attempt_codec.current_bindings(*known))
    return AttemptDetail(
        attempt=attempt,
        judgement=attempt_codec.judgement_of(attempt, *known, log, attempt_codec.parse_searched(values["searched"])),
        counted=values["void"] is None and is_current,
        void=load_named_voids(s, {values["void"]}).get(values["void"]),
        log=log,
        lock=attempt_codec.unpack(values["lock"]),
        packages=values["packages"] or {},
        machine=_machine(values["machine"], values["doc"]),
        received_at=values["received_at"],
        token=values["token"],
        token_name=values["token_name"] or "",
        difference=_difference(attempt, values["cell"]),
    )


def _difference(attempt: Attempt, cell: str | None) -> Difference | None:
    """The cell's word on it: what an attempt is held against are others."""
    place = (attempt.issue, attempt.build, attempt.hardware)
    differences = documents.read_cell(place, cell).differences if cell else ()
    return next((difference for difference in differences if difference.attempt == attempt.id), None)


def _issue_and_build(s: Session, issue: str, build: str) -> tuple[Issue, Build] | None:
    docs = s.execute(
        sa.select(issues.c.doc, issues.c.looks, builds.c.doc.label("build"))
        .join_from(issues, builds, builds.c.id == build)
        .where(issues.c.id == issue)
    ).one_or_none()
    if docs is None:
        return None
    return (
        unreadable.read("issues", issue, lambda words: documents.parse_issue(*words[:2]), docs),
        unreadable.read("builds", build, documents.parse_build, docs.build),
    )


def _machine(digest: str, doc: str | None) -> Machine | None:
    """The machine of a digest; None where it was pruned, or cannot be read."""
    return next(unreadable.readable("machines", [(digest, doc)] if doc else [], codec.MACHINE.validate_json), None)


def load_runs(s: Session, limit: int, *, after: tuple[datetime, str] | None = None) -> tuple[RunRow, ...]:
    """The newest runs first; with `after`, those that stand after the run of this time and id."""
    newest = sa.select(runs).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)
    if after is not None:
        newest = newest.where(_older(runs.c.created_at, runs.c.id, after))
    return _with_jobs(s, s.execute(newest).mappings().all())


def _older(time: sa.Column[datetime], id_: sa.Column[str], after: tuple[datetime, str]) -> sa.ColumnElement[bool]:
    """Rows behind `after` where the newest come first, those of one moment by id."""
    return sa.or_(time < after[0], sa.and_(time == after[0], id_ > after[1]))


def load_active_run(s: Session) -> RunRow | None:
    """The newest run that has not ended. Its arms are counted, which takes as long as it is large; where there is none,
    nothing is.
    """
    newest = sa.select(runs).where(runs.c.finished_at.is_(None)).order_by(runs.c.created_at.desc(), runs.c.id).limit(1)
    run_rows = s.execute(newest).mappings().all()
    return _with_jobs(s, run_rows)[0] if run_rows else None


def load_run(s: Session, id_: str) -> RunRow:
    """Load a run with its jobs. Raises UnknownRun."""
    run_rows = s.execute(sa.select(runs).where(runs.c.id == id_)).mappings().all()
    if not run_rows:
        raise UnknownRun(f'no run "{id_}" in this store')
    return _with_jobs(s, run_rows)[0]


def _with_jobs(s: Session, run_rows: Sequence[Any]) -> tuple[RunRow, ...]:
    done = sa.func.count(sa.case((arms.c.state == ArmState.DONE, 1)))
    query = (
        sa.select(jobs, sa.func.count(arms.c.attempt).label("arms_total"), done.label("arms_done"))
        .join(arms, arms.c.job == jobs.c.id)
        .where(jobs.c.run.in_([run["id"] for run in run_rows]))
        .group_by(jobs.c.id)
        .order_by(jobs.c.position)
    )
    by_run = grouped(s.execute(query).mappings(), lambda row: row["run"])
    return tuple(_run_row(run, tuple(map(_job_row, by_run.get(run["id"], ())))) for run in run_rows)


def _job_row(row: Any) -> JobRow:  # noqa: ANN401 - a row of the driver
    return JobRow(
        id=row["id"],
        build=row["build"],
        hardware=row["hardware"],
        state=JobState(row["state"]),
        try_no=row["try_no"],
        arms_total=row["arms_total"],
        arms_done=row["arms_done"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        problem=row["problem"],
    )


def _run_row(run: Any, of_run: tuple[JobRow, ...]) -> RunRow:  # noqa: ANN401 - a row of the driver
    return RunRow(
        id=run["id"],
        state=_run_state(run["finished_at"], run["cancelled_at"], of_run),
        created_at=run["created_at"],
        finished_at=run["finished_at"],
        request=run["request"],
        arms_total=sum(job.arms_total for job in of_run),
        arms_done=sum(job.arms_done for job in of_run),
        jobs=of_run,
    )


def _run_state(finished_at: datetime | None, cancelled_at: datetime | None, of_run: Sequence[JobRow]) -> RunState:
    if finished_at is not None:
        return RunState.CANCELLED if cancelled_at else RunState.DONE
    if cancelled_at is not None:
        return RunState.CANCELLING
    untouched = all(job.state is JobState.QUEUED and job.try_no == 0 for job in of_run)
    return RunState.QUEUED if untouched else RunState.RUNNING


def load_troubles(s: Session, runs: Collection[str]) -> tuple[tuple[str, Trouble | None], ...]:
    """The build of each attempt of these runs, the oldest first, and what of its host prevented an answer (None:
    nothing). What did not apply is left out.
    """
    a = attempts.c
    record = sa.case((a.counts_as.in_([*INFRASTRUCTURE]), a.record), else_="")
    query = sa.select(a.build, record).select_from(jobs).join(arms, arms.c.job == jobs.c.id)
    query = query.join(attempts, a.id == arms.c.attempt).order_by(a.finished_at, a.id)
    rows = s.execute(query.where(jobs.c.run.in_(runs), a.counts_as != Outcome.NOT_APPLICABLE))
    return tuple((build, codec.RECORD.validate_json(doc).trouble if doc else None) for build, doc in rows)


def load_events(
    s: Session, after: int, run: str | None, limit: int, *, kinds: Collection[str] | None = None
) -> tuple[EventRow, ...]:
    """The events after event `after`, oldest first. Safe to poll: an id never appears below one seen before."""
    wanted = among((events.c.run, None if run is None else [run]), (events.c.kind, kinds))
    query = sa.select(events).where(events.c.id > after, *wanted).order_by(events.c.id).limit(limit)
    return tuple(EventRow(row.id, row.at, row.kind, row.run, row.data) for row in s.execute(query))


def load_last_event(s: Session) -> int:
    """The id to follow from; 0 before anything happened."""
    return s.execute(sa.select(sa.func.max(events.c.id))).scalar_one() or 0


def load_lease(s: Session, name: str) -> Lease | None:
    row = s.execute(sa.select(leases.c.holder, leases.c.until).where(leases.c.name == name)).one_or_none()
    return Lease(row.holder, row.until) if row else None


def load_known_attempts(s: Session, *, only_local: bool = False) -> KnownAttempts:
    """The planner's knowledge: counted outcomes, the highest ordinal given out per key (planned ones too), cells.

    With `only_local`, outcomes that came in a bundle are not known: they were measured on another machine.
    """
    outcomes: dict[ArmKey, list[Outcome]] = defaultdict(list)
    ordinals: dict[ArmKey, int] = defaultdict(int)
    for *key, counts_as, origin, ordinal, n in s.execute(_attempted()):
        ordinals[ArmKey(*key)] = max(ordinals[ArmKey(*key)], ordinal)
        if counts_as is not None and (origin == LOCAL or not only_local):
            outcomes[ArmKey(*key)] += [Outcome(counts_as)] * n
    for *key, ordinal in s.execute(_planned()):
        ordinals[ArmKey(*key)] = max(ordinals[ArmKey(*key)], ordinal)
    known_cells: dict[CellPlace, Cell] = {cell.key: cell for cell in load_cells(s)}
    return KnownAttempts(outcomes=dict(outcomes), ordinals=dict(ordinals), cells=known_cells)


def _attempted() -> sa.Select[Any]:
    a = attempts.c
    grouped = (a.issue, a.build, a.hardware, a.arm, a.variant, a.binding, a.counts_as, a.origin)
    return sa.select(*grouped, sa.func.max(a.ordinal), sa.func.count()).group_by(*grouped)


def _planned() -> sa.Select[Any]:
    grouped = (arms.c.issue, jobs.c.build, jobs.c.hardware, arms.c.arm, arms.c.variant, arms.c.binding)
    return sa.select(*grouped, sa.func.max(arms.c.ordinal)).join(jobs, jobs.c.id == arms.c.job).group_by(*grouped)


def load_durations(s: Session, before: datetime | None = None) -> dict[tuple[str, str, str], float]:
    """Seconds that the newest attempt of each (issue, arm, variant) took, on whatever build. One that was never started
    took none: an environment that cannot be made says nothing of how long the arm takes.
    """
    rows = s.execute(NEWEST, {"before": before or datetime.max.replace(tzinfo=UTC)})
    return {(issue, arm, variant): (end - begin).total_seconds() for issue, arm, variant, begin, end in rows}


# From one (issue, arm, variant) to the next before it along `ix_attempts_newest`, where grouping reads every attempt.
# SQLite begins at what is equal too, so that a time stands behind the three; and with columns on the right (without
# || '') it uses the index for the first alone.
NEWEST = (
    sa.text("""
    WITH RECURSIVE newest (id) AS (
        SELECT id FROM (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) AS first
        UNION ALL
        SELECT (
            SELECT id FROM attempts WHERE counts_as <> 'env_error' AND finished_at < :before
            AND (issue, arm, variant, finished_at)
              < (this.issue || '', this.arm || '', this.variant || '', '0001-01-01')
            ORDER BY issue DESC, arm DESC, variant DESC, finished_at DESC LIMIT 1
        ) FROM newest JOIN attempts AS this ON this.id = newest.id
    )
    SELECT issue, arm, variant, started_at, finished_at FROM newest JOIN attempts USING (id)
""")
    .bindparams(sa.bindparam("before", type_=UtcDateTime))
    .columns(*(attempts.c[name] for name in ("issue", "arm", "variant", "started_at", "finished_at")))
)
