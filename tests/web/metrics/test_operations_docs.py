"""docs/runbook.md, docs/alerts.yaml, docs/grafana.json and /metrics speak of the same things."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.store.engine import connect, unit_of_work
from knowngood.store.jobs.job_queue import create_run
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import client_of

DOCS = Path(__file__).parents[3] / "docs"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((DOCS / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"] for rule in RULES if "record" in rule}
BOARD = json.loads((DOCS / "grafana.json").read_text())
RUNBOOK = (DOCS / "runbook.md").read_text()
QUERIES = [rule["expr"] for rule in RULES] + [one["expr"] for panel in BOARD["panels"] for one in panel["targets"]]
OF_PROMETHEUS = {"up"}
# What our queries are made of, beside names of metrics and of labels.
WORDS = {
    "sum", "max", "min", "by", "on", "and", "or", "unless", "rate", "increase", "delta", "time", "topk",
    "histogram_quantile",
}  # fmt: skip


@pytest.fixture(scope="module")
def told(new_store: NewStore) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Every family with its type, and every sample with its labels, where all of them have something to tell."""
    engine = connect(new_store())
    given.fill(engine)
    queued = plan_jobs([given.DYNAMO], given.BUILDS, [HARDWARE], KnownAttempts(), PlanRequest())
    with unit_of_work(engine) as s:
        create_run(s, queued, {"by": "test"}, given.NOW)
    client = client_of(engine)
    assert client.get(f"/api/v1/gate?build={quote(given.BAD.id)}&issues=pytorch-151290").status_code == 200
    client.post("/api/v1/results")
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    engine.dispose()
    samples: dict[str, set[str]] = {}
    for sample in (one for family in families for one in family.samples):
        samples.setdefault(sample.name, set()).update(sample.labels)
    return {family.name: family.type for family in families}, samples


def names_in(query: str) -> dict[str, set[str]]:
    """The metrics of a query, each with the labels that it selects by."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"\b((?:knowngood[\w:]*|up))\b(?:\{([^}]*)\})?", query):
        found.setdefault(name, set()).update(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels))
    return found


def test_every_metric_and_label_that_a_query_names_is_exported(
    told: tuple[dict[str, str], dict[str, set[str]]],
) -> None:
    _, samples = told
    asked = 0
    for query in QUERIES:
        for name, labels in names_in(query).items():
            asked += 1
            if name not in OF_PROMETHEUS | RECORDS:
                assert name in samples, query
                assert labels <= samples[name], query
    assert asked > 50
    used = {name for query in QUERIES for name in names_in(query)}
    assert used >= RECORDS, "a record that nobody reads is to go"


def test_queries_are_made_of_known_words(told: tuple[dict[str, str], dict[str, set[str]]]) -> None:
    labels = set().union(*told[1].values())
    for query in QUERIES:
        bare = re.sub(r'"[^"]*"|\[\w+\]|\{[^}]*\}|[\d.]+|\b(knowngood[\w:]*|up)\b', " ", query)
        assert set(re.findall(r"[A-Za-z_]\w*", bare)) <= WORDS | labels, query
        assert query.count("(") == query.count(")"), query


def test_counters_are_asked_for_how_they_grow_and_gauges_for_what_they_are(
    told: tuple[dict[str, str], dict[str, set[str]]],
) -> None:
    for query in QUERIES:
        for name in names_in(query):
            grows = name.endswith(("_total", "_bucket", "_sum", "_count"))
            for place in re.finditer(rf"\b{re.escape(name)}\b(?:\{{[^}}]*\}})?(\[)?", query):
                before = re.search(r"(\w+)\($", query[: place.start()])
                function = before[1] if before else ""
                assert (function in {"rate", "increase"}) == grows, f"{name} in {query}"
                assert bool(place[1]) == (function in {"rate", "increase", "delta"}), f"{name} in {query}"


def test_the_runbook_lists_every_metric_and_no_other(told: tuple[dict[str, str], dict[str, set[str]]]) -> None:
    families, _ = told
    listed = re.findall(r"^\| `(knowngood_\w+)` \|", RUNBOOK, re.MULTILINE)
    exported = {f"{name}_total" if kind == "counter" else name for name, kind in families.items()}
    assert set(listed) == exported
    assert len(listed) == len(set(listed))


def test_every_alert_has_its_section_which_says_where_to_look_and_what_to_do() -> None:
    sections = dict(re.findall(r"^## (KnownGood\w+)\n\n(.+?)(?=\n## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(ALERTS)
    for name, text in sections.items():
        assert "**Look**" in text, name
        assert "**Do**" in text, name


def test_rules_have_the_shape_that_prometheus_reads() -> None:
    for group in yaml.safe_load((DOCS / "alerts.yaml").read_text())["groups"]:
        assert set(group) <= {"name", "interval", "rules"}
    for rule in RULES:
        assert ("alert" in rule) != ("record" in rule)
        allowed = {"alert", "expr", "for", "labels", "annotations"} if "alert" in rule else {"record", "expr"}
        assert set(rule) <= allowed, rule
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert all(label == "instance" or f"by ({label})" in rule["expr"] for label in used), name


def test_the_dashboard_has_the_shape_that_grafana_reads() -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= set(BOARD)
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids)) > 15
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert [one["refId"] for one in panel["targets"]] == list("ABCDEF"[: len(panel["targets"])])
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_runbook_says_what_to_do_about_each_alert() -> None:
    headings = {line.removeprefix("## ").strip() for line in RUNBOOK.splitlines() if line.startswith("## ")}
    assert set(ALERTS) <= headings
    assert all(f"({file})" in RUNBOOK for file in ("alerts.yaml", "grafana.json"))
