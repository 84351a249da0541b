from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import EnvironmentRequest, Issue, Packages, Requires, Variant, digest
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmSpec,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobSpec,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.verdicts.outcome import Outcome, RunRecord
from knowngood.serialization import codec
from tests.make import NOON, make_build, make_issue, make_record

MACHINE = Machine("EPYC", "avx2", 2, 8, "Debian 12", "6.1", "2.36", "g++", gpus=(Gpu(0, "H100", (9, 0), 80),))
EVENTS: list[Event] = [
    JobStarted("j", 1, MACHINE),
    Provisioning("j", 1, "sync", "torch", 1, 2),
    EnvironmentReady("j", 1, "lock", "d" * 32, {"torch": "2.6.0"}, {"torch": "2.6.0+cu124"}, 0.5, reused=True),
    ArmStarted("j", 1, "a", NOON),
    *(
        ArmFinished("j", 1, "a", make_record(outcome), "log\n\x00ü", "", MACHINE.digest, NOON, NOON)
        for outcome in Outcome
    ),
    JobEnded("j", 1, "cancelled"),
]


@pytest.mark.parametrize("event", EVENTS, ids=[f"{type(event).__name__}-{n}" for n, event in enumerate(EVENTS)])
def test_an_event_is_one_line_and_comes_back_as_it_was(event: Event) -> None:
    line = codec.dump_event(event)
    assert b"\n" not in line
    assert orjson.loads(line)["type"] == codec.event_type(event)
    assert codec.load_event(line) == event
    assert codec.load_event(line.decode() + "\n") == event


def test_a_specification_comes_back_as_it_was() -> None:
    arm = ArmSpec(
        "a", "toy-1", "baseline", "small", 1, "b", "s", {"size": 8, "x": 0.5, "y": True}, {"A": "1"}, ("eager",), 60.0
    )
    request = EnvironmentRequest("torch-2.6.0", ("numpy==2.0",), (), mutates=False)
    spec = JobSpec("j", 2, make_build(), "cpu-x86_64", request, {"s": "import torch\n"}, (arm,))
    data = codec.dump_spec(spec)
    assert codec.load_spec(data) == spec
    assert codec.load_spec(orjson.loads(data)) == spec


@pytest.mark.parametrize("outcome", Outcome)
def test_a_record_comes_back_as_it_was(outcome: Outcome) -> None:
    record = make_record(outcome)
    assert codec.RECORD.validate_json(codec.dump_record(record)) == record


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_any_figure_survives_the_wire(text: str, seconds: float) -> None:
    record = RunRecord(**{**vars(make_record()), "observed": {text: text}, "wall_s": seconds})
    assert codec.RECORD.validate_json(codec.dump_record(record)) == record


def test_an_issue_keeps_its_revision_and_a_machine_its_digest() -> None:
    issue: Issue = make_issue(
        packages=Packages(("a",), {"2.7": ("b",)}),
        requires=Requires(compute_capability=(9, 0)),
        variants=(Variant("small", "", {"size": 8, "ratio": 1.0}),),
    )
    assert codec.ISSUE.validate_json(codec.ISSUE.dump_json(issue)).revision == issue.revision
    assert codec.MACHINE.validate_json(codec.MACHINE.dump_json(MACHINE)).digest == MACHINE.digest
    build: Build = make_build()
    assert codec.BUILD.validate_json(codec.BUILD.dump_json(build)) == build


def test_what_a_newer_agent_adds_is_passed_over() -> None:
    line = orjson.dumps({**orjson.loads(codec.dump_event(EVENTS[-1])), "mood": "good"})
    assert codec.load_event(line) == EVENTS[-1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param(b"Segmentation fault", "an event is one line of JSON; this is not: Segmentation fault", id="text"),
        pytest.param(b"", "this is not: an empty line", id="nothing"),
        pytest.param(b'{"job": "j"}', "an event names its type", id="no type"),
        pytest.param(b'{"type": "party"}', "an event names its type", id="another type"),
        pytest.param(b"[1]", "an event names its type", id="a list"),
        pytest.param(b'{"type": "job_ended", "job": "j"}', "this is no job_ended: try_no: Field required", id="a gap"),
    ],
)
def test_a_line_that_is_no_event_is_refused_with_a_sentence(line: bytes, sentence: str) -> None:
    with pytest.raises(codec.BadLine, match=sentence):
        codec.load_event(line)


def test_a_specification_that_is_none_is_refused_with_a_sentence() -> None:
    with pytest.raises(codec.BadLine, match="this is no job specification: job: Field required"):
        codec.load_spec(b"{}")


def test_unequal_events_stay_unequal() -> None:
    assert codec.load_event(codec.dump_event(replace(JobEnded("j", 1), problem="x"))) != JobEnded("j", 1)
    assert digest("a") != digest("b")
