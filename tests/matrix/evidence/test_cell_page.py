"""The cell page: why this verdict, from which attempts, and how to see it again."""

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor
from knowngood.domain.measuring.job import ArmSpec, JobSpec
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.domain.message import english, sentence
from knowngood.domain.verdicts.outcome import Outcome, RunRecord
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Verdict, is_stale
from knowngood.domain.vocabulary import OUTCOMES, VERDICTS, StatusLabel
from knowngood.matrix.evidence.service import ATTEMPTS_SHOWN
from knowngood.share.bundle import BundleHeader, write_bundle
from knowngood.share.store import take_in_bundle
from knowngood.store.engine import Engine
from knowngood.web.urls import MATRIX, attempt_address, costs_address
from tests.fixtures.databases import CountStatements
from tests.make import HARDWARE, NOON, make_attempt, make_record
from tests.web import given
from tests.web.asking import client_of, page_at
from tests.web.given import BAD, DYNAMO, MASK, NEW, OLD, Asked


def address(issue: str, build: str, hardware: str = HARDWARE) -> str:
    return f"/cells/{issue}/{build.replace('+', '%2B')}?hardware={hardware}"


def test_a_failing_cell_says_why_when_and_on_what_machine(client: TestClient) -> None:
    where = address("pytorch-151290", BAD.id)
    page = page_at(client, where)
    assert status_of(page.evidence.cell) is StatusLabel.WORKAROUND
    assert sentence(page.sentence) == (
        f"Fails on {BAD.in_words} (CPU): with big: 2 of 2 attempts ended with the issue's own signature; "
        "control passed."
    )
    text = " ".join(client.get(where).text.split())
    assert "Measured <time" in text
    assert "on AMD EPYC 7B13, 2 cores, avx2, g++ 12.2.0." in text
    assert "conflicting declaration" in text


def test_a_passing_cell_says_what_proves_it(client: TestClient) -> None:
    page = page_at(client, address("pytorch-151290", OLD.id))
    assert "path proven" in english(page.sentence)
    assert is_stale(page.evidence.cell, page.evidence.build, given.NOW)


def test_variants_are_told_apart(client: TestClient) -> None:
    page = page_at(client, address("pytorch-151290", BAD.id))
    assert [(one.variant, VERDICTS[one.verdict].label, one.k, one.n) for one in page.evidence.cell.variants] == [
        ("big", StatusLabel.FAILS, 2, 2),
        ("small", StatusLabel.PASSES, 0, 2),
    ]


def test_attempts_stand_baseline_first_then_control_then_workarounds(client: TestClient) -> None:
    arms = [row.attempt.arm for row in page_at(client, address("pytorch-151290", BAD.id)).attempts]
    assert list(dict.fromkeys(arms)) == ["baseline", "control", "eager_mask", "flags"]


def test_an_attempt_of_an_older_repro_is_shown_and_not_counted(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]))
    given.save(own_engine, [given.with_new_code(DYNAMO)], [BAD])
    where = address("fla-160", BAD.id)
    page = page_at(own, where)
    assert [row.counted for row in page.attempts] == [False, False]
    assert "2 of them ran an older repro or environment: shown, not counted." in own.get(where).text


def test_of_a_cell_that_was_measured_every_night_for_a_year_the_newest_attempts_are_shown(
    own: TestClient, own_engine: Engine, tmp_path: Path
) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    made = [
        replace(make_attempt(issue=DYNAMO, build=BAD, arm=arm, ordinal=n), finished_at=NOON + timedelta(minutes=n))
        for n in range(1, ATTEMPTS_SHOWN + 2)
        for arm in ("control", "baseline")
    ]
    with (tmp_path / "year.jsonl.gz").open("wb") as out:
        write_bundle(out, BundleHeader(NOON, "lab"), made)
    take_in_bundle(own_engine, tmp_path / "year.jsonl.gz", NOON + timedelta(days=1), by=Actor("ada"))
    where = address("fla-160", BAD.id)
    page = page_at(own, where)
    assert len(page.attempts) == ATTEMPTS_SHOWN
    assert min(row.attempt.ordinal for row in page.attempts) > ATTEMPTS_SHOWN // 2
    assert page.evidence.shown == (0, ATTEMPTS_SHOWN + 1)
    assert f"The newest {ATTEMPTS_SHOWN}; all of them are in" in own.get(where).text
    links = re.findall(r'href="(/api/v1/attempts\?[^"]+)"', own.get(where).text)
    (listed,) = [own.get(unescape(one)).json() for one in links]
    assert (len(listed["attempts"]), listed["next"] is not None) == (100, True)


def test_a_cell_that_was_never_run_says_so_and_how(client: TestClient) -> None:
    where = address("fla-160", NEW.id)
    page = page_at(client, where)
    assert sentence(page.sentence) == f"Not run on {NEW.in_words} (CPU): not run yet."
    assert f"knowngood run --builds {NEW.id}" in client.get(where).text


def test_a_cell_that_cannot_be_says_why(client: TestClient) -> None:
    page = page_at(client, address("pytorch-151589", BAD.id))
    assert status_of(page.evidence.cell) is StatusLabel.NOT_APPLICABLE
    assert "needs a CUDA GPU" in english(page.sentence)


def test_without_a_class_the_one_that_was_measured_is_shown(client: TestClient) -> None:
    page = page_at(client, f"/cells/pytorch-151589/{BAD.id}")
    assert page.evidence.cell.hardware == given.GPU_CLASS


@pytest.mark.parametrize("hardware", ["tpu-v5", "cuda-sm_", "cuda-sm_x"])
def test_a_class_that_cannot_be_is_refused_not_a_fault(client: TestClient, hardware: str) -> None:
    response = client.get(address("fla-160", BAD.id, hardware))
    assert response.status_code == 422
    assert "known" in response.text


def test_the_telling_line_is_lit_in_its_place_in_the_log(client: TestClient) -> None:
    where = address("pytorch-151290", BAD.id)
    text = client.get(where).text
    assert 'compiling &lt;kernel&gt; &amp; co\n<mark id="match" tabindex="-1">error: conflicting declaration' in text
    assert "</mark>\nnote: previous declaration" in text
    assert text.count('id="match"') == 1


def test_why_is_told_with_k_of_n_the_control_and_the_path(client: TestClient) -> None:
    failing = page_at(client, address("pytorch-151290", BAD.id)).evidence
    assert (failing.shown, {row.judgement.outcome for row in failing.controls}) == ((2, 4), {Outcome.PASS})
    assert failing.unseen == ("dynamo_graph", "inductor_cpp")  # it raised before anything was compiled
    passing = page_at(client, address("pytorch-151290", OLD.id)).evidence
    assert (passing.shown[0], passing.seen, passing.unseen) == (0, {"dynamo_graph": 1, "inductor_cpp": 1}, ())


def test_what_an_older_harness_saw_is_said_to_be_of_the_process(client: TestClient) -> None:
    where = address("pytorch-151290", OLD.id)
    assert "of the process, not of the call" in client.get(where).text
    assert client.get(f"/api/v1{where}").json()["proof"] == "process"


def test_a_failure_says_what_it_went_through_before_it_failed(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    seen = {"dynamo_graph": 2, "eager": 9}

    def record(spec: JobSpec, arm: ArmSpec, outcome: Outcome) -> RunRecord:
        return make_record(outcome, spec.build, probes=seen)

    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), _baseline_fails, record)
    said = sentence(page_at(own, address("fla-160", BAD.id)).sentence)
    assert said.endswith("signature; control passed; path seen (dynamo_graph 2x).")
    assert own.get(f"/api/v1{address('fla-160', BAD.id)}").json()["sentence"] == said


def _baseline_fails(_spec: JobSpec, arm: ArmSpec) -> Outcome:
    return Outcome.MATCH if arm.arm == "baseline" else Outcome.PASS


def test_the_environment_as_imported_and_its_lock_stand_on_the_page(client: TestClient) -> None:
    where = address("pytorch-151290", BAD.id)
    page = page_at(client, where)
    assert page.evidence.telling is not None
    assert page.evidence.telling.attempt.record.imported["torch"] == BAD.torch
    assert client.get(f"/attempts/{page.evidence.telling.attempt.id}/pylock.toml").text == given.LOCK
    assert client.get(page.pins_address).text == f"torch===2.7.1 --hash=sha256:{given.WHEEL_HASH}\n"
    assert "numpy==2.2.6" in client.get(where).text


def test_the_commands_repeat_the_telling_attempt_in_its_own_environment(client: TestClient) -> None:
    page = page_at(client, address("pytorch-151290", BAD.id))
    assert f"curl -O http://testserver{page.pins_address}\n" in page.commands["plain"]
    assert "--no-deps --require-hashes -r requirements.txt" in page.commands["plain"]
    assert page.commands["plain"].endswith("known-good-check/bin/python repro.py block=1024")


def test_how_a_cell_changed_is_told_newest_first_with_its_cause(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), lambda *_: Outcome.PASS)
    again = Asked([BAD], NOON + timedelta(hours=1), issues=[DYNAMO], wanted=PlanRequest(force=True))
    given.run(own_engine, again, _baseline_fails)
    where = address("fla-160", BAD.id)
    news = page_at(own, where).changes
    assert (news[0].before, news[0].after) == (Verdict.NOT_AFFECTED, Verdict.FLAKY)
    assert own.get(where).text.count(">measured here</a>") == len(news)
    assert [one.at for one in news] == sorted((one.at for one in news), reverse=True)
    told = own.get(f"/api/v1{where}").json()["changes"]
    assert (told[0]["before"], told[0]["after"]) == ("not_affected", "flaky")
    assert "2026-11-21</time>" in own.get(where).text
    other = own.get(f"/api/v1{where}&at=2026-11-21T12:30:00Z").json()["changes"]
    assert told[1:] == other


def test_the_twin_says_what_a_workaround_took(client: TestClient) -> None:
    findings = client.get(f"/api/v1{address('pytorch-151290', BAD.id)}").json()["findings"]
    cost = {one["id"]: one["cost"] for one in findings}["eager_mask"]
    alike = {"peak_bytes": 512_000_000, "attempts": 2, "peak_bytes_range": [512_000_000, 512_000_000]}
    assert cost["workaround"] == {"seconds": 4.0, "seconds_range": [4.0, 4.0], **alike}
    assert cost["control"] == {"seconds": 0.5, "seconds_range": [0.5, 0.5], **alike}


def test_a_cell_page_takes_ten_queries_where_all_that_is_known_is_kept(
    notebook: Engine, count_statements: CountStatements
) -> None:
    client = client_of(notebook)
    client.get(MATRIX)
    with count_statements(notebook) as said:
        client.get(address("pytorch-151290", BAD.id))
    assert len(said) == 10, said  # generation twice, issue, builds, attempts (2), telling attempt (2), notes, changes


def other_sum(_spec: JobSpec, arm: ArmSpec, outcome: Outcome) -> RunRecord:
    """The baseline observes another value than the control."""
    return make_record(outcome, BAD, observed={"sum": "36.0" if arm.arm == "baseline" else "1.0"})


def test_what_differs_from_the_control_is_shown_with_both_values(own: TestClient, own_engine: Engine) -> None:
    given.save(own_engine, [DYNAMO], [BAD])
    given.run(own_engine, Asked([BAD], NOON, issues=[DYNAMO]), lambda _spec, _arm: Outcome.PASS, other_sum)
    where = address("fla-160", BAD.id)
    page = page_at(own, where)
    assert page.evidence.cell.verdict is Verdict.INCONCLUSIVE
    assert page.silence == "wrong numbers without an error"
    text = " ".join(own.get(where).text.split())
    assert "Not what the control observed" in text
    assert '<td class="mono">sum</td><td class="mono why">36.0</td><td class="mono why">1.0</td>' in text
    told = own.get(f"/api/v1{where}").json()
    (difference,) = told["differences"]
    assert difference["values"] == [{"key": "sum", "value": "36.0", "control": "1.0"}]
    assert (told["silent"], told["attempts"]) == (True, {"pass": 1})
    attempt = own.get(f"/attempts/{difference['attempt']}").text
    assert "It does not count as a pass: ran, but its values differ from the control&#39;s: sum is 36.0" in attempt
    assert "<mark>The control&#39;s: 1.0</mark>" in attempt
    assert own.get(f"/api/v1/attempts/{difference['attempt']}").json()["differs"] == difference


def test_an_attempt_that_agrees_with_the_control_differs_in_nothing(client: TestClient) -> None:
    page = page_at(client, address("pytorch-151290", OLD.id))
    told = client.get(f"/api/v1/attempts/{page.attempts[0].attempt.id}").json()
    assert told["differs"] is None


def test_the_costs_of_workarounds_are_drawn_from_the_figures_of_the_json(client: TestClient) -> None:
    here = f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}"
    page = page_at(client, here)
    (row,) = page.costs
    (finding,) = [one for one in client.get(f"/api/v1{here}").json()["findings"] if one["cost"]]
    cure, control = finding["cost"]["workaround"], finding["cost"]["control"]
    assert (cure["seconds"], control["seconds"]) == (4.0, 0.5)
    assert cure["seconds_range"] == [4.0, 4.0]
    assert (row["cost"].workaround.attempts, row["cost"].control.attempts) == (cure["attempts"], control["attempts"])
    assert (row["seconds"].x, row["control_seconds"].x) == pytest.approx((97.0, 3 + 94 * 0.5 / 4.0), abs=0.01)
    assert row["seconds"].text == "4.0 s"
    told = list(csv.DictReader(io.StringIO(client.get(costs_address(*page.evidence.cell.key)).text)))
    assert [(one["arm"], float(one["seconds"]), int(one["attempts"])) for one in told] == [
        (finding["id"], 4.0, cure["attempts"]),
        ("control", 0.5, control["attempts"]),
    ]


def test_attempts_stand_along_a_line_of_time(client: TestClient) -> None:
    page = page_at(client, f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}")
    assert page.timeline is not None
    drawn = {moment.address: moment for _, moments in page.timeline["lines"] for moment in moments}
    assert len(drawn) == len(page.attempts)
    times = [row.attempt.finished_at for row in page.attempts]
    assert (page.timeline["first"], page.timeline["last"]) == (min(times), max(times))
    for row in page.attempts:
        moment = drawn[attempt_address(row.attempt.id)]
        share = (row.attempt.finished_at - min(times)) / (max(times) - min(times))
        assert moment.x == pytest.approx(3 + 94 * share, abs=0.01)
        assert moment.sign == OUTCOMES[row.judgement.outcome].label


def test_a_cell_says_what_to_do_before_it_shows_the_log(client: TestClient) -> None:
    text = client.get(f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}?hardware={HARDWARE}").text
    places = [text.index(part) for part in ("<h1>", 'class="lead"', "Workarounds on this build", 'class="telling"')]
    assert places == sorted(places)
