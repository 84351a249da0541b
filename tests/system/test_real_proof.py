"""What shows that the suspect ran compiled, on a real torch build; the same tricks as in tests/workers/agent."""

from typing import Any

import pytest

from tests.system.real_builds import MARKS, NEW, OLD, ROOT, data_folder, run

pytestmark = MARKS

TOYS = {"KNOWNGOOD_CATALOGUE": str(ROOT / "tests" / "mini_repros")}


@pytest.fixture(scope="module")
def measured() -> Any:
    with data_folder() as data:
        answer = run(data, "--builds", f"{OLD},{NEW}", "--issues", "toy-tricks-1,pytorch-105264", **TOYS)
    return {(cell["issue"], cell["build"]): cell for cell in answer["cells"] if cell["hardware"] == "cpu-x86_64"}


@pytest.mark.parametrize("build", [OLD, NEW])
def test_only_the_honest_variant_passes(measured: Any, build: str) -> None:
    cell = measured["toy-tricks-1", build]
    assert (cell["verdict"], cell["attempts"]) == ("inconclusive", {"pass": 1, "harness_error": 11})


def test_a_row_that_names_its_suspect_has_proof_of_the_call(measured: Any) -> None:
    cell = measured["pytorch-105264", NEW]
    assert (cell["verdict"], cell["proof"]) == ("not_affected", "call")
