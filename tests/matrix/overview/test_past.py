"""The matrix as it was known at a past time: what stood there then stands there again."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.measuring.planning import PlanRequest
from knowngood.store.engine import Engine, connect
from knowngood.store.evidence import changes
from tests.fixtures.databases import CountStatements, NewStore
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import answer_at, app_over
from tests.web.given import BAD, BUILDS, GOOD, GPU_CLASS, ISSUES, LONG_AGO, MASK, NOW, OLD, Asked

STEPS = (
    (Asked([OLD], LONG_AGO), LONG_AGO + timedelta(hours=1)),
    (Asked([BAD, GOOD, given.MISMATCHED], NOON), NOON + timedelta(minutes=30)),
    (Asked([BAD], NOON + timedelta(hours=1), wanted=PlanRequest(repeat=2)), NOON + timedelta(minutes=90)),
    (Asked([BAD], NOON + timedelta(hours=2), hardware=GPU_CLASS), NOON + timedelta(minutes=150)),
)


@dataclass
class Told:
    """A server whose clock is set by hand, and what it answered at each time."""

    engine: Engine
    times: list[datetime] = field(default_factory=lambda: [LONG_AGO])
    answers: dict[datetime, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = TestClient(app_over(self.engine, clock=lambda: self.times[-1]))

    def get(self, address: str) -> Any:
        return answer_at(self.client, address)


ADDRESSES = (
    "/api/v1/matrix?hardware=cpu-x86_64",
    f"/api/v1/matrix?hardware=cpu-x86_64&issues={MASK.id}&builds={BAD.id}",
    f"/api/v1/cells/{MASK.id}/{BAD.id}?hardware={HARDWARE}",
    f"/api/v1/cells/{MASK.id}/{OLD.id}?hardware={HARDWARE}",
)


@pytest.fixture(scope="module")
def lived(new_store: NewStore) -> tuple[str, Told]:
    """The address of a store through which the steps went, for copies of it, and what a server said after each."""
    address = new_store()
    engine = connect(address)
    told = Told(engine)
    given.save(engine, ISSUES, BUILDS)
    for asked, then in STEPS:
        given.run(engine, asked)
        told.times.append(then)
        told.answers[then] = {path: told.get(path) for path in ADDRESSES}
    engine.dispose()
    return address, told


@pytest.fixture
def told(new_store: NewStore, lived: tuple[str, Told]) -> Iterator[Told]:
    address, before = lived
    engine = connect(new_store(address))
    yield Told(engine, [*before.times, NOW], before.answers)
    engine.dispose()


def written(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_what_stood_at_a_past_time_stands_there_again(told: Told) -> None:
    for then, answers in told.answers.items():
        for address, answer in answers.items():
            assert told.get(f"{address}&at={written(then)}") == answer
    seen = [answer[ADDRESSES[0]] for answer in told.answers.values()]
    assert len({str(one) for one in seen}) == 3  # the last step was on another hardware class


def test_now_is_the_live_matrix(told: Told) -> None:
    for address in ADDRESSES:
        live = told.get(address)
        for at in (written(NOW), f"{NOW:%Y-%m-%d}", "2026-11-21T23:00:00%2B08:00", "2026-11-21T23:00:00+08:00"):
            assert told.get(f"{address}&at={at}") == live
    whole = told.get("/api/v1/matrix")
    assert told.get(f"/api/v1/matrix?at={written(NOW)}") == whole


def test_a_day_means_its_end_in_utc(told: Told) -> None:
    (first, *_), address = told.answers, ADDRESSES[0]
    assert first.astimezone(UTC).date() < NOW.date()
    cells = told.get(f"{address}&at={first:%Y-%m-%d}")["cells"]
    assert cells == told.answers[first][address]["cells"]


def test_before_anything_was_measured_nothing_was_known(told: Told) -> None:
    cells = told.get("/api/v1/matrix?at=2020-01-01")["cells"]
    assert {cell["verdict"] for cell in cells} == {"not_run", "not_applicable"}
    cell = told.get(f"/api/v1/cells/{MASK.id}/{BAD.id}?at=2020-01-01")
    assert (cell["verdict"], cell["evidence"], cell["measured_at"]) == ("not_run", [], None)


def test_what_is_stale_now_was_not_then(told: Told) -> None:
    then = written(LONG_AGO + timedelta(hours=1))
    address = f"/api/v1/cells/{MASK.id}/{OLD.id}"
    assert told.get(address)["stale"] is True
    assert told.get(f"{address}?at={then}")["stale"] is False


def test_the_past_is_sorted_filtered_and_cut_like_the_present(told: Told) -> None:
    then = written(NOON + timedelta(minutes=30))
    whole = told.get(f"/api/v1/matrix?at={then}&verdicts=affected&sort=-measured_at")["cells"]
    part = told.get(f"/api/v1/matrix?at={then}&verdicts=affected&sort=-measured_at&limit=1")
    assert part["cells"] == whole[:1]
    assert told.get(part["next"])["cells"] == whole[1:2]


def test_the_past_is_judged_by_todays_repro(told: Told) -> None:
    """Results of what a repro no longer is do not count, then or now; both say how many there are."""
    given.save(told.engine, [given.with_new_code(MASK), *ISSUES[1:]], BUILDS)
    cell = told.get(f"/api/v1/cells/{MASK.id}/{BAD.id}?at={written(NOON + timedelta(minutes=30))}")
    assert cell["verdict"] == "not_run"
    assert cell["superseded"] == len(cell["evidence"]) > 0


@pytest.mark.parametrize(
    ("at", "told_why"),
    [
        ("2026-11-21T15:00:01Z", "still to come"),
        ("2026-11-22", "still to come"),
        ("9999-12-31T23:59:59-23:59", "calendar"),
        ("0001-01-01T00:00:00%2B14:00", "calendar"),
        ("2026-11-20T12:00:00", "with its zone"),
        ("2026-02-30", "calendar"),
        ("2026-W01-1", "is no time"),
        ("1763700000", "is no time"),
        ("", "is no time"),
        ("yesterday", "is no time"),
        ("%D9%A2%D9%A0%D9%A2%D9%A6-11-20", "is no time"),
        ("2026-11-20T12:00:60Z", "calendar"),
    ],
)
def test_a_time_that_is_none_or_still_to_come_is_refused(client: TestClient, at: str, told_why: str) -> None:
    for address in ("/api/v1/matrix", f"/api/v1/cells/{MASK.id}/{BAD.id}"):
        problem = client.get(f"{address}?at={at}").json()
        assert (problem["status"], problem["errors"][0]["field"]) == (422, "at")
        assert told_why in problem["detail"]


def test_the_past_takes_a_few_queries_however_long_it_is(told: Told, count_statements: CountStatements) -> None:
    with count_statements(told.engine) as said:
        told.get(f"/api/v1/matrix?at={written(NOON + timedelta(minutes=30))}")
    assert len(said) <= 6 + 5 * len(ISSUES), said


def test_a_past_that_costs_too_much_is_refused(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_ATTEMPTS", 3)
    response = told.client.get(f"/api/v1/matrix?at={written(NOON + timedelta(minutes=30))}")
    assert response.status_code == 422
    assert "ask for fewer issues" in response.json()["detail"]
    assert response.json()["errors"][0]["field"] == "at"
