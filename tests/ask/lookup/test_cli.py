"""`issue`, `find` and `env` as commands without any store, and every asking command over a snapshot file."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from knowngood.catalogue.script_analysis import STANDALONE
from knowngood.cli.encoding import SCREEN
from knowngood.store.knowledge.signed_snapshot import make_key, public_key, write_snapshot
from knowngood.store.knowledge.snapshot import read_shipped
from tests.commands.given import run_here

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT, BAD = Path(__file__).parents[3], "torch-2.7.1+cu126"


@pytest.fixture
def ask(tmp_path: Path) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nobody"), "CUDA_VISIBLE_DEVICES": ""}
        return run_here(arguments, environment, folder=ROOT)

    return run


def test_an_issue_is_told_for_the_environment_of_a_project(ask: Run, tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(f'[project]\nname = "x"\nrequires-python = "==3.12.*"\ndependencies = ["torch=={BAD[6:]}"]\n')
    told = ask("issue", "pytorch/pytorch#151290", "-r", str(project))
    assert told.returncode == 0, told.stderr
    assert "CPU, CPU avx2, CPU avx512: fails in 2.7.0 to 2.7.1, fixed in " in told.stdout
    first = " ".join(told.stdout.split("\n\n")[0].split())
    assert first.endswith(" on torch 2.7.1 (CUDA 12.6, Python 3.12); fixed in torch 2.8.0.")
    assert "workaround that works here (" in told.stdout
    assert 'torch.compile(create_block_mask, backend="aot_eager")' in told.stdout


def test_of_an_issue_programs_get_the_issue_of_the_api_and_the_gates_answer(ask: Run) -> None:
    told = json.loads(ask("issue", "151290", "--build", BAD, "--json").stdout)
    assert (told["id"], told["is_example"], told["here"]["build"]) == ("pytorch-151290", False, BAD)
    assert told["history"][0]["sentence"] == "fails in 2.7.0 to 2.7.1, fixed in 2.8.0"
    assert told["links"][0]["state"] == "closed"
    assert [one["issue"] for one in told["here"]["reasons"]] == ["pytorch-151290"]
    assert any(one["verdict"] == "effective" and one["snippet"] for one in told["here"]["reasons"][0]["workarounds"])


def test_the_script_of_an_issue_is_one_file_that_needs_nothing_else(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ask("issue", "151290", "--script").stdout)
    done = subprocess.run([sys.executable, tmp_path / "mine.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No module named 'torch'" in done.stderr
    assert (tmp_path / "mine.py").read_text().endswith(STANDALONE.read_text())


def test_a_search_is_that_of_the_matrix(ask: Run) -> None:
    found = {one["id"] for one in json.loads(ask("find", "stride", "status:affected", "--json").stdout)["issues"]}
    shown = json.loads(ask("matrix", "--query", "stride status:affected", "--json").stdout)["issues"]
    assert found
    assert found == {one["id"] for one in shown}
    assert "nothing here is about" in ask("find", "zzzqqq").stdout


@pytest.mark.parametrize("query", ["exists(build:2.7 status:flaky)", "exists(..)", "status:affected (stride"])
def test_a_query_that_cannot_be_read_is_refused_beside_what_its_words_find(ask: Run, query: str) -> None:
    told, as_json = ask("find", query), ask("find", query, "--json")
    assert (told.returncode, as_json.returncode) == (2, 2), told.stderr
    assert told.stdout.startswith("This is no query that can be read: column ")
    assert json.loads(as_json.stdout)["search"]["note"].startswith("This is no query that can be read: column ")


def test_an_environment_is_told_in_words_and_in_json(ask: Run) -> None:
    told = json.loads(ask("env", "--build", f"{BAD}~py312", "--hardware", "cpu-x86_64", "--json").stdout)
    assert (told["build"], told["pythons"], told["hardware"]) == (f"{BAD}~py312", ["3.12"], ["cpu-x86_64"])
    assert told["reasons"][0]["severity"] == "high"
    here = ask("env")
    assert here.returncode == 3
    assert "What fails here is not known: no tested build is this environment." in here.stdout


@pytest.mark.system
def test_of_several_files_each_has_a_line_the_worst_first_and_the_worst_says_how_it_ends(
    ask: Run, tmp_path: Path
) -> None:
    files = {
        "fine.txt": "torch==2.8.0+cu128\n",
        "bad.txt": "torch==2.5.1+cu124\n",
        "pair.txt": "torch==2.7.1+cu126\ntorchvision==0.21.0\n",
        "vendor.txt": "torch==2.5.0a0+e000000000.nv24.10\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    on = ("--hardware", "cpu-x86_64", "--python", "3.11")
    done = ask("env", *paths, *on)
    assert done.returncode == 3, done.stderr
    order = [Path(line.split("   ")[0].strip()).name for line in done.stdout.splitlines()[:4]]
    assert order == ["pair.txt", "vendor.txt", "bad.txt", "fine.txt"]
    assert "torchvision 0.21.0 does not work here" in done.stdout
    assert all(
        len(line) == len(" ".join(line.split(" "))) and line == line.rstrip() for line in done.stdout.splitlines()
    )
    told, alone = (json.loads(ask("env", *given, *on, "--json").stdout) for given in (paths, paths[:1]))
    assert [Path(row["file"]).name for row in told] == order
    for answer in (alone, told[3]):  # a result may become a day older between the two
        answer["reasons"] = [{**one, "age_days": 0} for one in answer["reasons"]]
    assert alone.items() <= told[3].items()
    assert told[3]["counts"]["failing"] == int(re.findall(r"(\d+) ✕", done.stdout)[-1])
    assert ask("env", paths[0], paths[1], *on).returncode == 0
    broken = ask("env", paths[0], str(tmp_path / "nowhere.txt"), *on)
    assert (broken.returncode, "nowhere.txt cannot be read" in broken.stdout.splitlines()[0]) == (2, True)
    assert "2.8.0" in broken.stdout, "the others are answered all the same"


def test_what_a_requirements_file_includes_is_read_with_it(ask: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# all\n-r sub/base.txt\n--requirement=gone.txt\ntorch==2.6.0\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.txt").write_text("torchvision==0.20.1\n-r ../requirements.txt\n-r more.in\n")
    (tmp_path / "sub" / "more.in").write_text("einops==0.8.1\n")
    told = json.loads(ask("env", str(tmp_path / "requirements.txt"), "--json").stdout)
    assert told["packages"] == {"einops": "0.8.1", "torchvision": "0.20.1"}
    assert any("not read, and what they ask for is not known: gone.txt" in note for note in told["notes"])
    gate = ask("gate", "-r", str(tmp_path / "requirements.txt"), "--issues", "151290", "--format", "json")
    assert (gate.returncode, json.loads(gate.stdout)["line"]) == (1, 4)
    assert "torchvision 0.20.1 asks for torch==2.5.1" in gate.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("env", "a.txt", "--build", BAD), 2, "files and --build, -r, --lock or --here exclude each other"),
        (("issue", "pytorch-15129"), 2, 'no issue is called "pytorch-15129" here; nearest: pytorch-151290'),
        (("issue", "151290", "--build", BAD, "--here"), 2, "--build and --here exclude each other"),
        (("issue", "151290", "-r", "nowhere.txt"), 2, "nowhere.txt cannot be read"),
        (("issue", "151290", "--build", "2.5.9"), 3, ""),
        (("find", "satus:affected"), 2, 'the words: column 1: there is no field "satus" (did you mean "status"?)'),
        (("env", "--build", BAD, "--groups", "dev"), 2, "groups: names extras and groups of a file"),
        (("upgrade", "--from", "2.5.1", "--groups", "dev"), 2, "--groups names extras and groups of a file"),
        (("env", "--snapshot", "nowhere", "--unsigned"), 4, "the snapshot nowhere cannot be read"),
        (("matrix", "151290", "--issues", "xla-8464"), 2, 'name the issue once: "151290" or --issues'),
    ],
)
def test_wrong_input_says_what_to_do(ask: Run, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = ask(*arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The file, which knows one issue alone, and the key that signed it."""
    found, private = read_shipped().knowledge, make_key()
    keep = "pytorch-151290"
    known = found.known
    less = type(known)(
        {keep: known.issues[keep]},
        known.builds,
        {place: known.cells[place] for place in known.cells if place[0] == keep},
        ("cpu-x86_64",),
        datetime(2026, 1, 2, tzinfo=UTC),
    )
    path = tmp_path_factory.mktemp("snapshot") / "known.snapshot"
    path.write_bytes(write_snapshot(type(found)(less, frozenset(place[1] for place in less.cells)), private))
    return str(path), public_key(private)


ASKED = {
    "issue 151290": 0,
    "find .. --json": 0,
    f"env --build {BAD}": 0,
    "compare 2.6.0 2.7.1": 0,
    "upgrade --from 2.7.1": 0,
    f"explain {__file__}": 3,
    "matrix": 0,
    "matrix 151290": 0,
}


@pytest.mark.parametrize("question", ASKED)
def test_a_snapshot_answers_alone_and_says_so(ask: Run, question: str, snapshot: tuple[str, str]) -> None:
    file, key = snapshot
    done = ask(*question.replace("..", "torch").split(), "--snapshot", file, "--public-key", key)
    assert done.returncode == ASKED[question], done.stderr
    assert f"answered from {file}, a snapshot of 2026-01-02, " in done.stderr
    assert "was not checked" not in done.stderr
    assert "xla-8464" not in done.stdout


def test_a_snapshot_of_somebody_else_is_not_believed(ask: Run, snapshot: tuple[str, str]) -> None:
    file, _ = snapshot
    done = ask("issue", "151290", "--snapshot", file, "--public-key", public_key(make_key()))
    assert (done.returncode, done.stdout) == (4, "")
    assert "which is none of the keys given" in done.stderr
    unchecked = ask("issue", "151290", "--snapshot", file, "--unsigned")
    assert (unchecked.returncode, "was not checked against a key that you know" in unchecked.stderr) == (0, True)


# -- the table of the matrix -------------------------------------------------------------------------------------------


def test_in_a_pipe_the_matrix_is_a_line_per_issue_with_the_newest_builds(ask: Run) -> None:
    short = ask("matrix", "--hardware", "CPU").stdout.splitlines()
    assert (len(short) <= SCREEN, "more issues: --all" in "".join(short)) == (True, True)
    assert re.match(r"\d+ of \d+ issues fail on torch 2\.15\.0 \(CUDA 13\.2\), CPU; \d+ pass, \d+ neither$", short[0])
    lines = ask("matrix", "--hardware", "cpu-x86_64", "--all").stdout.splitlines()
    known = read_shipped().knowledge.known
    assert len(lines) < len(known.issues) + 12
    newest = max((known.builds[build] for _, build, _ in known.cells), key=lambda build: build.build_id)
    assert newest.id.removeprefix("torch-").partition("+")[0] in lines[1]
    assert any("older builds (" in line and "are left out; --builds names others" in line for line in lines)


def test_of_one_issue_the_matrix_tells_each_cell_with_its_reason(ask: Run) -> None:
    short = ask("matrix", "151290").stdout
    assert short.startswith("pytorch-151290 on CPU: fails in 2.7.0 to 2.7.1, fixed in 2.8.0")
    assert "  2.7.1+cu126   ✓✕  passes as reported, fails in a variant\n" in short
    assert len(short.splitlines()) <= SCREEN
    told = ask("matrix", "151290", "--all").stdout
    assert "  2.7.1+cu126   ✓✕  passes as reported, fails in a variant: on avx2, avx512: " in told
    assert told.index("2.15.0+cu132") < told.index("2.7.1+cu126")
    assert told.endswith("What helps: knowngood issue pytorch-151290\n")
