"""A wheel without code for the GPU is blocked, by the list that was read in that very wheel alone."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from knowngood.gate.decision import Decision, Ruling
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.knowledge.snapshot import read_shipped, read_unsigned, write_unsigned

NO_CODE = "this wheel holds no code for sm_120; the first tested build that does is 2.8.0 (CUDA 12.8)"
OPEN = "not known whether this wheel has code for sm_120"
BUILDS = ("torch-2.6.0+cu124", "torch-2.7.1+cu126", "torch-2.8.0+cu128", "torch-2.15.0+cu132")


def asked(knowledge: Knowledge, **question: object) -> Ruling:
    fields = {"issues": ("all",), "hardware": ("RTX 5090",), **question}
    return rule(GateRequest(**fields), knowledge, datetime(2026, 11, 27, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read_shipped().knowledge


def without(knowledge: Knowledge, *torches: str) -> Knowledge:
    wheels = {torch: one for torch, one in knowledge.known.wheels.items() if torch not in torches}
    return replace(knowledge, known=replace(knowledge.known, wheels=wheels))


@pytest.mark.parametrize(("build", "is_served"), list(zip(BUILDS, (False, False, True, True), strict=True)))
def test_a_wheel_without_code_for_the_gpu_is_blocked(knowledge: Knowledge, build: str, *, is_served: bool) -> None:
    ruling = asked(knowledge, build=build)
    assert [one.why for one in ruling.refusals] == ([] if is_served else [NO_CODE])
    assert is_served or (ruling.decision, ruling.why) == (Decision.BLOCK, NO_CODE)
    assert {reason.hardware for reason in ruling.reasons} == {"cuda-sm_120"}


def test_without_a_list_nothing_is_refused_and_that_is_said(knowledge: Knowledge) -> None:
    ruling = asked(without(knowledge, "2.6.0+cu124"), build="torch-2.6.0+cu124")
    assert (ruling.refusals, OPEN in ruling.notes) == ((), True)
    assert OPEN in asked(knowledge, build="torch-2.7.1+cu128").notes


@pytest.mark.parametrize("build", BUILDS[:2])
def test_the_list_of_another_wheel_changes_no_answer(knowledge: Knowledge, build: str) -> None:
    own = knowledge.known.builds[build].torch
    others = [one for one in knowledge.known.wheels if one not in {own, "2.8.0+cu128"}]
    assert asked(without(knowledge, *others), build=build) == asked(knowledge, build=build)


def test_what_the_cpu_says_reaches_no_gpu_without_code(knowledge: Knowledge) -> None:
    ruling = asked(knowledge, build="torch-2.6.0+cu124")
    assert not [reason.issue for reason in ruling.reasons if reason.grounds]


def test_the_gpus_that_an_environment_names_are_asked_about(knowledge: Knowledge) -> None:
    text = "PyTorch version: 2.6.0+cu124\nPython version: 3.11.9\nGPU 0: NVIDIA H100\nGPU 1: NVIDIA RTX 5090\n"
    ruling = asked(knowledge, hardware=(), environment=AttachedFile(text))
    assert ruling.hardware == ("cuda-sm_120", "cuda-sm_90")
    assert ruling.why.startswith(NO_CODE)
    assert any("several kinds of GPU" in note for note in ruling.notes)


def test_lists_travel_in_a_snapshot_and_an_older_one_has_none(knowledge: Knowledge) -> None:
    assert read_unsigned(write_unsigned(knowledge)).knowledge.known.wheels == knowledge.known.wheels
    assert not read_unsigned(write_unsigned(without(knowledge, *knowledge.known.wheels))).knowledge.known.wheels
