"""`knowngood try` as people run it: real processes, toy builds."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from knowngood.domain.issue import digest
from tests.commands.given import run_here
from tests.given_toys import Installation, make_installation
from tests.waiting import eventually

BOTH = ("--builds", "0.0.1,0.0.2")
FAILING = """\
import os, sys, torch.version
import torch
print("from", os.path.basename(sys.argv[0]), __name__)
if torch.version.IS_AFFECTED:
    raise RuntimeError("the toy is broken at size 3")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Installation:
    return make_installation(tmp_path_factory.mktemp("home"), wheels)


@pytest.fixture
def bug(tmp_path: Path) -> Path:
    path = tmp_path / "bug.py"
    path.write_text(FAILING, encoding="utf-8")
    return path


@pytest.mark.system
def test_a_script_is_run_as_python_runs_it_and_the_answer_is_the_first_line(home: Installation, bug: Path) -> None:
    told = home.command("try", str(bug), *BOTH)
    assert told.returncode == 0, told.stderr
    assert told.stderr.index("time:  ") < told.stderr.index("on disk")
    first, broken, sound, *_, revisions, place = told.stdout.splitlines()
    assert first.startswith("Fails on torch 0.0.1, runs on 0.0.2; stops failing on 0.0.2 (0.0.1 fails)")
    assert broken.split(maxsplit=5) == ["0.0.1", "fails", "3", "of", "3", broken.split(maxsplit=5)[5]]
    assert broken.endswith("exit 1     RuntimeError: the toy is broken at size 3")
    assert sound.endswith("exit 0     from bug.py __main__")
    assert revisions.startswith("revision of pytorch/pytorch: 0.0.1 is ")
    assert "bug.py on cpu-x86_64, Python 3.11" in place
    assert "isolation network" in place


@pytest.mark.system
def test_what_was_run_is_not_run_again(home: Installation, bug: Path) -> None:
    before = home.answer("try", str(bug), *BOTH, "--json")
    again = home.command("try", str(bug), *BOTH, "--json")
    assert "nothing to run" in again.stderr
    assert json.loads(again.stdout) == before
    alone = ("try", str(bug), "--builds", "0.0.2", "--json")
    assert home.answer(*alone) != home.answer(*alone, "--force")
    bug.write_text(f"{FAILING}# another text\n", encoding="utf-8")
    assert "nothing to run" not in home.command("try", str(bug), *BOTH, "--dry-run").stdout


@pytest.mark.system
def test_what_comes_and_goes_is_run_until_it_is_told_how_often(home: Installation, tmp_path: Path) -> None:
    counter, bug = Path("/dev/shm") / f"try-{digest(str(tmp_path))}", tmp_path / "bug.py"  # noqa: S108 - what all runs see
    bug.write_text(
        f"""import os, sys, torch.version
if torch.version.IS_AFFECTED:
    file = os.open({str(counter)!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(file, b"x")
    sys.exit(0 if os.lseek(file, 0, os.SEEK_CUR) % 2 else "sometimes")
""",
        encoding="utf-8",
    )
    try:
        told = home.answer("try", str(bug), *BOTH, "--json")
        assert told["answer"] == "Runs on torch 0.0.1 and 0.0.2", "one run each, and they agree"
        os.truncate(counter, 1)
        told = home.answer("try", str(bug), *BOTH, "--json", "--force")
        assert told["answer"].startswith("Comes and goes on torch 0.0.1 (fails in 5 of 10), runs on 0.0.2")
    finally:
        counter.unlink(missing_ok=True)


@pytest.mark.system
def test_ways_to_end_other_than_an_exception(home: Installation, tmp_path: Path) -> None:
    for name, text, how, line in (
        ("killed.py", "import os; os.kill(os.getpid(), 11)", "SIGSEGV", "Fatal Python error"),
        ("left.py", "import os; print('gone', flush=True); os._exit(3)", "exit 3", "gone"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        told = home.answer("try", str(tmp_path / name), "--builds", "0.0.2", "--timeout", "4", "--json")
        (build,) = told["builds"]
        assert (build["result"], len(build["runs"])) == ("fails", 1)
        assert how in home.command("try", str(tmp_path / name), "--builds", "0.0.2", "--timeout", "4").stdout
        assert line in build["runs"][0]["output"]
    (tmp_path / "hangs.py").write_text("import time; time.sleep(60)", encoding="utf-8")
    told = home.command("try", str(tmp_path / "hangs.py"), "--builds", "0.0.2", "--timeout", "4")
    assert "timed out" in told.stdout, "as a result, or as the reason why a busy machine has none"


@pytest.mark.system
def test_a_time_limit_is_a_failure_unless_others_used_the_machine(home: Installation, tmp_path: Path) -> None:
    """These tests themselves may be those others."""
    (tmp_path / "hangs.py").write_text("import time; print('on it', flush=True); time.sleep(60)", encoding="utf-8")
    done = home.command("try", str(tmp_path / "hangs.py"), "--builds", "0.0.2", "--timeout", "4", "--json")
    (build,) = json.loads(done.stdout)["builds"]
    if done.returncode == 0:
        assert (build["result"], "on it" in build["runs"][0]["output"]) == ("fails", True)
    else:
        assert (done.returncode, build["runs"]) == (4, [])
        assert "processes shared" in done.stdout


def test_a_script_reads_neither_secrets_nor_the_network(home: Installation, tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    text = "import os, socket\nprint('SECRET' in str(os.environ).upper())\n"
    bug.write_text(f"{text}socket.create_connection(('127.0.0.1', 9), 1)\n", encoding="utf-8")
    (build,) = home.answer("try", str(bug), "--builds", "0.0.2", "--json")["builds"]
    (run,) = build["runs"]
    assert run["output"].startswith("False\n")
    assert run["line"].startswith(("ConnectionRefusedError", "OSError"))


@pytest.mark.system
def test_bisect_finds_the_change_and_ends_in_0_and_in_3_without_one(home: Installation, bug: Path) -> None:
    told = home.command("try", str(bug), "--bisect", *BOTH)
    assert told.returncode == 0, told.stderr
    assert "stops failing on 0.0.2 (0.0.1 fails)\n" in told.stdout
    assert "at most 2 of 2 builds are tried, each answer" in told.stderr
    bug.write_text("print(1)\n", encoding="utf-8")
    told = home.command("try", str(bug), "--bisect", *BOTH)
    assert (told.returncode, told.stdout.splitlines()[0]) == (3, "Runs on torch 0.0.1 and 0.0.2")


def test_a_build_that_cannot_be_made_is_a_row_and_alone_ends_in_4(home: Installation, bug: Path) -> None:
    told = home.command("try", str(bug), "--builds", "0.0.1,9.9.9")
    assert told.returncode == 0, told.stderr
    assert "could not be run on 9.9.9" in told.stdout.splitlines()[0]
    told = home.command("try", str(bug), "--builds", "9.9.9")
    assert told.returncode == 4
    assert "could not be run" in told.stdout


@pytest.mark.system
def test_packages_come_with_it_by_name(home: Installation, tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    bug.write_text("import mini_extra\nprint('imported')\n", encoding="utf-8")
    assert home.command("try", str(bug), "--builds", "0.0.2").stdout.startswith("Fails on torch 0.0.2\n")
    told = home.command("try", str(bug), "--builds", "0.0.2", "--with", "mini-extra")
    assert told.stdout.startswith("Runs on torch 0.0.2\n")
    assert "with mini-extra" in told.stdout.splitlines()[-1]


def test_kept_it_is_a_candidate_row_with_signature_and_claims(home: Installation, bug: Path, tmp_path: Path) -> None:
    told = home.command("try", str(bug), *BOTH, "--keep", "pytorch-198400", KNOWNGOOD_CATALOGUE=f"{tmp_path}")
    assert told.returncode == 2, "no catalogue there knows these builds"
    folder = tmp_path / "rows"
    folder.mkdir()
    catalogue = f"{folder}:{home.environment['KNOWNGOOD_CATALOGUE']}"
    told = home.command("try", str(bug), *BOTH, "--keep", "pytorch-198400", KNOWNGOOD_CATALOGUE=catalogue)
    assert told.returncode == 0, told.stderr
    row = tomllib.loads((folder / "pytorch-198400" / "issue.toml").read_text(encoding="utf-8"))
    assert row["title"] == "RuntimeError: the toy is broken at size 3"
    assert row["signature"] == {"kind": "message", "pattern": "the toy is broken at size"}
    (claim,) = row["claim"]
    assert (claim["says"], claim["about"]) == ("affected", "==0.0.1")
    assert claim["text"].startswith("Fails on torch 0.0.1, runs on 0.0.2")
    assert (folder / "pytorch-198400" / "bug.py").read_text(encoding="utf-8") == FAILING
    checked = home.command("check", str(folder))
    assert "is still to be filled in" in checked.stdout


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Invalid value for 'SCRIPT': File '{}' does not exist."),
        ("folder", "Invalid value for 'SCRIPT': File '{}' is a directory."),
        (b"x = '\xff'\n", "{} is no UTF-8 text (byte 5); save it as UTF-8"),
        (b"#" * (10 << 20), "{} is larger than 1 MiB; name a Python script, cut down to what fails"),
        (b" \n", "{} is empty; name"),
        (b"x = 1\0", "{} holds a NUL byte; name"),
    ],
)
def test_a_file_that_is_no_script_is_refused_in_one_sentence(
    home: Installation, tmp_path: Path, content: bytes | str | None, sentence: str
) -> None:
    path = tmp_path / "bug.py"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    told = run_here(("try", str(path)), home.environment, folder=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"knowngood: {sentence.format(path)}")
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--builds", "0.0.8"), "nearest: torch-"),
        (("--builds", "0.0.1", "--bisect"), "--bisect takes two ends, and --builds names 1 build"),
        (("--with", "a b"), "--with: "),
        (("--python", "2.7"), "no release is known for Python 2.7"),
        (("--gpu",), "--gpu: no GPU is to be seen here"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    home: Installation, bug: Path, options: tuple[str, ...], sentence: str
) -> None:
    told = run_here(("try", str(bug), *options), {**home.environment, "CUDA_VISIBLE_DEVICES": ""}, folder=bug.parent)
    assert told.returncode == 2
    assert sentence in told.stderr


def test_without_a_package_index_it_ends_in_4_with_the_reason(home: Installation, tmp_path: Path) -> None:
    bug = tmp_path / "bug.py"
    bug.write_text("print('never run')\n", encoding="utf-8")
    apart = {
        "PIP_FIND_LINKS": "",
        "PIP_NO_INDEX": "",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_HTTP_RETRIES": "0",
    }
    told = home.command("try", str(bug), *BOTH, KNOWNGOOD_DATA_DIR=str(tmp_path / "data"), **apart)
    assert told.returncode == 4
    assert "the package index cannot be reached" in told.stderr.splitlines()[-1]


@pytest.mark.system
def test_ctrl_c_keeps_what_was_run_and_the_same_command_goes_on(home: Installation, tmp_path: Path) -> None:
    bug, ready = tmp_path / "bug.py", Path("/dev/shm") / f"stop-{digest(str(tmp_path))}"  # noqa: S108 - seen by it too
    bug.write_text(
        f"""import os, time, torch.version
if not torch.version.IS_AFFECTED and not os.path.exists({str(ready)!r}):
    open({str(ready)!r}, "w").close()
    time.sleep(300)
print("done")
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "knowngood", "try", str(bug), *BOTH]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=dict(home.environment), stdout=pipe, stderr=pipe, text=True) as process:
        assert eventually(ready.exists)
        process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=60)
    try:
        assert process.returncode == 0, said
        assert told.splitlines()[0] == "Runs on torch 0.0.1"
        assert "stopped: what was run is kept, and the same command goes on from there" in said
        again = home.command("try", str(bug), *BOTH)
        assert "1 arm," in again.stderr
        assert again.stdout.splitlines()[0] == "Runs on torch 0.0.1 and 0.0.2"
    finally:
        ready.unlink()


def test_where_a_run_cannot_be_kept_it_ends_in_4_with_the_reason(home: Installation, bug: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "try").write_text("no folder", encoding="utf-8")
    told = home.command("try", str(bug), "--builds", "0.0.2", KNOWNGOOD_DATA_DIR=str(data))
    assert (told.returncode, told.stdout) == (4, "")
    assert told.stderr.splitlines()[-1].startswith("knowngood: the run cannot be kept: ")
