"""Ways to pass without having taken the suspect path: each is seen through, with the toy torch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knowngood.app.catalogue.loader import read_catalogue
from knowngood.app.domain.issue import BASELINE, Variant
from knowngood.app.domain.measuring.job import ArmSpec
from knowngood.app.domain.verdicts.outcome import (
    Ending,
    Judgement,
    Outcome,
    ProofLevel,
    RunRecord,
    TroubleCode,
    classify,
)
from knowngood.workers.agent.arm_runner import ForkServer, Limits, RunLocation, execute, scratch_folder
from tests.workers.toy_environment import make_toy_python

TOYS = Path(__file__).parents[2] / "mini_repros"
CATALOGUE = read_catalogue([TOYS])
TRICKS = next(issue for issue in CATALOGUE.issues if issue.id == "toy-tricks-1")
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


def attempted(variant: Variant, place: RunLocation, source: ForkServer | None, folder: Path) -> RunRecord:
    arm = TRICKS.arm(BASELINE)
    spec = ArmSpec("a", TRICKS.id, arm.id, variant.id, 1, "b", "s", variant.params, {}, arm.exercises, 20.0)
    with scratch_folder(folder / "scratch") as scratch:
        done = execute(
            spec, TRICKS.script, place=place, scratch=scratch, fork_server=source, is_cancelled=lambda: False
        )
    return done.record


def judged(record: RunRecord) -> Judgement:
    return classify(record, TRICKS, BASELINE, BUILD, "")


@pytest.mark.parametrize("variant", TRICKS.variants, ids=lambda variant: str(variant.id))
def test_what_did_not_run_compiled_proves_nothing(
    variant: Variant, place: RunLocation, fork_server: ForkServer, tmp_path: Path
) -> None:
    record = attempted(variant, place, fork_server, tmp_path)
    found = judged(record)
    assert found.outcome is (Outcome.PASS if variant.id == "honest" else Outcome.HARNESS_ERROR), found.reason
    assert SAID[variant.id] in found.reason
    assert record.proof is ProofLevel.CALL


def test_a_fresh_arm_is_given_its_nonce_too(place: RunLocation, tmp_path: Path) -> None:
    honest, forged = (next(one for one in TRICKS.variants if one.id == id_) for id_ in ("honest", "forged-end"))
    assert judged(attempted(honest, place, None, tmp_path)).outcome is Outcome.PASS
    record = attempted(forged, place, None, tmp_path)
    assert record.ending is Ending.EXITED
    assert record.trouble is not None
    assert record.trouble.code is TroubleCode.HARNESS
