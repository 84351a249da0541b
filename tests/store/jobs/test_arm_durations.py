"""How long arms take, by the newest attempt of each that was started."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa

from knowngood.domain.access import Actor
from knowngood.domain.issue import BASELINE, CONTROL
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.share import bundle as bundles_format
from knowngood.share.store import take_in_bundle
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import NEWEST, load_durations
from tests.make import NOON, make_attempt, make_build, make_issue
from tests.store.given import given_catalogue

ISSUES = [make_issue("toy-1"), make_issue("toy-10"), make_issue("toy-2")]
Times = dict[tuple[str, str, str], float]


def given(engine: Engine, folder: Path, made: Sequence[Attempt]) -> None:
    given_catalogue(engine, ISSUES, [make_build()])
    path = folder / "bundle.gz"
    with path.open("wb") as out:
        bundles_format.write_bundle(out, bundles_format.BundleHeader(NOON, "ada"), made)
    take_in_bundle(engine, path, NOON + timedelta(days=9), by=Actor("ada"), vouched=True)


def attempts_of_all(seed: int) -> list[Attempt]:
    """With a time of its own for each, so that one is the newest."""
    luck = Random(seed)  # noqa: S311 - not for secrets
    hours = luck.sample(range(200), 90)
    return [
        make_attempt(
            luck.choice([Outcome.PASS, Outcome.MATCH, Outcome.ENV_ERROR]),
            issue=issue,
            arm=arm,
            ordinal=number,
            started_at=NOON + timedelta(hours=hour),
            finished_at=NOON + timedelta(hours=hour, seconds=luck.randrange(1, 600)),
        )
        for hour, (issue, arm, number) in zip(
            hours,
            ((issue, arm, n) for issue in ISSUES for arm in (CONTROL, BASELINE) for n in range(1, 16)),
            strict=True,
        )
    ]


def durations(engine: Engine, before: datetime | None = None) -> Times:
    with reading(engine) as s:
        return load_durations(s, before)


@pytest.mark.parametrize("hours", [None, 0, 60, 150])
def test_an_arm_takes_what_its_newest_attempt_took_that_was_started(
    engine: Engine, tmp_path: Path, hours: int | None
) -> None:
    made = attempts_of_all(hours or 0)
    given(engine, tmp_path, made)
    before = None if hours is None else NOON + timedelta(hours=hours)
    expected: Times = {}
    for one in sorted(made, key=lambda one: one.finished_at):
        if one.record.trouble is None and (before is None or one.finished_at < before):
            expected[one.issue, one.arm, one.variant] = (one.finished_at - one.started_at).total_seconds()
    assert durations(engine, before) == expected
    assert bool(expected) == (hours != 0)


def test_nothing_is_told_of_a_store_without_attempts(engine: Engine) -> None:
    assert durations(engine) == {}


def test_no_attempts_are_read_but_the_newest(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL plans by what a table holds")
    query = NEWEST.element
    assert isinstance(query, sa.TextClause)
    with reading(engine) as s:
        plan = s.execute(sa.text(f"EXPLAIN QUERY PLAN {query.text}"), {"before": NOON.isoformat()}).all()
    steps = [str(step[-1]) for step in plan if " attempts " in step[-1]]
    assert len(steps) == 3
    assert all("ix_attempts_newest" in step or "(id=?)" in step for step in steps)
    assert any("(issue,arm,variant,finished_at)<(?,?,?,?)" in step for step in steps)
