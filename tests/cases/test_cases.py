"""Environments that people posted, one in a folder, asked through the command: what it must say, and never may."""

import tomllib
from pathlib import Path

import pytest

from knowngood.cli.exit_codes import Exit
from knowngood.environments.log_cleaning import read_collected
from knowngood.environments.source import read_source
from tests.commands.given import run_here

CASES = sorted(Path(__file__).parent.glob("*/case.toml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_an_environment_that_somebody_posted_is_answered(path: Path, tmp_path: Path) -> None:
    case = tomllib.loads(path.read_text())
    assert case["source"].startswith("https://")
    assert case["reason"]
    (given,) = (one for one in path.parent.iterdir() if one != path)
    for door in case["question"]:
        asked = [door, *(() if door == "explain" else ("-r",)), str(given)]
        asked += ["--issues", "all"] if door == "gate" else []
        done = run_here(asked, {"KNOWNGOOD_DATA_DIR": str(tmp_path / "none")}, folder=tmp_path)
        said = " ".join((done.stdout + done.stderr).split())
        assert [words for words in case["says"] if words not in said] == []
        assert [words for words in case["never"] if words in said] == []
        if "exit" in case and (door == "gate" or case["exit"] == Exit.INSUFFICIENT):
            assert done.returncode == case["exit"]


def test_several_kinds_of_gpu_are_all_read_and_names_end_at_the_model() -> None:
    text = "PyTorch version: 2.6.0+cu124\nGPU models and configuration: \nGPU 0: NVIDIA H100\nGPU 1: NVIDIA RTX 5090\n"
    assert read_collected(read_source("", text.encode()), "").gpus == ("H100", "RTX 5090")
    prose = "PyTorch version: 2.6.0+cu124 on an NVIDIA GeForce RTX 5090 with CUDA\n"
    assert read_collected(read_source("", prose.encode()), "").gpus == ("RTX 5090",)
