"""`knowngood recheck` on toys, by the real command and in real processes: one keeps its word, one does not."""

import json
from pathlib import Path

import pytest

from tests.given_toys import Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

BUILD = "torch-0.0.1+mini"


@pytest.fixture(scope="module")
def installation(installation: Installation) -> Installation:
    issues = "toy-passes-1,toy-variants-1,toy-flaky-1,toy-control-fails-1"
    done = installation.command("run", "--builds", BUILD, "--issues", issues)
    assert done.returncode == 0, done.stderr
    return installation


def test_what_is_drawn_can_be_priced_before_it_is_asked(installation: Installation) -> None:
    told = installation.command("recheck", "--cells", "2", "--seed", "a", "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "2 cells drawn with --seed a" in told.stderr
    assert "there already: 1 of 1 environment" in told.stdout
    price = installation.answer("recheck", "--cells", "2", "--seed", "a", "--dry-run", "--json")
    assert (price["cells"], price["ready"], price["guessed"], price["fit"]) == (2, 1, 0, "fits")


def test_cells_that_keep_their_word_are_counted_and_end_in_nothing(installation: Installation) -> None:
    told = installation.command("recheck", "--issues", "toy-passes-1,toy-variants-1", "--seed", "a", "--json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert (answer["seed"], answer["cells"], answer["stayed"]) == ("a", 2, 2)
    assert (answer["changed"], answer["no_answer"], answer["interval"][0]) == ([], [], 0.0)


def test_a_verdict_that_changed_is_named_and_ends_in_one(installation: Installation) -> None:
    told = installation.command("recheck", "--issues", "toy-flaky-1", "--seed", "a")
    assert told.returncode == 1, told.stderr
    assert f"toy-flaky-1 {BUILD} cpu-x86_64: affected -> not_affected" in told.stdout
    assert "0 stayed, 1 changed, 0 gave no answer (--seed a)" in told.stdout


def test_what_has_no_steady_answer_is_not_asked_again(installation: Installation, tmp_path: Path) -> None:
    told = installation.command("recheck", "--issues", "toy-control-fails-1")
    assert told.returncode == 3, told.stderr
    assert "0 stayed, 0 changed, 0 gave no answer" in told.stdout
