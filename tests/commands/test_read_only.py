"""A store that may only be read, and a data folder that may not even be looked into: questions are answered."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.forked_commands import run_command
from tests.given_toys import ROOT, Installation

# Root writes wherever it likes, unless it gives that up.
AS_OTHERS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
WHERE = ("--builds", "torch-0.0.1+mini", "--issues", "toy-passes-1")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(AS_OTHERS) and shutil.which("setpriv") is None, reason="root may write everything"),
]


@pytest.fixture(scope="module")
def locked(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation with the toys' catalogue, whose data folder nobody may write."""
    folder = tmp_path_factory.mktemp("locked")
    made = Installation(folder / "data", {**installation.environment, "KNOWNGOOD_DATABASE_URL": ""})
    made = Installation(made.data, {**made.environment, "KNOWNGOOD_DATA_DIR": str(made.data)})
    assert made.command("matrix").returncode == 0
    for one in (*made.data.rglob("*"), made.data):
        one.chmod(0o555 if one.is_dir() else 0o444)
    yield made
    made.data.chmod(0o755)


def asked(place: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, place.environment, timeout_s=120, through=AS_OTHERS)


@pytest.mark.system
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("matrix", *WHERE), 0),
        (("gate", "--build", "torch-0.0.1+mini", "--issues", "toy-passes-1"), 3),
        (("compare", "torch-0.0.1+mini", "torch-0.0.2+mini"), 3),
        (("run", *WHERE, "--dry-run", "--no-sizes"), 0),
        (("status",), 0),
        (("doctor",), 1),
    ],
)
def test_a_store_that_may_only_be_read_answers(locked: Installation, arguments: tuple[str, ...], code: int) -> None:
    done = asked(locked, *arguments)
    assert (done.returncode, "Traceback" in done.stderr, "cannot be used" in done.stderr) == (code, False, False)


def test_whatever_would_write_says_where_it_may_not(locked: Installation) -> None:
    done = asked(locked, "run", *WHERE)
    assert done.returncode == 4
    assert "may only be read here" in done.stderr
    assert "set KNOWNGOOD_DATA_DIR to a folder that is" in done.stderr


@pytest.mark.system
def test_a_server_answers_from_it_and_says_that_it_takes_nothing_in(locked: Installation, tmp_path: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = (*AS_OTHERS, sys.executable, "-m", "knowngood", "serve", "--port", str(port))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(program, env=locked.environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        while "Known Good is at" not in (tmp_path / "log").read_text():
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        for path in ("", "readyz", "api/v1/matrix"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
                assert answer.status == 200
    finally:
        process.terminate()
        process.wait(60)
    assert "the store may only be read here" in (tmp_path / "log").read_text()


def test_a_folder_that_may_not_be_looked_into_is_a_finding_of_the_doctor(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "shut").mkdir(mode=0o000)
    place = Installation(
        tmp_path / "shut" / "data",
        {**installation.environment, "KNOWNGOOD_DATABASE_URL": "", "KNOWNGOOD_DATA_DIR": f"{tmp_path}/shut/data"},
    )
    done = asked(place, "doctor")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "cannot be looked into (Permission denied); set KNOWNGOOD_DATA_DIR" in done.stdout
