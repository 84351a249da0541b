"""The whole way on real torch builds from the package index. Machines that lack something: test_real_machines.py."""

from pathlib import Path
from typing import Any

import pytest

from tests.system.real_builds import MARKS, NEW, OLD, ROOT, data_folder, run

pytestmark = MARKS

TOYS = {"KNOWNGOOD_CATALOGUE": str(ROOT / "tests" / "mini_repros")}


def cells_of(builds: str, issues: str, data: Path, **more: str) -> dict[tuple[str, str], Any]:
    answer = run(data, "--builds", builds, "--issues", issues, **more)
    return {(cell["issue"], cell["build"]): cell for cell in answer["cells"] if cell["hardware"] == "cpu-x86_64"}


@pytest.fixture(scope="module")
def measured() -> Any:
    with data_folder() as data:
        on_both = cells_of(f"{OLD},{NEW}", "xla-8464,toy-tricks-1", data, **TOYS)
        return on_both | cells_of(NEW, "pytorch-105264", data)


def test_a_bug_that_was_fixed_between_two_releases_is_seen_on_one_and_gone_on_the_other(measured: Any) -> None:
    before, after = measured["xla-8464", OLD], measured["xla-8464", NEW]
    assert (before["verdict"], after["verdict"]) == ("affected", "not_affected")
    assert "called on deleted or donated buffer" in before["signature_line"]


def test_workarounds_are_told_apart_from_tempting_ideas(measured: Any) -> None:
    found = measured["xla-8464", OLD]["workarounds"]
    assert (found["no_aliasing"], found["out_of_place"]) == ("effective", "effective")
    assert found["clone"] == "ineffective"


@pytest.mark.parametrize("build", [OLD, NEW])
def test_of_what_may_pass_for_a_compiled_suspect_only_the_honest_variant_passes(measured: Any, build: str) -> None:
    """The same tricks as in tests/workers/agent."""
    cell = measured["toy-tricks-1", build]
    assert (cell["verdict"], cell["attempts"]) == ("inconclusive", {"pass": 1, "harness_error": 13})


def test_a_row_that_names_its_suspect_has_proof_of_the_call(measured: Any) -> None:
    cell = measured["pytorch-105264", NEW]
    assert (cell["verdict"], cell["proof"]) == ("not_affected", "call")


@pytest.mark.soak
def test_an_operator_that_ignores_strides_is_wrong_on_every_torch() -> None:
    """It builds a C++ extension in every arm: a minute and a half of processor for each build."""
    with data_folder() as data:
        cells = cells_of(f"{OLD},{NEW}", "deepmd-kit-3910", data)
    assert {build: cells["deepmd-kit-3910", build]["verdict"] for build in (OLD, NEW)} == dict.fromkeys(
        (OLD, NEW), "affected"
    )
    assert {cells["deepmd-kit-3910", build]["workarounds"]["caller_contiguous"] for build in (OLD, NEW)} == {
        "effective"
    }
