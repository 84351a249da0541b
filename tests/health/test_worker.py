"""`knowngood worker --ray` and `knowngood dispatch --ray`: the commands themselves, with real agents and toy builds."""

import json
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.given_toys import ROOT, TOYS, Installation, make_installation, toy_wheels
from tests.soak.test_kill import with_mark
from tests.waiting import eventually

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
HEAD, WORKER = "127.0.0.2", "127.0.0.3"
PATIENCE_S = 240.0


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    """Two toys on three builds; the fleet's token."""
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    (catalogue / "builds.toml").write_text(
        (TOYS / "builds.toml").read_text().partition('\n[[build]]\ntorch = "9.9.9"')[0]
    )
    for toy in ("toy-passes-1", "toy-fixed-1"):
        (catalogue / toy).symlink_to(TOYS / toy)
    made = make_installation(tmp_path / "here", toy_wheels(tmp_path), catalogue=catalogue)
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(32))
    return Installation(made.data, {**made.environment, "RAY_AUTH_TOKEN_PATH": str(token)})


def test_a_worker_without_a_token_says_how_to_make_one(here: Installation, tmp_path: Path) -> None:
    done = here.command("worker", "--ray", "head:6379", RAY_AUTH_TOKEN_PATH=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (4, "")
    assert "ray get-auth-token --generate" in done.stderr
    assert "Traceback" not in done.stderr


@needs_ray
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("worker", "--ray", "head"), "HOST:PORT"),
        (("dispatch", "--ray", "head"), "HOST:PORT"),
        (("dispatch", "--ray", "local-head:x"), "local-head:6379"),
        (("dispatch", "--ray", "head:6379", "--where", "memory>>1"), "no condition"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(here: Installation, arguments: tuple[str, ...], sentence: str) -> None:
    done = here.command(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@needs_ray
def test_a_machine_that_cannot_measure_does_not_join(here: Installation, tmp_path: Path) -> None:
    done = here.command("worker", "--ray", "head:6379", PATH=str(tmp_path))
    assert done.returncode == 4
    assert "this machine cannot measure" in done.stderr
    assert "knowngood doctor" in done.stderr


@needs_ray
def test_what_ray_must_be_told_is_printed_for_a_shell(here: Installation) -> None:
    done = here.command("worker", "--ray", "head:6379", "--print", "--cpu-jobs", "2")
    assert done.returncode == 0, done.stderr
    told = """printf '%s\\0' "$KNOWNGOOD_NODE" "$RAY_AUTH_MODE"; eval "printf '%s\\0' $KNOWNGOOD_RAY_START" """
    ran = subprocess.run(["bash", "-c", f"{done.stdout}\n{told}"], capture_output=True, text=True, check=True)
    node, mode, *options = ran.stdout.split("\0")[:-1]
    assert json.loads(node)["worker_config"]["root"] == str(here.data)
    assert mode == "token"
    assert '--resources={"knowngood_cpu_jobs":2}' in options
    (labels,) = [option for option in options if option.startswith("--labels=")]
    assert "knowngood-cpu=cpu-x86_64" in labels
    assert "a-secret" not in done.stdout


@contextmanager
def running(here: Installation, *arguments: str, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    with (here.data.parent / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "knowngood", *arguments], env={**here.environment, **more}, cwd=ROOT, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def said(here: Installation, command: str) -> str:
    return (here.data.parent / f"{command}.log").read_text()


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind((HEAD, 0))
        port: int = asked.getsockname()[1]
    return port


@needs_ray
@pytest.mark.system
@pytest.mark.timeout(900)
def test_a_run_is_measured_by_a_worker_that_knows_no_database(here: Installation, tmp_path: Path) -> None:
    port = free_port()
    there = {"KNOWNGOOD_DATA_DIR": str(tmp_path / "there"), "KNOWNGOOD_DATABASE_URL": "postgresql://nobody@nowhere/x"}
    assert here.command("migrate").returncode == 0
    leading = running(here, "dispatch", "--ray", f"local-head:{port}", "--node-ip", HEAD)
    with leading as dispatcher:
        assert eventually(lambda: dispatcher.poll() is not None or is_open(port), PATIENCE_S)
        assert dispatcher.poll() is None, said(here, "dispatch")
        with running(here, "worker", "--ray", f"{HEAD}:{port}", "--node-ip", WORKER, **there) as worker:
            assert eventually(lambda: worker.poll() is not None or "joined" in said(here, "worker"), PATIENCE_S)
            assert worker.poll() is None, said(here, "worker")
            told = here.answer("run", "--builds", "torch-0.0.1+mini,torch-0.0.2+mini", "--json")
            verdicts = {(cell["issue"], cell["build"]): cell["verdict"] for cell in told["cells"]}
            assert verdicts == {
                ("toy-passes-1", "torch-0.0.1+mini"): "not_affected",
                ("toy-passes-1", "torch-0.0.2+mini"): "not_affected",
                ("toy-fixed-1", "torch-0.0.1+mini"): "affected",
                ("toy-fixed-1", "torch-0.0.2+mini"): "not_affected",
            }
            assert (tmp_path / "there" / "environments").is_dir()
            assert not (here.data / "environments").exists()
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0
        dispatcher.send_signal(signal.SIGTERM)
        assert dispatcher.wait(PATIENCE_S) == 0
    assert eventually(lambda: not with_mark(str(tmp_path)), PATIENCE_S), with_mark(str(tmp_path))


def is_open(port: int) -> bool:
    with socket.socket() as asked:
        asked.settimeout(0.5)
        return asked.connect_ex((HEAD, port)) == 0


@needs_ray
def test_a_fleet_that_is_not_there_cannot_be_joined(here: Installation) -> None:
    done = here.command("worker", "--ray", f"{HEAD}:{free_port()}", "--node-ip", WORKER)
    assert done.returncode == 4
    assert "nothing answers there" in done.stderr
    assert "Traceback" not in done.stderr
