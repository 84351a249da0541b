"""Incoming attempts are judged as they are written: the store then says what it would say had all of it been read
back.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from knowngood.domain.access import Actor
from knowngood.domain.errors import BadBundle
from knowngood.domain.issue import Issue, Signature, SignatureKind, digest
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import Outcome, classify, heeds_log
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.verdicts.voids import VoidSpan
from knowngood.share import bundle as bundles_format
from knowngood.share import store as bundles_store
from knowngood.share.store import take_in_bundle
from knowngood.store import counters, queries, statements
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence import attempt_codec, incoming_attempts
from knowngood.store.evidence.voids import void_results
from knowngood.store.jobs.event_recorder import record_event
from knowngood.store.jobs.job_queue import claim_job
from knowngood.store.maintenance import reclassify
from knowngood.store.records import ImportReport
from knowngood.store.tables import attempts, cells, logs
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, SIGNATURE_TEXT, make_attempt, make_build, make_issue, make_record
from tests.store.given import HOLDER, claim, ended, finished, given_catalogue, given_run, started

ISSUES = (make_issue(), make_issue("toy-2", workarounds=()))
STRANGE = make_issue("toy-9")  # the catalogue does not have it
BUILDS = (make_build(), make_build("2.7.1+cu126"))
MACHINES = ("a" * 32, "b" * 32)
BY = Actor("ada")
LATER = NOON + timedelta(hours=1)
SAID = f"g++: {SIGNATURE_TEXT}\n"  # in the log alone: whoever judges without it sees another failure


def failed(**changes: Any) -> Attempt:
    """A baseline whose log alone tells that it is the issue."""
    return make_attempt(Outcome.OTHER_FAILURE, log_digest=digest(SAID), **changes)


def write_bundle(path: Path, items: Sequence[bundles_format.Item]) -> Path:
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, "gpu-box"), items)
    return path


def take_in(engine: Engine, path: Path) -> ImportReport:
    return take_in_bundle(engine, path, LATER, by=Actor("ada"))


def stored(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """All that is derived, but for the generation that a cell was written in."""
    marks = sa.select(attempts.c.id, attempts.c.counts_as).order_by(attempts.c.id)
    docs = sa.select(cells.c.issue, cells.c.build, cells.c.hardware, cells.c.verdict, cells.c.measured_at, cells.c.doc)
    with reading(engine) as s:
        return {
            "marks": [tuple(row) for row in s.execute(marks)],
            "cells": [tuple(row) for row in s.execute(docs.order_by(*cells.primary_key.columns))],
        }


def counted(engine: Engine) -> dict[tuple[str, ...], int]:
    with reading(engine) as s:
        return counters.load_counters(s).get(counters.ATTEMPTS, {})


def is_as_recomputed(engine: Engine) -> None:
    """Deriving all of it from all attempts changes neither a cell nor a mark, and counts nothing once more."""
    before, numbers = stored(engine), counted(engine)
    with unit_of_work(engine) as s:
        s.execute(sa.update(cells).values(doc="{}"))  # else a cell that is right by chance would not be written
        s.execute(sa.delete(cells))
        reclassify(s, LATER)
    assert stored(engine) == before
    assert counted(engine) == numbers


def test_a_log_that_comes_after_its_attempt_is_judged_with_it(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    items: list[bundles_format.Item] = [
        make_attempt(arm="control"),
        failed(),
        bundles_format.LogText(digest(SAID), SAID),
    ]
    report = take_in(engine, write_bundle(tmp_path / "late.jsonl.gz", items))
    assert [change.verdicts for change in report.changed] == [(None, Verdict.AFFECTED)]
    is_as_recomputed(engine)


def test_a_time_in_another_zone_is_told_as_the_store_keeps_it(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    there = timezone(timedelta(hours=2))
    made = [
        make_attempt(arm=arm, started_at=NOON.astimezone(there), finished_at=NOON.astimezone(there))
        for arm in ("control", "baseline")
    ]
    take_in(engine, write_bundle(tmp_path / "there.jsonl.gz", made))
    is_as_recomputed(engine)


def test_a_log_that_came_in_an_earlier_bundle_is_judged_with(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    take_in(engine, write_bundle(tmp_path / "log.jsonl.gz", [bundles_format.LogText(digest(SAID), SAID)]))
    report = take_in(engine, write_bundle(tmp_path / "rest.jsonl.gz", [make_attempt(arm="control"), failed()]))
    assert [change.verdicts for change in report.changed] == [(None, Verdict.AFFECTED)]
    is_as_recomputed(engine)


def test_a_log_that_comes_later_than_its_attempt_changes_what_that_says(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    without = take_in(engine, write_bundle(tmp_path / "bare.jsonl.gz", [make_attempt(arm="control"), failed()]))
    report = take_in(engine, write_bundle(tmp_path / "log.jsonl.gz", [bundles_format.LogText(digest(SAID), SAID)]))
    assert [change.verdicts for change in without.changed] == [(None, Verdict.DIFFERENT_FAILURE)]
    assert [change.verdicts for change in report.changed] == [(Verdict.DIFFERENT_FAILURE, Verdict.AFFECTED)]
    is_as_recomputed(engine)


def test_a_bundle_that_turns_out_bad_after_some_of_it_was_written_leaves_nothing(
    engine: Engine, tmp_path: Path
) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    items: list[bundles_format.Item] = [
        bundles_format.LogText(digest(SAID), SAID),
        make_attempt(arm="control"),
        failed(hardware="abacus"),
    ]
    path = write_bundle(tmp_path / "bad.jsonl.gz", items)
    with pytest.raises(BadBundle, match=r'line 4, attempt: hardware "abacus" is no hardware class'):
        take_in(engine, path)
    with reading(engine) as s:
        assert [s.execute(sa.select(sa.func.count()).select_from(one)).scalar_one() for one in (attempts, logs)] == [
            0
        ] * 2
        assert queries.load_cells(s) == ()


def test_an_attempt_that_stands_twice_in_a_bundle_counts_once(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    items: list[bundles_format.Item] = [
        make_attempt(arm="control"),
        failed(),
        failed(),
        failed(),
        bundles_format.LogText(digest(SAID), SAID),
    ]
    report = take_in(engine, write_bundle(tmp_path / "twice.jsonl.gz", items))
    assert (report.added, report.known) == (2, 2)
    assert counted(engine) == {("match",): 1, ("pass",): 1}
    is_as_recomputed(engine)


def test_two_who_bring_the_same_results_at_once_count_them_once(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    made = [make_attempt(Outcome.MATCH, arm=arm, ordinal=n) for arm in ("control", "baseline") for n in range(1, 30)]
    paths = [write_bundle(tmp_path / f"{n}.jsonl.gz", made[n * 10 : n * 10 + 40]) for n in range(3)]
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda path: take_in(engine, path), paths))
    assert sum(report.added for report in reports) == len(made)
    assert counted(engine) == {("match",): len(made)}
    is_as_recomputed(engine)


def test_what_comes_in_is_not_read_back(engine: Engine, tmp_path: Path, count_statements: CountStatements) -> None:
    """Ten times as much in as many statements, and none of them reads a record."""
    given_catalogue(engine, ISSUES, BUILDS)
    said = []
    for number, machine in enumerate(MACHINES):
        made = [
            make_attempt(arm=arm, ordinal=n, machine=machine, hardware=f"{HARDWARE}_{number}", id=f"{number}-{arm}-{n}")
            for arm in ("control", "baseline")
            for n in range(1, 4 * 10**number)
        ]
        path = write_bundle(tmp_path / f"{number}.jsonl.gz", made)
        with count_statements(engine) as statements:
            take_in(engine, path)
        said.append(statements)
    assert len(said[0]) == len(said[1])
    assert not [one for one in said[1] if one.startswith("SELECT") and "record" in one]
    is_as_recomputed(engine)


def test_a_result_of_ours_takes_the_place_of_what_a_bundle_brought_under_its_number(
    engine: Engine, tmp_path: Path
) -> None:
    run = given_run(engine)
    spec = claim(engine)
    control, baseline, *_ = spec.arms
    brought = make_attempt(Outcome.MATCH, id=baseline.attempt)
    take_in(engine, write_bundle(tmp_path / "brought.jsonl.gz", [brought]))
    with unit_of_work(engine) as s:
        for event in (started(spec), finished(spec, control), finished(spec, baseline, Outcome.PASS)):
            record_event(s, event, LATER)
    with reading(engine) as s:
        (cell,) = queries.load_cells(s)
        told = [event.data["outcome"] for event in queries.load_events(s, 0, run, 100) if event.kind == "arm_finished"]
    assert (cell.verdict, cell.attempts) == (Verdict.NOT_AFFECTED, {"pass": 1})
    assert told == ["pass", "pass"]
    assert counted(engine) == {("match",): 1, ("pass",): 2}
    is_as_recomputed(engine)


RECORDS = [make_record(outcome) for outcome in Outcome]
RECORDS += [replace(record, imported={}) for record in RECORDS]


LOGGED, RAISED = ISSUES[0], replace(ISSUES[0], signature=replace(ISSUES[0].signature, log=False))
UNHEEDED = [(issue, one) for issue in (LOGGED, RAISED) for one in RECORDS if not heeds_log(one, issue.signature)]


@pytest.mark.parametrize(("issue", "record"), UNHEEDED, ids=repr)
def test_where_the_log_is_not_heeded_it_changes_nothing(issue: Issue, record: Any) -> None:
    said = [classify(record, issue, "baseline", BUILDS[0], log) for log in ("", SAID)]
    assert said[0] == said[1]


@pytest.mark.parametrize("outcome", [Outcome.OTHER_FAILURE, Outcome.TIMEOUT, Outcome.CRASH])
def test_a_failure_heeds_its_log_where_the_issue_says_so(outcome: Outcome) -> None:
    record = make_record(outcome)
    assert [heeds_log(record, issue.signature) for issue in (LOGGED, RAISED)] == [True, False]


def test_rows_written_in_bulk_are_those_that_sqlalchemy_writes(engine: Engine) -> None:
    nasty = make_record(Outcome.OTHER_FAILURE, observed={"text": "\x00 \\ \t \n ' \" é 😀 \\N"})
    made = [
        make_attempt(id="plain", labels={"gpu": "H100", "n": 'a "b"\\'}, record=nasty),
        make_attempt(id="other", finished_at=NOON + timedelta(microseconds=7), job="\\N"),
    ]
    rows = [attempt_codec.attempt_row(one, LATER, "tok", 3) | vars(incoming_attempts.CountedAs()) for one in made]
    names = attempts.columns.keys()
    kept = []
    for write in (
        lambda s: s.execute(sa.insert(attempts), rows),
        lambda s: statements.insert(s, attempts, [[row[name] for name in names] for row in rows]),
    ):
        with unit_of_work(engine) as s:
            write(s)
            raw = s.exec_driver_sql("SELECT * FROM attempts ORDER BY id").all()
            kept.append([tuple(row) for row in raw])
            s.execute(sa.delete(attempts))
    assert kept[0] == kept[1]
    assert len(kept[0]) == 2


def test_a_key_that_is_there_already_is_refused_in_bulk_too(engine: Engine) -> None:
    for packed in (b"1", b"2"):
        with nullcontext() if packed == b"1" else pytest.raises(sa.exc.IntegrityError), unit_of_work(engine) as s:
            statements.insert(s, logs, [("0" * 32, packed)])
    with reading(engine) as s:
        assert s.execute(sa.select(logs.c.zlib)).scalars().all() == [b"1"]


@pytest.mark.parametrize("text", ["plain", "it's", '"', "\\", "{,}", "é 😀", ""])
def test_what_is_given_to_a_statement_comes_out_as_it_went_in(engine: Engine, text: str) -> None:
    with reading(engine) as s:
        given = statements.given(s, ["one", "two"], [(text, "2"), ("3", text)])
        assert sorted(tuple(row) for row in s.execute(sa.select(given))) == sorted([(text, "2"), ("3", text)])


# -- whatever comes, in whatever order ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Brought:
    """A bundle of these of all attempts there are, each with its log before it, after it, or without."""

    which: tuple[int, ...]
    with_log: str


@dataclass(frozen=True)
class Measured:
    outcome: Outcome
    log: str


@dataclass(frozen=True)
class Edited:
    """The baseline of the first issue is now of this revision; 1 is how it began."""

    revision: int


@dataclass(frozen=True)
class Voided:
    machine: str


Step = Brought | Measured | Edited | Voided


def edited(revision: int) -> tuple[Any, ...]:
    arms = tuple(replace(arm, code=f"{arm.id}-{revision}") for arm in ISSUES[0].arms)
    return (replace(ISSUES[0], arms=arms), ISSUES[1])


def every() -> list[Attempt]:
    """Of three issues (one is strange) on two builds and two machines, in two states of the repro."""
    kinds = (Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.TIMEOUT, Outcome.ENV_ERROR)
    made = []
    for n, outcome in enumerate(kinds * 12):
        issue = (*edited(1 + n % 2), STRANGE)[n % 3]
        arm = ("control", "baseline", "baseline", "aot_eager")[n % 4] if issue.id != "toy-2" else "baseline"
        at = NOON + timedelta(seconds=n % 7)
        one = make_attempt(
            outcome, issue=issue, build=BUILDS[n % 2], arm=arm, ordinal=1 + n, machine=MACHINES[n // 3 % 2]
        )
        one = replace(one, id=f"{n:032x}", started_at=at, finished_at=at)
        made.append(replace(one, log_digest=digest(SAID)) if n % 5 > 1 else one)
    return made


EVERY = every()
STEPS = st.lists(
    st.one_of(
        st.builds(
            Brought,
            st.lists(st.integers(0, len(EVERY) - 1), min_size=1, max_size=20).map(tuple),
            st.sampled_from(["before", "after", "without"]),
        ),
        st.builds(
            Measured, st.sampled_from([Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE]), st.sampled_from(["", SAID])
        ),
        st.builds(Edited, st.integers(1, 2)),
        st.builds(Voided, st.sampled_from(MACHINES)),
    ),
    min_size=1,
    max_size=6,
)


def live_through(engine: Engine, steps: Sequence[Step], folder: Path) -> None:
    issues = ISSUES
    given_catalogue(engine, issues, BUILDS)
    for number, step in enumerate(steps):
        match step:
            case Brought():
                log = [bundles_format.LogText(digest(SAID), SAID)]
                items: list[bundles_format.Item] = [EVERY[n] for n in step.which]
                items = {"before": log + items, "after": items + log, "without": items}[step.with_log]
                take_in(engine, write_bundle(folder / f"{number}.jsonl.gz", items))
            case Measured():
                measure(engine, issues, step)
            case Edited():
                issues = edited(step.revision)
                given_catalogue(engine, issues, BUILDS)
            case Voided():
                with unit_of_work(engine) as s:
                    void_results(s, VoidSpan(step.machine, "", None, LATER), "said so", by=BY, now=LATER)


def measure(engine: Engine, issues: Sequence[Any], step: Measured) -> None:
    given_run(engine, issues, BUILDS)
    while True:
        with unit_of_work(engine) as s:
            spec = claim_job(s, HOLDER, NOON, 30.0)
            if spec is None:
                return
            record_event(s, started(spec), NOON)
            for arm in spec.arms:
                outcome = step.outcome if arm.arm == "baseline" else Outcome.PASS
                record_event(s, finished(spec, arm, outcome, log=step.log), NOON)
            record_event(s, ended(spec), NOON)


@pytest.mark.timeout(600)
@settings(max_examples=settings().max_examples // 2)  # each is a store of its own
@given(steps=STEPS, step=st.sampled_from([1, 3000, 1 << 20]), held=st.sampled_from([1, 5, 1000]))
@example(steps=[Brought(tuple(range(len(EVERY))), "before")], step=1 << 20, held=1000)
@example(steps=[Brought(tuple(range(len(EVERY))), "after")], step=3000, held=1000)
@example(steps=[Brought((3, 4), "without"), Brought((7, 8, 12), "before")], step=1 << 20, held=1000)
@example(steps=[Brought((3, 4), "without"), Measured(Outcome.OTHER_FAILURE, SAID)], step=1 << 20, held=1000)
@example(steps=[Brought(tuple(range(len(EVERY))), "before")], step=3000, held=5)
def test_however_results_came_in_cells_are_what_all_of_them_say(
    migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Step], step: int, held: int
) -> None:
    with TemporaryDirectory() as folder, monkeypatch.context() as limited:
        limited.setattr(bundles_format, "_HELD_BYTES", step)  # what is larger comes in step by step
        limited.setattr(bundles_store, "_STEP_BYTES", step)
        limited.setattr(bundles_store, "_PAUSE_S", 0)
        limited.setattr(incoming_attempts, "_HELD_AT_ONCE", held)
        path = Path(folder) / "knowngood.db"
        shutil.copy(migrated_sqlite, path)
        engine = connect(f"sqlite:///{path}")
        live_through(engine, steps, Path(folder))
        is_as_recomputed(engine)
        engine.dispose()


SLOW = make_issue("toy-slow", signature=Signature(SignatureKind.MESSAGE, r"(a+)+$b", log=True))


def test_what_was_looked_for_as_it_came_in_is_not_looked_for_by_pages(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, ISSUES, BUILDS)
    take_in(engine, write_bundle(tmp_path / "one.jsonl.gz", [failed(), bundles_format.LogText(digest(SAID), SAID)]))
    with unit_of_work(engine) as s:
        s.execute(sa.delete(logs))  # a page that looked now would find nothing
    with reading(engine) as s:
        found = queries.load_attempt(s, failed().id).judgement
        (row,) = queries.load_attempts(s, ISSUES[0].id, BUILDS[0].id, HARDWARE)
    assert (found.outcome, found.line, row.judgement) == (Outcome.MATCH, SAID.strip(), found)


def test_a_signature_that_cannot_be_found_in_time_leaves_the_cell_without_an_answer(
    own_engine: Engine, tmp_path: Path
) -> None:
    given_catalogue(own_engine, [SLOW], BUILDS)
    text = "a" * 5_000
    made = make_attempt(Outcome.OTHER_FAILURE, issue=SLOW, log_digest=digest(text))
    items: list[bundles_format.Item] = [
        make_attempt(issue=SLOW, arm="control"),
        make_attempt(issue=SLOW, ordinal=2),
        made,
        bundles_format.LogText(digest(text), text),
    ]
    take_in(own_engine, write_bundle(tmp_path / "slow.jsonl.gz", items))
    with reading(own_engine) as s:
        (cell,) = queries.load_cells(s)
        row = next(
            one for one in queries.load_attempts(s, SLOW.id, BUILDS[0].id, HARDWARE) if one.attempt.id == made.id
        )
    assert (cell.verdict, cell.attempts) == (Verdict.INCONCLUSIVE, {"timeout": 1, "pass": 1})
    assert "took too long" in english(cell.reason)
    assert row.judgement.outcome is Outcome.TIMEOUT
    quick = replace(SLOW, signature=Signature(SignatureKind.MESSAGE, "^a{5000}$", log=True))
    given_catalogue(own_engine, [quick], BUILDS)
    with reading(own_engine) as s:
        (cell,) = queries.load_cells(s)
    assert cell.verdict is Verdict.FLAKY
