"""Voiding all results of a worker: what stops counting, what is told, and that taking it back leaves no trace."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from knowngood.domain.access import Actor, Scope
from knowngood.domain.errors import BadRequest
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.message import english
from knowngood.domain.verdicts.changes import Cause
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.verdicts.voids import Clock, UnknownVoid, VoidSpan
from knowngood.share import bundle as bundles_format
from knowngood.share.store import export_bundle, take_in_bundle
from knowngood.store import queries
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence.changes import load_news
from knowngood.store.evidence.voids import (
    known_worker,
    load_standing_voids,
    load_voids,
    unvoid_results,
    void_results,
)
from knowngood.store.maintenance import prune
from knowngood.store.records import ImportReport
from knowngood.store.tables import attempts, metadata
from knowngood.store.tokens import create_token, revoke_token
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue
from tests.store.given import MACHINE, given_catalogue, given_results, given_run

ISSUE, BUILD = make_issue(), make_build()
BY = Actor("ada")
LATER = NOON + timedelta(hours=1)
GOOD = Machine("Intel Xeon", "avx512", 8, 16 << 30, "Debian 12", "6.1", "2.36", "g++ 12.2.0")
BAD = replace(GOOD, cpu_model="Overheated")
ALWAYS = VoidSpan(BAD.digest, "", None, LATER)


def sent(machine: Machine, baseline: Outcome, ordinal: int = 1, *, at: datetime = NOON) -> list[Attempt]:
    """A control that passed, and a baseline, both on one machine."""
    made = [
        make_attempt(outcome, arm=arm, ordinal=ordinal, machine=machine.digest, started_at=at, finished_at=at)
        for arm, outcome in (("control", Outcome.PASS), ("baseline", baseline))
    ]
    return [replace(one, id=f"{machine.cpu_model[:3]}-{one.arm}-{ordinal}") for one in made]


def write_bundle(path: Path, machines: Sequence[Machine], made: Sequence[Attempt]) -> Path:
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, "lab 7"), [*machines, *made])
    return path


def take_in(engine: Engine, path: Path, *, by: Actor | None = None, now: datetime = LATER) -> ImportReport:
    return take_in_bundle(engine, path, now, by=by or Actor("ada"), vouched=by is not None)


def verdict(engine: Engine) -> tuple[Verdict, int]:
    """Of the one cell there is, with how many of its attempts are voided."""
    with reading(engine) as s:
        (cell,) = queries.load_cells(s)
    return cell.verdict, cell.voided


def everything(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Attempts and cells as stored, but for the generation that a cell was written in."""
    with reading(engine) as s:
        return {
            name: [
                tuple(row)
                for row in s.execute(
                    sa.select(
                        *(column for column in metadata.tables[name].columns if column.name != "changed")
                    ).order_by(*metadata.tables[name].primary_key.columns)
                )
            ]
            for name in ("attempts", "cells")
        }


@pytest.fixture
def mixed(engine: Engine, tmp_path: Path) -> Engine:
    """A cell that a sound machine saw pass and an overheated one saw fail."""
    given_catalogue(engine, [ISSUE], [BUILD])
    made = [*sent(GOOD, Outcome.PASS), *sent(BAD, Outcome.MATCH)]
    take_in(engine, write_bundle(tmp_path / "mixed.jsonl.gz", [GOOD, BAD], made))
    assert verdict(engine) == (Verdict.FLAKY, 0)
    return engine


def test_what_one_machine_sent_stops_counting_and_the_cell_follows_at_once(mixed: Engine) -> None:
    with reading(mixed) as s:
        before = queries.load_generation(s)
    with unit_of_work(mixed) as s:
        report = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER)
    assert (report.attempts, report.counted, report.cells) == (2, 2, 1)
    assert [change.verdicts for change in report.changes] == [(Verdict.FLAKY, Verdict.NOT_AFFECTED)]
    assert verdict(mixed) == (Verdict.NOT_AFFECTED, 2)
    with reading(mixed) as s:
        assert queries.load_generation(s) == before + 1
        rows = queries.load_attempts(s, ISSUE.id, BUILD.id, HARDWARE)
        detail = queries.load_attempt(s, "Ove-baseline-1")
    assert {(row.attempt.machine, row.counted) for row in rows} == {(GOOD.digest, True), (BAD.digest, False)}
    for void in (detail.void, *(row.void for row in rows if not row.counted)):
        assert void is not None
        assert (void.actor, void.reason, void.at) == ("ada", "it overheats", LATER)


def test_it_stands_in_the_audit_log_and_among_the_changes_with_its_cause(mixed: Engine) -> None:
    with unit_of_work(mixed) as s:
        id_ = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER + timedelta(minutes=1)).void.id
    with unit_of_work(mixed) as s:
        unvoid_results(s, id_, "it was the other one", by=Actor("bob"), now=LATER + timedelta(minutes=2))
    with reading(mixed) as s:
        log = [(row.actor, row.action, row.subject, row.data["reason"]) for row in load_audit(s)[:2]]
        news = [(one.cause, one.before, one.after) for one in load_news(s, 10)]
    assert log == [
        ("bob", "results.unvoid", str(id_), "it was the other one"),
        ("ada", "results.void", str(id_), "it overheats"),
    ]
    assert news[-2:] == [
        (Cause.VOID, Verdict.FLAKY, Verdict.NOT_AFFECTED),
        (Cause.UNVOID, Verdict.NOT_AFFECTED, Verdict.FLAKY),
    ]


def test_taking_it_back_leaves_the_state_from_before(mixed: Engine) -> None:
    before = everything(mixed)
    with unit_of_work(mixed) as s:
        id_ = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER).void.id
    assert everything(mixed) != before
    with unit_of_work(mixed) as s:
        report = unvoid_results(s, id_, "a mistake", by=BY, now=LATER)
    assert (report.attempts, report.counted, report.cells) == (2, 2, 1)
    assert everything(mixed) == before


def test_a_rehearsal_tells_the_same_and_changes_nothing(mixed: Engine) -> None:
    before = everything(mixed)
    with unit_of_work(mixed, dry_run=True) as s:
        told = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER)
    assert everything(mixed) == before
    with reading(mixed) as s:
        audited = load_audit(s)
    assert [row.action for row in audited if row.action == "results.void"] == []
    with reading(mixed) as s:
        assert load_voids(s) == ()
    with unit_of_work(mixed) as s:
        done = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER)
    assert (told.attempts, told.counted, told.cells, told.changes) == (
        done.attempts,
        done.counted,
        done.cells,
        done.changes,
    )
    before = everything(mixed)
    with unit_of_work(mixed, dry_run=True) as s:
        back = unvoid_results(s, done.void.id, "perhaps", by=BY, now=LATER)
    assert back.attempts == 2
    assert everything(mixed) == before


@pytest.mark.parametrize("is_other_file", [False, True])
def test_sending_the_same_results_again_does_not_bring_them_back(
    mixed: Engine, tmp_path: Path, is_other_file: bool
) -> None:
    with unit_of_work(mixed) as s:
        void_results(s, ALWAYS, "it overheats", by=BY, now=LATER)
    if is_other_file:
        path = write_bundle(tmp_path / "again.jsonl.gz", [BAD], sent(BAD, Outcome.MATCH))
    else:
        path = tmp_path / "mixed.jsonl.gz"
    report = take_in(mixed, path)
    assert (report.added, report.changed) == (0, ())
    assert verdict(mixed) == (Verdict.NOT_AFFECTED, 2)


def test_what_the_worker_sends_later_of_that_time_is_kept_and_does_not_count_either(
    mixed: Engine, tmp_path: Path
) -> None:
    with unit_of_work(mixed) as s:
        void_results(s, replace(ALWAYS, until=NOON), "it overheats", by=BY, now=LATER)
    made = [*sent(BAD, Outcome.MATCH, 2), *sent(BAD, Outcome.PASS, 3, at=NOON + timedelta(minutes=1))]
    report = take_in(mixed, write_bundle(tmp_path / "late.jsonl.gz", [BAD], made))
    assert (report.added, report.voided) == (4, 2)
    assert verdict(mixed) == (Verdict.NOT_AFFECTED, 4)


def test_what_this_dispatcher_measures_there_does_not_count_either(engine: Engine) -> None:
    given_run(engine)
    given_results(engine)
    with unit_of_work(engine) as s:
        void_results(s, VoidSpan(MACHINE.digest, "", None, LATER), "its memory is broken", by=BY, now=LATER)
    given_run(engine, repeat=1, at=NOON)
    given_results(engine)
    assert verdict(engine) == (Verdict.NOT_RUN, 6)
    with reading(engine) as s:
        (cell,) = queries.load_cells(s)
    assert english(cell.reason) == "6 attempts of a worker whose results were voided"


def test_results_are_known_by_the_token_that_they_came_through(engine: Engine, tmp_path: Path) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    with unit_of_work(engine) as s:
        made = [create_token(s, name=name, scopes=[Scope.SUBMIT], by=BY, now=NOON).token for name in ("one", "two")]
    # Both say that they are the same machine: what a worker says of itself does not tell them apart.
    for token, outcome, ordinal in ((made[0], Outcome.PASS, 1), (made[1], Outcome.MATCH, 2)):
        path = write_bundle(tmp_path / f"{ordinal}.jsonl.gz", [GOOD], sent(GOOD, outcome, ordinal))
        take_in(engine, path, by=token.actor)
    assert verdict(engine)[0] is Verdict.FLAKY
    with unit_of_work(engine) as s:
        _, token_id = known_worker(s, "", "two")
        void_results(s, VoidSpan("", token_id, None, LATER), "stolen", by=BY, now=LATER)
    assert verdict(engine) == (Verdict.NOT_AFFECTED, 2)
    with reading(engine) as s:
        detail = queries.load_attempt(s, "Int-baseline-2")
    assert (detail.token_name, detail.token, detail.received_at) == ("two", made[1].id, LATER)


@pytest.mark.parametrize(
    ("span", "voided"),
    [
        pytest.param(ALWAYS, 4, id="all of it"),
        pytest.param(replace(ALWAYS, since=NOON + timedelta(minutes=1)), 2, id="from a moment on"),
        pytest.param(replace(ALWAYS, until=NOON), 2, id="up to a moment, which is part of it"),
        pytest.param(replace(ALWAYS, since=NOON, until=NOON), 2, id="one moment"),
        pytest.param(replace(ALWAYS, since=LATER, until=LATER), 0, id="a time when nothing was measured"),
        pytest.param(replace(ALWAYS, since=LATER, until=LATER, clock=Clock.RECEIVED), 4, id="as it came in"),
        pytest.param(replace(ALWAYS, until=NOON, clock=Clock.RECEIVED), 0, id="before it came in"),
        pytest.param(replace(ALWAYS, token="f" * 12), 0, id="the machine, but through another token"),
    ],
)
def test_a_span_covers_what_is_in_it(engine: Engine, tmp_path: Path, span: VoidSpan, voided: int) -> None:
    given_catalogue(engine, [ISSUE], [BUILD])
    made = [*sent(BAD, Outcome.MATCH), *sent(BAD, Outcome.MATCH, 2, at=NOON + timedelta(minutes=2))]
    path = write_bundle(tmp_path / "some.jsonl.gz", [BAD, GOOD], [*made, *sent(GOOD, Outcome.PASS)])
    take_in(engine, path)
    with unit_of_work(engine) as s:
        assert void_results(s, span, "it overheats", by=BY, now=LATER).attempts == voided


@pytest.mark.parametrize(
    ("span", "reason", "sentence"),
    [
        (replace(ALWAYS, machine=""), "why", "say whose results"),
        (replace(ALWAYS, since=LATER, until=NOON), "why", "is no time at all"),
        (replace(ALWAYS, until=LATER + timedelta(seconds=1)), "why", "still to come"),
        (ALWAYS, "  ", "say why in one line"),
        (ALWAYS, "two\nlines", "say why in one line"),
        (ALWAYS, "x" * 1001, "at most 1000 characters"),
    ],
)
def test_what_means_nothing_is_refused_and_changes_nothing(
    mixed: Engine, span: VoidSpan, reason: str, sentence: str
) -> None:
    before = everything(mixed)
    with pytest.raises(BadRequest, match=sentence), unit_of_work(mixed) as s:
        void_results(s, span, reason, by=BY, now=LATER)
    assert everything(mixed) == before


def test_what_two_voids_cover_counts_again_when_both_have_ended(mixed: Engine) -> None:
    before = everything(mixed)
    with unit_of_work(mixed) as s:
        first, second = (void_results(s, ALWAYS, why, by=BY, now=LATER).void.id for why in ("hot", "broken"))
    with unit_of_work(mixed) as s:
        report = unvoid_results(s, first, "not hot", by=BY, now=LATER)
    assert (report.attempts, report.counted, report.changes) == (2, 0, ())
    assert verdict(mixed) == (Verdict.NOT_AFFECTED, 2)
    with reading(mixed) as s:
        void = queries.load_attempt(s, "Ove-baseline-1").void
    assert void is not None
    assert (void.id, void.reason) == (second, "broken")
    with unit_of_work(mixed) as s:
        unvoid_results(s, second, "not broken", by=BY, now=LATER)
    assert everything(mixed) == before


def test_a_void_ends_once(mixed: Engine) -> None:
    with unit_of_work(mixed) as s:
        id_ = void_results(s, ALWAYS, "it overheats", by=BY, now=LATER).void.id
    with unit_of_work(mixed) as s:
        unvoid_results(s, id_, "a mistake", by=BY, now=LATER)
    with pytest.raises(UnknownVoid, match="was ended by ada"), unit_of_work(mixed) as s:
        unvoid_results(s, id_, "again", by=BY, now=LATER)
    with pytest.raises(UnknownVoid, match="void 99 is not here"), unit_of_work(mixed) as s:
        unvoid_results(s, 99, "none", by=BY, now=LATER)


def test_a_worker_that_nobody_knows_is_refused_and_a_name_that_two_had_asks_which(mixed: Engine) -> None:
    with unit_of_work(mixed) as s:
        for at in (NOON, LATER):
            create_token(s, name="gpu", scopes=[Scope.SUBMIT], by=BY, now=at)
            revoke_token(s, "gpu", by=BY, now=at)
    with reading(mixed) as s:
        assert known_worker(s, BAD.digest, "") == (BAD.digest, "")
        for asked, sentence in (
            (("0" * 32, ""), "no results of a machine"),
            (("", "nobody"), "no token is or was called"),
            (("", "gpu"), "2 tokens were called"),
        ):
            with pytest.raises(BadRequest, match=sentence):
                known_worker(s, *asked)


def test_what_is_voided_stays_here_when_the_rest_is_exported_and_is_never_pruned(mixed: Engine, tmp_path: Path) -> None:
    with unit_of_work(mixed) as s:
        void_results(s, ALWAYS, "it overheats", by=BY, now=LATER)
    path = tmp_path / "out.jsonl.gz"
    with reading(mixed) as s, path.open("wb") as out:
        export_bundle(s, out, now=LATER, origin="here")
    items = list(bundles_format.read_items(bundles_format.check_bundle(path)))
    assert {item.machine for item in items if isinstance(item, Attempt)} == {GOOD.digest}
    assert BAD not in items
    with unit_of_work(mixed) as s:
        prune(s, LATER + timedelta(days=999), superseded_days=1, history_days=1)
    assert verdict(mixed) == (Verdict.NOT_AFFECTED, 2)


# -- whatever order things happen in -----------------------------------------------------------------------------------

_MACHINES = (GOOD, BAD)
_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("send"),
            st.integers(0, 1),
            st.sampled_from([Outcome.PASS, Outcome.MATCH]),
            st.integers(0, 2),
        ),
        st.tuples(st.just("void"), st.integers(0, 1), st.integers(0, 1), st.integers(1, 2)),
        st.tuples(st.just("end"), st.integers(0, 5), st.just(0), st.just(0)),
        st.tuples(st.just("again"), st.integers(0, 5), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=10,
)


def minute(n: int) -> datetime:
    return NOON + timedelta(minutes=n)


@settings(max_examples=settings().max_examples // 2)  # each is a store of its own
@given(steps=_STEPS)
def test_cells_are_what_the_remaining_attempts_say_in_whatever_order_things_happened(
    migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, Any, Any]]
) -> None:
    """Imports, voids, their ends and second imports in any order: the cells equal those of a store that only ever saw
    what no standing void covers.
    """
    folder = tmp_path_factory.mktemp("voids")
    engine = _fresh(migrated_sqlite, folder / "one.db")
    _do(engine, folder, steps)
    with reading(engine) as s:
        standing = [void.span for void in load_standing_voids(s)]
        stored = s.execute(sa.select(attempts)).mappings().all()
    remaining = {
        row["id"]
        for row in stored
        if not any(span.covers(row["machine"], "", row["finished_at"], row["received_at"]) for span in standing)
    }
    other = _fresh(migrated_sqlite, folder / "other.db")
    kept = [one for one in _sent(steps) if one.id in remaining]
    take_in(other, write_bundle(folder / "kept.jsonl.gz", _MACHINES, kept))
    assert _said(engine) == _said(other)
    assert {row["id"] for row in stored if row["void"] is None} == remaining
    engine.dispose()
    other.dispose()


def _fresh(migrated: Path, path: Path) -> Engine:
    path.write_bytes(migrated.read_bytes())
    engine = connect(f"sqlite:///{path}")
    given_catalogue(engine, [ISSUE], [BUILD])
    return engine


def _sent(steps: Sequence[tuple[str, int, Any, Any]]) -> list[Attempt]:
    sends = [(n, step) for n, step in enumerate(steps) if step[0] == "send"]
    return [
        one for n, (_, which, outcome, at) in sends for one in sent(_MACHINES[which], outcome, n + 1, at=minute(at))
    ]


def _do(engine: Engine, folder: Path, steps: Sequence[tuple[str, int, Any, Any]]) -> None:
    files: list[Path] = []
    voids: list[int] = []
    for n, (what, which, first, second) in enumerate(steps):
        if what == "send":
            made = sent(_MACHINES[which], first, n + 1, at=minute(second))
            files.append(write_bundle(folder / f"{n}.jsonl.gz", _MACHINES, made))
            take_in(engine, files[-1])
        elif what == "again" and files:
            take_in(engine, files[which % len(files)])
        elif what == "void":
            span = VoidSpan(_MACHINES[which].digest, "", minute(min(first, second)), minute(max(first, second)))
            with unit_of_work(engine) as s:
                voids.append(void_results(s, span, "broken", by=BY, now=LATER).void.id)
        elif what == "end" and voids:
            with unit_of_work(engine) as s:
                unvoid_results(s, voids.pop(which % len(voids)), "mended", by=BY, now=LATER)


def _said(engine: Engine) -> list[Any]:
    """Cells that say anything, without how many attempts were voided beside them."""
    with reading(engine) as s:
        cells = queries.load_cells(s)
    told = [replace(cell, voided=0) for cell in cells]
    return [cell for cell in told if cell.verdict is not Verdict.NOT_RUN]
