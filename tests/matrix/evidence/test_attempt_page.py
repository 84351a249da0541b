"""The attempt page: the log with its telling line, the environment as imported, the lock, the commands."""

from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.outcome import Outcome, SeenPath
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import load_attempts
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_record
from tests.web import given
from tests.web.asking import page_at
from tests.web.given import BAD, DYNAMO, GOOD, OLD, Asked


def attempt_of(engine: Engine, issue: str, build: str, arm: str, variant: str = "default") -> str:
    with reading(engine) as s:
        rows = load_attempts(s, issue, build, HARDWARE)
    return next(row.attempt.id for row in rows if (row.attempt.arm, row.attempt.variant) == (arm, variant))


@pytest.fixture(scope="session")
def failing(notebook: Engine) -> str:
    return attempt_of(notebook, "pytorch-151290", BAD.id, "baseline", "big")


def page_of(client: TestClient, attempt: str) -> SimpleNamespace:
    return page_at(client, f"/attempts/{attempt}")


def test_the_line_that_decided_is_lit_in_the_log_and_the_log_is_text(client: TestClient, failing: str) -> None:
    text = client.get(f"/attempts/{failing}").text
    assert (
        '<mark id="match" tabindex="-1">error: conflicting declaration &#39;int64_t tmp_acc0_arr [2]&#39;</mark>'
        in text
    )
    assert "compiling &lt;kernel&gt; &amp; co" in text
    assert 'href="#match"' in text


def test_a_passing_attempt_has_no_line_to_light(client: TestClient, notebook: Engine) -> None:
    page = page_of(client, attempt_of(notebook, "pytorch-151290", GOOD.id, "baseline", "big"))
    assert page.detail.judgement.outcome is Outcome.PASS
    assert not page.has_mark


def test_versions_are_those_imported_and_the_machine_is_named(client: TestClient, failing: str) -> None:
    page = page_of(client, failing)
    assert page.detail.attempt.record.imported["torch"] == BAD.torch
    text = client.get(f"/attempts/{failing}").text
    assert "AMD EPYC 7B13" in text
    assert "numpy==2.2.6" in text
    assert "512 MB" in text


def test_what_ran_compiled_is_shown_by_name(own: TestClient, own_engine: Engine) -> None:
    seen = SeenPath("frame", "Model.forward", "inductor", compiled=1, ran=2, raised=1, objects=1)
    record = make_record(Outcome.PASS, GOOD, harness=2, seen=(seen,))
    given.save(own_engine, [DYNAMO], [GOOD])
    given.run(own_engine, Asked([GOOD], NOON, issues=[DYNAMO]), lambda *_: Outcome.PASS, lambda *_: record)
    attempt = attempt_of(own_engine, DYNAMO.id, GOOD.id, "baseline")
    text = own.get(f"/attempts/{attempt}").text
    assert "Model.forward" in text
    assert "2\N{MULTIPLICATION SIGN} inductor, raised 1\N{MULTIPLICATION SIGN}" in text
    told = own.get(f"/api/v1/attempts/{attempt}").json()
    assert (told["proof"], told["harness"]) == ("call", 2)
    assert (told["seen"][0]["name"], told["seen"][0]["ran"]) == ("Model.forward", 2)


def test_log_and_lock_are_downloads(client: TestClient, failing: str) -> None:
    log, lock = client.get(f"/attempts/{failing}/log.txt"), client.get(f"/attempts/{failing}/pylock.toml")
    assert (log.text, log.headers["content-type"]) == (given.LOG, "text/plain; charset=utf-8")
    assert (lock.text, lock.headers["content-type"]) == (given.LOCK, "application/toml")


def test_the_commands_install_from_the_lock_and_name_arm_and_parameters(client: TestClient, failing: str) -> None:
    commands = page_of(client, failing).commands
    assert f"curl -O http://testserver/attempts/{failing}/requirements.txt" in commands["plain"]
    assert (
        "uv pip install --python known-good-check/bin/python --no-deps --require-hashes -r requirements.txt"
        in commands["plain"]
    )
    assert commands["plain"].endswith("known-good-check/bin/python repro.py block=1024")
    assert commands["ours"].endswith("--force")


def test_the_pins_of_the_lock_are_a_download_that_any_index_can_serve(client: TestClient, failing: str) -> None:
    pins = client.get(f"/attempts/{failing}/requirements.txt")
    assert pins.text == f"torch===2.7.1 --hash=sha256:{given.WHEEL_HASH}\n"
    assert pins.headers["content-type"] == "text/plain; charset=utf-8"
    assert f'href="/attempts/{failing}/requirements.txt"' in client.get(f"/attempts/{failing}").text


def test_the_deciding_line_is_lit_once_where_log_and_traceback_both_have_it(client: TestClient, failing: str) -> None:
    assert client.get(f"/attempts/{failing}").text.count('id="match"') == 1


def test_without_a_stored_lock_the_page_says_so_and_resolves_anew(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    attempt = attempt_of(own_engine, "fla-160", BAD.id, "baseline")
    given.forget_locks(own_engine)
    assert "--exclude-newer 2025-03-01 torch==2.7.1" in page_of(own, attempt).commands["plain"]
    for file in ("pylock.toml", "requirements.txt"):
        refused = own.get(f"/attempts/{attempt}/{file}")
        assert refused.status_code == 404
        assert f'href="/attempts/{attempt}"' in refused.text


def test_an_attempt_whose_environment_never_came_is_shown(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, given.ISSUES, given.BUILDS)
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), tell=lambda _s, _a: Outcome.ENV_ERROR)
    text = own.get(f"/attempts/{attempt_of(own_engine, 'fla-160', BAD.id, 'baseline')}").text
    assert make_record(Outcome.ENV_ERROR).trouble is not None
    assert "no C++ compiler; install g++" in text


def test_an_attempt_on_a_gpu_names_the_card_and_the_driver(client: TestClient) -> None:
    cell = client.get(f"/api/v1/cells/pytorch-151589/{BAD.id}?hardware={given.GPU_CLASS}").json()
    text = client.get(cell["evidence_url"]).text
    assert "NVIDIA H100, sm_90, 85.0 GB" in text
    assert "550.54" in text


def test_an_attempt_page_takes_five_queries(
    client: TestClient, notebook: Engine, failing: str, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get(f"/attempts/{failing}")
    assert len(said) == 5, said  # generation, the attempt with its log and lock, its issue and build, issue, builds


def test_an_unknown_attempt_is_not_found(client: TestClient) -> None:
    assert client.get("/attempts/none-of-ours").status_code == 404
    assert OLD.id not in client.get("/attempts/none-of-ours").text
