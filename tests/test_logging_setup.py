"""The log: one line for each request, in two forms, and nothing in it that opens a door or is nobody's business."""

import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
import structlog
from uvicorn.config import LOGGING_CONFIG

from knowngood.domain.access import Scope
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    JobEnded,
    JobStarted,
    Provisioning,
)
from knowngood.domain.verdicts.outcome import Ending, RunRecord, Trouble, TroubleCode
from knowngood.logging_setup import Format, Level, configure
from knowngood.measure.dispatch import log_events
from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from tests.make import NOON
from tests.store.given import MACHINE
from tests.web.asking import bearer, client_of
from tests.web.given import make_token
from tests.web.signed_in import signed_in

TOKEN = "kg_0123456789ab_" + "5" * 64
PASTED = "RuntimeError: a sentence that only this person's program says"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    yield
    structlog.configure(**before)
    logging.getLogger().handlers = handlers
    logging.getLogger().setLevel(logging.WARNING)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    captured = capsys.readouterr()
    assert captured.out == "", "the standard output is for answers"
    return [json.loads(line) for line in captured.err.splitlines()]


def test_each_request_is_one_line_with_its_template_and_its_name(
    own_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("json", "info")
    client = client_of(own_engine)
    client.get("/api/v1/issues/no-such-9", headers={"X-Request-ID": "ci-7"})
    client.head("/runs")
    first, second = lines(capsys)
    assert {key: first[key] for key in ("event", "level", "method", "route", "status", "request_id")} == {
        "event": "request",
        "level": "info",
        "method": "GET",
        "route": "/api/v1/issues/{issue}",
        "status": 404,
        "request_id": "ci-7",
    }
    assert isinstance(first["ms"], float)
    assert str(first["timestamp"]).endswith("Z")
    assert (second["method"], second["route"], second["status"]) == ("HEAD", "/runs", 200)
    assert len(str(second["request_id"])) == 32


def test_a_refusal_names_the_request_for_whoever_reads_the_log(own_engine: Engine) -> None:
    answer = client_of(own_engine).get("/api/v1/issues/no-such-9", headers={"X-Request-ID": "ci-7"})
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "ci-7"
    made = client_of(own_engine).get("/api/v1/nothing", headers={"X-Request-ID": "no\tid"})
    assert made.json()["request_id"] == made.headers["x-request-id"]
    assert len(made.headers["x-request-id"]) == 32


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_and_nothing_pasted_is_in_the_log(
    own_engine: Engine, form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(form, "info")
    client = client_of(own_engine, AccessPolicy(reads_need_token=True))
    secret = make_token(own_engine, Scope.READ)
    people = signed_in(own_engine, Scope.ADMIN)
    sent = [
        client.get("/api/v1/runs", headers=bearer(secret)),
        client.get("/api/v1/runs", headers=bearer(TOKEN)),
        client.get(f"/api/v1/issues/{TOKEN}?token={TOKEN}"),
        client.get(f"/{TOKEN}"),
        client.get("/api/v1/runs", headers={"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}),
        client.post("/api/v1/errors", json={"text": PASTED}, headers=bearer(secret)),
        client.post("/sign-in", data={"token": secret}),
        people.get("/runs?q=one-very-private-word"),
    ]
    assert {answer.status_code for answer in sent} >= {200, 401}
    told = capsys.readouterr().err
    session = next(iter(people.cookies.values()))
    for hidden in (secret, secret[-64:], TOKEN, TOKEN[-64:], "dXNlcj", PASTED, "private-word", "pasted", session):
        assert hidden not in told
    assert told.count("request") >= len(sent)


def test_a_fault_of_ours_is_told_by_its_place_and_kind_without_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "info")
    try:
        _fail()
    except KeyError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
        structlog.get_logger().exception("request failed")
    theirs, ours = lines(capsys)
    for line in (theirs, ours):
        assert "test_logging_setup.py" in str(line["exception"])
        assert str(line["exception"]).index("ValueError") < str(line["exception"]).index("KeyError")
        assert PASTED.partition(":")[2] not in json.dumps(line)
    assert (theirs["event"], theirs["level"]) == ("Exception in ASGI application\n", "error")


def _fail() -> None:
    try:
        int(PASTED)
    except ValueError as error:
        raise KeyError(PASTED) from error


def test_what_looks_like_a_secret_is_struck_out_wherever_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "info")
    address = "postgresql://team:pass%20word@db.example/knowngood"
    structlog.get_logger().warning(f"no {TOKEN}", headers={"a": [f"Bearer {TOKEN}"]}, reason=address, n=3)
    logging.getLogger("uvicorn.error").error("no %s", TOKEN)
    first, second = lines(capsys)
    assert first["event"] == "no kg_***"
    assert first["headers"] == {"a": ["Bearer kg_***"]}
    assert (first["reason"], first["n"]) == ("postgresql://team:***@db.example/knowngood", 3)
    assert second["event"] == "no kg_***"


def test_the_servers_lines_come_to_us_whatever_it_had_set_up_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    logging.config.dictConfig(LOGGING_CONFIG)
    configure("json", "info")
    logging.getLogger("uvicorn.error").error("Invalid HTTP request received.")
    (line,) = lines(capsys)
    assert line["event"] == "Invalid HTTP request received."


@pytest.mark.parametrize(("level", "told"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_the_level_says_from_where_on_lines_are_written(
    level: Level, told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("json", level)
    log = structlog.get_logger()
    log.debug("one")
    log.info("two")
    log.warning("three")
    assert len(lines(capsys)) == told


def test_a_dispatchers_lines_name_run_job_and_arm_and_not_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "debug")
    asked: list[str] = []

    def run_of(job: str) -> str:
        asked.append(job)
        return "run-1"

    tell = log_events(run_of)
    record = RunRecord(ending=Ending.NOT_STARTED, trouble=Trouble(TroubleCode.DISK_FULL, PASTED))
    for event in (
        JobStarted("job-1", 2, MACHINE),
        Provisioning("job-1", 2, "sync", PASTED),
        EnvironmentReady("job-1", 2, PASTED, "digest", {}, {}, 1.25, reused=True),
        ArmStarted("job-1", 2, "attempt-1", NOON),
        ArmFinished("job-1", 2, "attempt-1", record, PASTED, "", MACHINE.digest, NOON, NOON),
        JobEnded("job-1", 2, PASTED),
    ):
        tell(event)
    told = lines(capsys)
    assert asked == ["job-1"]
    assert {(line["run"], line["job"], line["try_no"]) for line in told} == {("run-1", "job-1", 2)}
    assert [line["event"] for line in told] == [
        "job started",
        "environment in the making",
        "environment ready",
        "arm started",
        "arm finished",
        "job ended",
    ]
    assert (told[4]["attempt"], told[4]["ending"], told[4]["trouble"]) == ("attempt-1", "not_started", "disk_full")
    assert PASTED not in json.dumps(told)
