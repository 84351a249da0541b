"""The cell page: why this verdict, from which attempts, and how to see it again."""

import pytest
from starlette.testclient import TestClient

from app.store.session import Engine
from app.web.pages.cell import CellPage
from app.web.signs import Sign
from tests.conftest import CountStatements
from tests.make import HARDWARE, NOON
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, DYNAMO, NEW, OLD, Asked


def address(issue: str, build: str, hardware: str = HARDWARE) -> str:
    return f"/cells/{issue}/{build.replace('+', '%2B')}?hardware={hardware}"


def page_of(client: TestClient, where: str) -> CellPage:
    return shown(client, where, CellPage)


def test_a_failing_cell_says_why_when_and_on_what_machine(client: TestClient) -> None:
    where = address("pytorch-151290", BAD.id)
    page = page_of(client, where)
    assert page.sign is Sign.CURE
    assert page.sentence == (
        f"Fails on {BAD.id} ({HARDWARE}): with big: 2 of 2 attempts ended with the issue's own signature; "
        "control passed."
    )
    text = " ".join(client.get(where).text.split())
    assert "Measured <time" in text
    assert "on AMD EPYC 7B13, 2 cores, avx2, g++ 12.2.0." in text
    assert "conflicting declaration" in text


def test_a_passing_cell_says_what_proves_it(client: TestClient) -> None:
    page = page_of(client, address("pytorch-151290", OLD.id))
    assert "path proven" in page.sentence
    assert page.is_stale


def test_variants_are_told_apart(client: TestClient) -> None:
    page = page_of(client, address("pytorch-151290", BAD.id))
    assert [(line.finding.variant, line.sign, line.finding.k, line.finding.n) for line in page.variants] == [
        ("big", Sign.FAILS, 2, 2),
        ("small", Sign.PASSES, 0, 2),
    ]


def test_attempts_stand_baseline_first_then_control_then_workarounds(client: TestClient) -> None:
    arms = [line.row.attempt.arm for line in page_of(client, address("pytorch-151290", BAD.id)).attempts]
    assert list(dict.fromkeys(arms)) == ["baseline", "control", "eager_mask", "flags"]


def test_an_attempt_of_an_older_repro_is_shown_and_not_counted(own: TestClient, sqlite_engine: Engine) -> None:
    given.save(sqlite_engine, [DYNAMO], [BAD])
    given.run(sqlite_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    given.save(sqlite_engine, [given.with_new_code(DYNAMO)], [BAD])
    where = address("fla-160", BAD.id)
    page = page_of(own, where)
    assert [line.row.counted for line in page.attempts] == [False, False]
    assert "2 of them ran an older repro or environment: shown, not counted." in own.get(where).text


def test_a_cell_that_was_never_run_says_so_and_how(client: TestClient) -> None:
    where = address("fla-160", NEW.id)
    page = page_of(client, where)
    assert page.sentence == f"Not run on {NEW.id} ({HARDWARE}): not run yet."
    assert f"knowngood run --builds {NEW.id}" in client.get(where).text


def test_a_cell_that_cannot_be_says_why(client: TestClient) -> None:
    page = page_of(client, address("pytorch-151589", BAD.id))
    assert page.sign is Sign.NOT_APPLICABLE
    assert "needs a CUDA GPU" in page.sentence


def test_without_a_class_the_one_that_was_measured_is_shown(client: TestClient) -> None:
    page = page_of(client, f"/cells/pytorch-151589/{BAD.id}")
    assert page.cell.hardware == given.GPU_CLASS


@pytest.mark.parametrize("hardware", ["tpu-v5", "cuda-sm_", "cuda-sm_x", "cpu"])
def test_a_class_that_cannot_be_is_refused_not_a_fault(client: TestClient, hardware: str) -> None:
    response = client.get(address("fla-160", BAD.id, hardware))
    assert response.status_code == 422
    assert "known" in response.text


def test_a_cell_page_takes_nine_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get(address("pytorch-151290", BAD.id))
    assert len(said) == 9, said  # generation, issue, builds, cell, attempts (2), the telling attempt (2), notes
