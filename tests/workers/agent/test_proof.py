"""Ways to pass without having taken the suspect path: each is seen through, with the toy torch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.issue import BASELINE, CONTROL, Issue, Variant, default_device
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import english
from knowngood.domain.verdicts.outcome import (
    Ending,
    Judgement,
    Outcome,
    ProofLevel,
    RunRecord,
    TroubleCode,
    classify,
)
from knowngood_workers.agent.arm_runner import ForkServer, Limits, RunLocation, execute, scratch_folder
from tests.workers.toy_environment import make_toy_python

TOYS = Path(__file__).parents[2] / "mini_repros"
CATALOGUE = read_catalogue([TOYS, TOYS.with_name("gpu_repros")])
TRICKS, ANY = (next(one for one in CATALOGUE.issues if one.id == id_) for id_ in ("toy-tricks-1", "toy-any-device-1"))
GPU = "cuda-sm_90"
BUILD = next(build for build in CATALOGUE.builds if build.torch == "0.0.2+mini")

SAID = {
    "honest": "passed; path proven (dynamo_graph 1x; by eager)",
    "decoy": "nothing shows that _suspect ran compiled (seen: _helper)",
    "swallowed": "nothing shows that _suspect ran compiled; compiling it failed",
    "suppressed": "nothing shows that _suspect ran compiled; compiling it failed",
    "counter": "nothing shows that _suspect ran compiled",
    "forged": "lines that the harness did not write",
    "forged-end": "lines that the harness did not write",
    "raising": "nothing shows that _suspect ran compiled",
    "namesake": "nothing shows that _suspect ran compiled (seen: _namesake.<locals>._suspect)",
    "renamed": "nothing shows that _suspect ran compiled (seen: _helper)",
    "unwrapped": "nothing shows that _suspect ran compiled",
    "in-child": "nothing shows that _suspect ran compiled",
    "in-thread": "nothing shows that _suspect ran compiled",
    "quietly": "nothing shows that _suspect ran compiled",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> RunLocation:
    python = make_toy_python(tmp_path_factory.mktemp("toy"), "torch==0.0.2", "numpy", "mini_extra", "triton")
    return RunLocation(python, (), Limits(memory_bytes=300 << 20, grace_s=0.3))


@pytest.fixture(scope="module")
def fork_server(place: RunLocation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with scratch_folder(tmp_path_factory.mktemp("fork-server")) as folder, ForkServer(place, folder) as process:
        yield process


def attempted(  # noqa: PLR0913 - an attempt's key, and where it is made
    variant: Variant,
    place: RunLocation,
    source: ForkServer | None,
    folder: Path,
    issue: Issue = TRICKS,
    id_: str = BASELINE,
    hardware: str = CPU_CLASS,
) -> RunRecord:
    arm, device = issue.arm(id_), default_device(issue, hardware)
    spec = ArmSpec("a", issue.id, id_, variant.id, 1, "b", "s", variant.params, {}, arm.exercises, 20.0, device)
    with scratch_folder(folder / "scratch") as scratch:
        done = execute(spec, issue.script, place=place, scratch=scratch, fork_server=source, is_cancelled=lambda: False)
    return done.record


def judged(record: RunRecord) -> Judgement:
    return classify(record, TRICKS, BASELINE, BUILD, "")


ON_GPU = {
    "honours": (Outcome.PASS, Outcome.PASS),
    "ignores": (Outcome.PASS, Outcome.HARNESS_ERROR),
    "fails": (Outcome.MATCH, Outcome.MATCH),
    "fails-ignoring": (Outcome.MATCH, Outcome.HARNESS_ERROR),
    "given-up": (Outcome.MATCH, Outcome.MATCH),
}


@pytest.mark.parametrize("variant", ANY.variants, ids=lambda variant: str(variant.id))
def test_on_a_gpu_only_what_a_cuda_tensor_entered_counts(
    variant: Variant, place: RunLocation, fork_server: ForkServer, tmp_path: Path
) -> None:
    for hardware, outcome in zip((CPU_CLASS, GPU), ON_GPU[variant.id], strict=True):
        record = attempted(variant, place, fork_server, tmp_path / hardware, ANY, BASELINE, hardware)
        found = classify(record, ANY, BASELINE, BUILD, "", hardware=hardware)
        assert found.outcome is outcome, found.reason
        if outcome is Outcome.HARNESS_ERROR:
            assert english(found.reason) == (
                "no CUDA tensor was seen to enter _suspect: what ran on the CPU says nothing of this GPU"
            )
        assert any(path.on_cuda for path in record.seen) is (hardware == GPU and "ignor" not in variant.id)


def test_the_control_runs_on_the_default_device_too(place: RunLocation, tmp_path: Path) -> None:
    plain = Variant("default", "")
    on_gpu = attempted(plain, place, None, tmp_path / "gpu", ANY, CONTROL, GPU)
    assert [(path.kind, path.on_cuda) for path in on_gpu.seen] == [("eager", 1)]
    assert classify(on_gpu, ANY, CONTROL, BUILD, "", hardware=GPU).outcome is Outcome.PASS
    on_cpu = attempted(plain, place, None, tmp_path / "cpu", ANY, CONTROL)
    assert on_cpu.seen == ()
    found = classify(on_cpu, ANY, CONTROL, BUILD, "", hardware=GPU)
    assert english(found.reason).startswith("no CUDA tensor was seen to enter the control:")


@pytest.mark.parametrize("variant", TRICKS.variants, ids=lambda variant: str(variant.id))
def test_what_did_not_run_compiled_proves_nothing(
    variant: Variant, place: RunLocation, fork_server: ForkServer, tmp_path: Path
) -> None:
    record = attempted(variant, place, fork_server, tmp_path)
    found = judged(record)
    assert found.outcome is (Outcome.PASS if variant.id == "honest" else Outcome.HARNESS_ERROR), found.reason
    assert SAID[variant.id] in english(found.reason)
    assert record.proof is ProofLevel.CALL


def test_a_fresh_arm_is_given_its_nonce_too(place: RunLocation, tmp_path: Path) -> None:
    honest, forged = (next(one for one in TRICKS.variants if one.id == id_) for id_ in ("honest", "forged-end"))
    assert judged(attempted(honest, place, None, tmp_path)).outcome is Outcome.PASS
    record = attempted(forged, place, None, tmp_path)
    assert record.ending is Ending.EXITED
    assert record.trouble is not None
    assert record.trouble.code is TroubleCode.HARNESS
