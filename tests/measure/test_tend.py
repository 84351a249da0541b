"""`knowngood tend` by its real command: each step real, on a toy, with a package index on this machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.given_toys import TOYS, Installation, make_installation
from tests.workers.registry import MadeWheel, Registry, serve

pytestmark = pytest.mark.timeout(600)

STEPS = ["upstream", "discover", "wheels", "run", "snapshot", "site"]
PATIENCE_S = 120.0


@pytest.fixture
def registry(wheels: Path) -> Iterator[Registry]:
    with serve(Registry([MadeWheel(path.name, path.read_bytes()) for path in wheels.glob("*.whl")])) as running:
        yield running


@pytest.fixture
def small(tmp_path: Path, wheels: Path, new_setting: NewStore) -> Installation:
    """One toy on the builds of all toys, of which one is on no index."""
    catalogue = tmp_path / "catalogue"
    shutil.copytree(TOYS / "toy-passes-1", catalogue / "toy-passes-1")
    shutil.copy(TOYS / "builds.toml", catalogue)
    return make_installation(tmp_path, wheels, catalogue=catalogue, store=new_setting())


def ended(stderr: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "step ended"]


@pytest.mark.system
def test_a_round_does_each_step_in_order_and_says_how_it_ended(small: Installation, registry: Registry) -> None:
    given = {"UV_DEFAULT_INDEX": registry.address, "KNOWNGOOD_LOG_FORMAT": "json"}
    planned = small.command("tend", "--dry-run", "--minutes", "5", **given)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.count("last: never") == len(STEPS)
    assert "knowngood run --next --minutes 5\n" in planned.stdout
    published = small.data / "published"
    assert not published.exists(), "a dry run does nothing"

    done = small.command("tend", "--minutes", "5", **given)
    assert done.returncode == 1, done.stderr
    assert [(line["step"], line["code"]) for line in ended(done.stderr)] == list(
        zip(STEPS, (0, 0, 1, 0, 0, 0), strict=True)
    )
    assert '"found_something":["wheels"]' in done.stderr
    assert "torch-9.9.9+mini: the index lists no wheel of torch 9.9.9" in done.stdout
    cells = small.answer("matrix", "--builds", "torch-0.0.1+mini", "--json")["cells"]
    assert [cell["verdict"] for cell in cells] == ["not_affected"]
    assert (published / "knowngood.snapshot").stat().st_size > 0
    assert (published / "site" / "index.html").exists()
    assert 'id="tended"' not in (published / "site" / "index.html").read_text(), "a site is read at any time"

    again = small.command("tend", "--dry-run", **given)
    assert again.stdout.count("ended in 0") == len(STEPS) - 1
    assert again.stdout.count("ended in 1") == 1


def test_a_step_that_fails_stops_no_other_and_is_told_at_the_end(small: Installation) -> None:
    done = small.command("tend", "--steps", "wheels,snapshot", KNOWNGOOD_LOG_FORMAT="json")
    assert (done.returncode, "Traceback" in done.stderr) == (4, False), done.stderr
    first, second = ended(done.stderr)
    assert (first["step"], first["code"], second["step"], second["code"]) == ("wheels", 4, "snapshot", 0)
    assert "use no package index" in str(first["why"])
    assert '"failed":["wheels"]' in done.stderr
    assert (small.data / "published" / "knowngood.snapshot").exists()


@pytest.mark.system
def test_it_goes_on_until_it_is_stopped_and_a_restart_brings_no_round_of_its_own(small: Installation) -> None:
    snapshot = small.data / "published" / "knowngood.snapshot"
    with started(small) as process:
        until(lambda: snapshot.exists() and not snapshot.with_name("knowngood.snapshot.partial").exists(), process)
        until(lambda: "ended in 0" in small.command("tend", "--dry-run", "--steps", "snapshot").stdout, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    made = snapshot.stat().st_mtime_ns
    with started(small) as process:
        until(lambda: hears_of_its_end(process), process)
        time.sleep(2)  # in which a round would begin
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert snapshot.stat().st_mtime_ns == made


def started(small: Installation) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "knowngood", "tend", "--every", "24h", "--steps", "snapshot"]
    return subprocess.Popen(command, env={**small.environment, "PYTHONPATH": os.pathsep.join(sys.path)})


def hears_of_its_end(process: subprocess.Popen[bytes]) -> bool:
    """Whether SIGTERM does not simply end it any more."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def until(is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--steps", "discover,sweep"), '"sweep" is no step; known: upstream, discover, wheels'),
        (("--every", "daily"), '"daily" is no time; write 30min'),
        (("--every", "0h"), '"0h" is no time'),
        (("-o", "/proc/nowhere"), "/proc/nowhere cannot be made"),
    ],
)
def test_a_question_that_is_none_gets_a_sentence(call: Call, arguments: tuple[str, ...], words: str) -> None:
    done = call("tend", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
