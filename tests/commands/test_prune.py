"""`knowngood prune`: what it tells, and that a dry run leaves all as it was."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.tables import arms, attempts, events, jobs, logs, runs
from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.make import make_build, make_issue
from tests.store.given import given_catalogue, given_results, given_run

OLD = timedelta(days=60)
COUNTED = (attempts, logs, events, runs)
CHANGED = make_issue(workarounds=())


@pytest.fixture
def store(new_store: NewStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A store with the leavings of an issue's earlier arms and of two runs, sixty days ago."""
    address = new_store()
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", address)
    engine = connect(address)
    for repeat in (1, 3):
        given_run(engine, repeat=repeat)
        given_results(engine, log=f"run {repeat}\n")
    edited = replace(CHANGED, arms=tuple(replace(arm, code=f"{arm.id}-2") for arm in CHANGED.arms))
    given_catalogue(engine, [edited], [make_build()])
    with unit_of_work(engine) as s:  # whatever the clock says now
        s.execute(sa.update(attempts).values(finished_at=_ago()))
        s.execute(sa.update(events).values(at=_ago()))
        s.execute(sa.update(runs).values(finished_at=_ago()))
    return engine


def _ago() -> datetime:
    return datetime.now(UTC) - OLD


def count(engine: Engine) -> list[int]:
    with reading(engine) as s:
        return [s.execute(sa.select(sa.func.count()).select_from(one)).scalar_one() for one in COUNTED]


def test_a_dry_run_tells_what_the_real_one_does_and_does_nothing(store: Engine, command: Call) -> None:
    before = count(store)
    dry = json.loads(command("prune", "--older-than", "30", "--dry-run", "--json").out)
    assert count(store) == before
    real = json.loads(command("prune", "--older-than", "30", "--json").out)
    assert (dry.pop("dry_run"), real.pop("dry_run")) == (True, False)
    assert dry == real
    assert real["removed"]["attempts"]["rows"] == before[0] - count(store)[0] > 0
    assert real["bytes"] == sum(one["bytes"] for one in real["removed"].values()) > 0
    with reading(store) as s:
        assert s.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one() == 1, "the run that changed a cell"
        assert s.execute(sa.select(sa.func.count()).select_from(arms)).scalar_one() == 3


def test_logs_go_before_attempts(store: Engine, command: Call) -> None:
    told = json.loads(command("prune", "--json").out)["removed"]
    assert (told["attempts"]["rows"], told["logs"]["rows"]) == (0, 1)


def test_it_is_told_to_people_in_rows_and_mebibytes(store: Engine, command: Call) -> None:
    done = command("prune", "--older-than", "30", "--dry-run")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[:8]] == [
        "logs", "attempts", "locks", "machines", "events", "runs", "jobs", "arms",
    ]  # fmt: skip
    assert "MiB would be removed" in done.out
    assert "MiB removed" in command("prune", "--older-than", "30").out


@pytest.mark.parametrize("days", ["-1", "soon"])
def test_a_span_that_is_none_is_refused(store: Engine, command: Call, days: str) -> None:
    assert command("prune", "--older-than", days).code == 2
