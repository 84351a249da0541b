"""Metrics for Prometheus: names, units and labels by its rules, right figures, and for nobody who may not read."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from starlette.testclient import TestClient

from knowngood.domain.access import Scope
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER, take_lease
from knowngood.web.auth.principal import AccessPolicy
from tests.make import HARDWARE, make_issue
from tests.store.given import given_results, given_run
from tests.web import given
from tests.web.asking import bearer, client_of
from tests.web.given import BAD, NOW, make_token

UNITS = re.compile(
    r"knowngood_[a-z_]+?(_seconds|_bytes)?(_total|_info)?\Z"  # a unit, where there is one, then the kind
)


def read(client: TestClient) -> dict[str, Metric]:
    response = client.get("/metrics")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in parsed(response.text)}


def parsed(text: str) -> list[Metric]:
    return list(read_text(text))


def value(metrics: dict[str, Metric], sample: str, **labels: str) -> float:
    found = [
        one.value
        for family in metrics.values()
        for one in family.samples
        if one.name == sample and labels.items() <= one.labels.items()
    ]
    assert len(found) == 1, (sample, labels, found)
    return found[0]


def test_both_text_forms_can_be_read_by_their_own_readers(client: TestClient) -> None:
    plain = read(client)
    open_metrics = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name for family in read_openmetrics(open_metrics.text)}  # type: ignore[no-untyped-call]
    assert families >= {name.removesuffix("_info") for name in plain if not name.startswith("knowngood_build")}
    assert open_metrics.headers["cache-control"] == "no-store"


def test_names_follow_the_conventions_of_prometheus(client: TestClient) -> None:
    client.get("/api/v1/gate?build=x&issues=y")
    for family in read(client).values():
        assert family.documentation.endswith("."), family.name
        for sample in family.samples:
            name = re.sub(r"_(bucket|count|sum)\Z", "", sample.name) if family.type in {"histogram", "summary"} else ""
            assert UNITS.match(name or sample.name), sample.name
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name
            assert not {"job", "instance"} & sample.labels.keys(), "Prometheus writes these itself"


def test_the_installation_is_told_as_the_store_has_it(own: TestClient, own_engine: Engine) -> None:
    given_run(own_engine, [make_issue(), make_issue("toy-2")])
    metrics = read(own)
    assert value(metrics, "knowngood_jobs", state="queued", hardware=HARDWARE) == 1
    assert value(metrics, "knowngood_jobs", state="leased", hardware=HARDWARE) == 0
    assert value(metrics, "knowngood_arms_waiting", hardware=HARDWARE) == 6
    assert value(metrics, "knowngood_runs_active") == 1
    assert value(metrics, "knowngood_jobs_oldest_queued_seconds") > 0
    given_results(own_engine)
    metrics = read(own)
    assert value(metrics, "knowngood_cells", verdict="affected", hardware=HARDWARE) == 2
    assert value(metrics, "knowngood_attempts_total", outcome="match") == 2
    assert value(metrics, "knowngood_attempts_total", outcome="crash") == 0
    assert value(metrics, "knowngood_jobs_oldest_queued_seconds") == 0
    assert value(metrics, "knowngood_arm_seconds_total", hardware=HARDWARE) == 30
    assert value(metrics, "knowngood_cell_age_seconds", quantile="1") >= value(
        metrics, "knowngood_cell_age_seconds", quantile="0.5"
    )


@pytest.mark.parametrize(("age_s", "held", "left_s"), [(-10, 1, 20), (-40, 0, -10)])
def test_the_dispatchers_lease_is_held_until_it_runs_out(
    own: TestClient, own_engine: Engine, age_s: int, held: int, left_s: int
) -> None:
    with unit_of_work(own_engine) as s:
        take_lease(s, DISPATCHER, "one", NOW + timedelta(seconds=age_s), 30.0)
    metrics = read(own)
    assert value(metrics, "knowngood_dispatcher_lease_held") == held
    assert value(metrics, "knowngood_dispatcher_lease_remaining_seconds") == left_s


def test_requests_are_counted_by_template_and_never_by_what_was_asked(own: TestClient) -> None:
    asked = [
        ("GET", "/api/v1/issues/one", "/api/v1/issues/{issue}"),
        ("GET", "/api/v1/issues/two", "/api/v1/issues/{issue}"),
        ("GET", "/issues/one", "/issues/{issue}"),
        ("HEAD", "/runs", "/runs"),
        ("GET", "/runs?secret=1", "/runs"),
        ("GET", "/healthz", "/healthz"),
        ("GET", "/openapi.json", "/openapi.json"),
        ("DELETE", "/api/v1/runs", "/api/v1/runs"),
        *[("GET", f"/nothing/{n}", "(none)") for n in range(30)],
        ("BREW", "/nothing", "(none)"),
        ("POST", "/api/v1/results", "/api/v1/results"),
    ]
    for method, address, _ in asked:
        own.request(method, address)
    metrics = read(own)
    counted: Counter[tuple[str, str]] = Counter()
    for sample in metrics["knowngood_http_requests"].samples:
        counted[sample.labels["method"], sample.labels["route"]] += int(sample.value)
    assert counted == Counter((method if method != "BREW" else "other", route) for method, _, route in asked)
    assert value(metrics, "knowngood_http_requests_total", route="(none)", method="GET", status="4xx") == 30
    assert value(metrics, "knowngood_http_request_duration_seconds_count", route="/runs", method="GET") == 1


def test_a_fault_of_ours_is_counted_as_one(own_engine: Engine) -> None:
    quiet = TestClient(client_of(own_engine).app, raise_server_exceptions=False)
    state = vars(quiet.app)["state"].state
    object.__setattr__(state, "clock", lambda: 1 / 0)
    assert quiet.get("/api/v1/issues").status_code == 500
    assert b'route="/api/v1/issues",status="5xx"} 1.0' in _written(state.instruments)


def _written(instruments: object) -> bytes:
    from knowngood.web.metrics.collector import Instruments, write_metrics

    assert isinstance(instruments, Instruments)
    return write_metrics(instruments, None, "0", "")[0]


def test_decisions_of_the_gate_are_counted_those_made_before_too(own: TestClient, own_engine: Engine) -> None:
    given.fill(own_engine)
    for _ in range(3):
        answer = own.get(f"/api/v1/gate?build={BAD.id}&issues=pytorch-151290")
        assert answer.headers["knowngood-decision"] == "block"
    assert value(read(own), "knowngood_gate_decisions_total", decision="block") == 3


def test_bundles_are_counted_with_their_bytes(own: TestClient, own_engine: Engine) -> None:
    secret = make_token(own_engine, Scope.SUBMIT)
    own.post("/api/v1/results", content=b"no bundle", headers=bearer(secret))
    metrics = read(own)
    assert value(metrics, "knowngood_ingest_requests_total", result="refused") == 1
    assert value(metrics, "knowngood_ingest_received_bytes_total") == 9


def test_a_store_that_cannot_be_read_is_told_and_the_rest_still_counts() -> None:
    client = client_of(connect("sqlite:////nowhere/at/all.db"))
    client.get("/healthz")
    metrics = read(client)
    assert value(metrics, "knowngood_store_up") == 0
    assert value(metrics, "knowngood_http_requests_total", route="/healthz") == 1
    assert "knowngood_cells" not in metrics


def test_where_reads_are_closed_metrics_take_a_token_that_reads(own_engine: Engine) -> None:
    closed = client_of(own_engine, AccessPolicy(reads_need_token=True))
    refused = closed.get("/metrics")
    assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
    assert closed.get("/metrics", headers=bearer(make_token(own_engine, Scope.SUBMIT, name="w"))).status_code == 403
    assert closed.get("/metrics", headers=bearer(make_token(own_engine, Scope.READ, name="r"))).status_code == 200


def test_nothing_of_what_people_wrote_is_in_the_metrics(own: TestClient, own_engine: Engine) -> None:
    """Hosts, names of tokens and of watch lists, titles, addresses: digests and closed words only."""
    given.fill(own_engine)
    make_token(own_engine, Scope.READ, name="gpu-host-seventeen")
    allowed = re.compile(r"[\w./{}():+<>-]*\Z")
    for family in read(own).values():
        for sample in family.samples:
            for text in sample.labels.values():
                assert allowed.match(text), text
    assert "gpu-host-seventeen" not in own.get("/metrics").text
