"""`/workers` and its twin: who measures, and honest words where nothing is recorded."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from knowngood.domain.issue import Device, Requires
from knowngood.health.fleet import Workers
from knowngood.health.page import percent
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.tables import attempts, machines
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE
from tests.web import given
from tests.web.asking import answer_at, client_of, shown, values_of
from tests.web.given import BAD, CPU_MACHINE, DYNAMO, GOOD, GPU_CLASS, GPU_MACHINE, NOW, Asked


def told(client: TestClient, query: str = "") -> Any:
    return answer_at(client, f"/api/v1/workers{query}")


def test_every_machine_is_told_with_what_it_is_and_did(client: TestClient) -> None:
    gpu, cpu = told(client)["workers"]
    assert (cpu["id"], gpu["id"]) == (CPU_MACHINE.digest, GPU_MACHINE.digest)
    assert (cpu["cpu"], cpu["cores"], cpu["gpus"], cpu["driver"]) == ("AMD EPYC 7B13", 2, [], None)
    assert (gpu["gpus"][0]["name"], gpu["gpus"][0]["hardware"], gpu["driver"]) == ("NVIDIA H100", GPU_CLASS, "550.54")
    assert (cpu["hardware"], gpu["hardware"]) == ([HARDWARE], [HARDWARE, GPU_CLASS])
    (work,) = cpu["classes"]
    assert work["seconds"] == work["arms"] * 5
    assert work["seconds_per_cell"] == pytest.approx(work["seconds"] / work["cells"], abs=0.1)
    assert 0 < cpu["busy_share"] < 0.001
    assert (cpu["doing"], cpu["origins"]) == ([], ["local"])


def test_a_window_counts_what_ended_in_it_and_the_rest_only_as_ever(client: TestClient) -> None:
    """The notebook's oldest results are older than any window."""
    day, month = told(client, "?window=day"), told(client, "?window=month")
    assert day["workers"][1]["arms_done"] > day["workers"][1]["classes"][0]["arms"]
    assert day["workers"][1]["classes"] == month["workers"][1]["classes"]
    assert day["workers"][1]["busy_share"] > month["workers"][1]["busy_share"]


def test_the_page_says_the_same_in_words(client: TestClient) -> None:
    page = shown(client, "/workers", Workers)
    assert [worker.id for worker in page.workers] == [GPU_MACHINE.digest, CPU_MACHINE.digest]
    assert (values_of(client, "/workers")["live_address"], page.dispatcher_until) == ("", None)
    text = client.get("/workers").text
    assert f'<span class="line">NVIDIA H100, 85.0 GB, {GPU_CLASS}</span>' in text
    assert '<span class="line">AMD EPYC 7B13, 2 cores, AVX2, 8.6 GB</span>' in text
    assert "2 of 2 machines measured something in the last 7 days." in text
    assert "No dispatcher is at work" in text
    assert client.get("/workers?window=year").status_code == 422


def test_what_a_machine_does_now_is_shown_while_it_does_it(own: TestClient, own_engine: Engine) -> None:
    at = NOW - timedelta(seconds=20)
    given.save(own_engine, given.ISSUES, given.BUILDS)
    run = given.queue(own_engine, Asked([BAD, GOOD], at, issues=[DYNAMO]))
    spec = given.claim(own_engine, at)
    assert spec is not None
    assert [one.run_url for one in shown(own, "/workers", Workers).held_by_none] == [f"/runs/{run}"]
    assert f'href="/runs/{run}"' in own.get("/workers").text
    given.begin(own_engine, spec, at)
    given.start(own_engine, spec, spec.arms[0], at)
    page = shown(own, "/workers", Workers)
    ((doing,),) = [worker.doing for worker in page.workers]
    assert doing.model_dump()["arms"] == ("fla-160 control",)
    assert (page.held_by_none, bool(values_of(own, "/workers")["live_address"])) == ((), True)
    assert re.search(r"(?s)Environments that wait: 1\..*fla-160 control", own.get("/workers").text)
    (worker,) = told(own)["workers"]
    assert (worker["last_seen_at"], worker["doing"][0]["held"]) == ("2026-11-21T15:00:00Z", True)


def test_what_nobody_can_run_is_said_with_what_it_needs(own: TestClient, own_engine: Engine) -> None:
    needy = replace(given.GPU_ONLY, requires=Requires(Device.CUDA, compute_capability=(10, 0)))
    given.save(own_engine, [DYNAMO, needy], given.BUILDS)
    given.run(own_engine, Asked([BAD], NOW - timedelta(hours=1), issues=[DYNAMO]))
    found = told(own)
    assert found["unserved"] == [
        {
            "issue": needy.id,
            "needs": "a GPU of compute capability 10.0 or more",
            "url": f"/issues/{needy.id}",
        }
    ]
    assert "Issues that no worker of the window can measure" in own.get("/workers").text


def test_a_class_that_only_old_machines_had_is_left_to_nobody(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], given.LONG_AGO, hardware=GPU_CLASS, issues=[given.GPU_ONLY]))
    given.run(own_engine, Asked([BAD], NOW - timedelta(hours=1), issues=[DYNAMO]))
    needs = {one["hardware"]: one for one in told(own)["classes"]}
    assert (needs[HARDWARE]["workers"], needs[GPU_CLASS]["workers"]) == (1, 0)
    assert needs[HARDWARE]["missing"] > 0
    assert "none: nobody can run these" in own.get("/workers").text


def test_a_machine_whose_description_was_pruned_is_said_to_be_not_recorded(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], NOW - timedelta(hours=1), issues=[DYNAMO]))
    with unit_of_work(own_engine) as s:
        s.execute(machines.delete())
    (worker,) = told(own)["workers"]
    assert (worker["cpu"], worker["gpus"], worker["hardware"]) == (None, None, [HARDWARE])
    assert "not recorded" in own.get("/workers").text


def test_an_empty_store_says_how_to_begin(own: TestClient) -> None:
    assert told(own)["workers"] == []
    assert "knowngood up" in own.get("/workers").text


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "0 %"), (0.0001, "< 1 %"), (0.019, "1 %"), (0.999, "99 %"), (1.0, "100 %")]
)
def test_a_share_is_never_rounded_to_nothing_or_to_all(share: float, words: str) -> None:
    assert percent(share) == words


def test_the_page_takes_a_known_number_of_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    client.get("/coverage")  # what is known is kept
    with count_statements(notebook) as said:
        assert client.get("/workers").status_code == 200
    assert len(said) == 9, said  # the generation twice, doing, tallies, machines, stays, lease, queued, events


ABSURD = {
    "memory_bytes": 10**400,
    "cores": 10**4000,
    "cpu_model": "x" * 1_000_000,
    "compiler": "y" * 1_000_000,
    "gpus": [{"index": 10**400, "name": "z" * 20_000, "capability": [10**400, -1], "memory_bytes": -1}] * 100,
}
ABSURD_SECONDS = ["1e999", "NaN", "1e308", "-1e308"]
ABSURD_RECORD = {
    "wall_s": "WALL",
    "own_s": -1e300,
    "peak_bytes": 10**400,
    "threads": 10**4000,
    "exit_code": -(10**400),
    "log_cut_bytes": 10**400,
}


def test_absurd_numbers_and_names_of_a_stored_bundle_break_no_page(own_notebook: Engine) -> None:
    """Bundles are bounded when they come in; what an older release took in stays."""
    with unit_of_work(own_notebook) as s:
        for row in s.execute(sa.select(machines)).all():
            doc = json.dumps({**json.loads(row.doc), **ABSURD})
            s.execute(sa.update(machines).where(machines.c.digest == row.digest).values(doc=doc))
        rows = s.execute(sa.select(attempts.c.id, attempts.c.record).where(attempts.c.issue == DYNAMO.id)).all()
        for (id_, record), seconds in zip(rows, ABSURD_SECONDS, strict=False):
            doc = json.dumps({**json.loads(record), **ABSURD_RECORD}).replace('"WALL"', seconds)
            s.execute(sa.update(attempts).where(attempts.c.id == id_).values(record=doc))
    client = client_of(own_notebook)
    wheres = [f"/attempts/{id_}" for (id_, _), _ in zip(rows, ABSURD_SECONDS, strict=False)]
    assert len(wheres) == len(ABSURD_SECONDS)
    for page in ("/workers", *wheres, "/quality", f"/issues/{DYNAMO.id}"):
        for address in (page, f"/api/v1{page}"):
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.text)
            assert len(answer.content) < 200_000, address
