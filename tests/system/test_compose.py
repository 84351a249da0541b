"""docker-compose.yml and Dockerfile: what they name exists, nothing stands open, and each service's own command runs.

No container engine is needed: the commands are started by hand, with their environment, addresses and paths changed.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
import yaml

from knowngood.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PATIENCE_S = 240.0
STAGES = re.findall(r"^FROM (\S+) AS (\w+)$", DOCKERFILE, re.MULTILINE)


def test_all_that_the_dockerfile_copies_is_in_the_repository() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert len(copied) > 5
    tracked = subprocess.run(["git", "ls-files", "--others", "--cached", "--exclude-standard"], cwd=ROOT, text=True,
                             capture_output=True, check=True).stdout.splitlines()  # fmt: skip
    for path in " ".join(copied).split():
        assert any(one == path or one.startswith(f"{path}/") for one in tracked), path


def test_the_wheel_finds_all_it_carries_in_the_image() -> None:
    """Everything that pyproject.toml packs must have been copied before the package is installed."""
    made = DOCKERFILE.partition(" AS server")[0]
    copied = set(" ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", made, re.MULTILINE)).split())
    packs = (ROOT / "pyproject.toml").read_text().partition("[tool.hatch.build.targets.wheel]")[2].partition("\n[[")[0]
    packed = {
        *re.findall(r'^"([^"]+)" = "knowngood/', packs, re.MULTILINE),
        "app",
        "workers",
        "repros",
        "migrations",
    }
    assert {name.partition("/")[0] for name in packed} <= copied


def test_the_lock_of_the_images_holds_both_extras_with_hashes() -> None:
    text = (ROOT / "requirements-fleet.lock").read_text()
    assert "://" not in text
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    own = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert {"psycopg", "psycopg-binary", "psycopg-pool", "ray"} <= pins.keys()
    assert own.items() <= pins.items()
    assert text.count("--hash=sha256:") >= len(pins)


def test_each_service_is_built_from_a_stage_and_ends_in_a_plain_user() -> None:
    stages = {name for _, name in STAGES}
    for name, service in SERVICES.items():
        if "build" in service:
            assert service["build"]["target"] in stages, name
    for name in ("server", "worker"):
        stage = DOCKERFILE.partition(f" AS {name}\n")[2].partition("\nFROM ")[0]
        assert re.search(r"^USER (?!root|0\b)\w+$", stage, re.MULTILINE), name
    assert {name: image for image, name in STAGES}["worker"].startswith("nvidia/cuda:")


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_shut(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["user"] not in {"root", "0", "0:0"}
    assert any(str(one).startswith("/tmp") for one in service["tmpfs"])  # noqa: S108 - the containers' own
    for port in service.get("ports", ()):
        assert str(port).startswith("127.0.0.1:"), "others reach it through a proxy that speaks TLS"
    assert service.get("healthcheck") or name in {"migrate", "dispatcher", "tend", "worker"}


def test_secrets_come_as_files_and_only_to_those_who_need_them() -> None:
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    needs = {name: set(service.get("secrets", ())) for name, service in SERVICES.items()}
    assert needs == {
        "postgres": {"postgres_password"},
        "migrate": {"database_url"},
        "web": {"database_url"},
        "proxy": set(),
        "dispatcher": {"database_url", "ray_token"},
        "tend": {"database_url"},
        "ray-head": {"ray_token"},
        "worker": {"ray_token"},
    }
    for name, service in SERVICES.items():
        for variable, value in service["environment"].items():
            assert (
                not re.search(r"password|token|secret|://", str(value))
                or str(value).startswith("/run/secrets/")
                or ((variable, value) == ("RAY_AUTH_MODE", "token"))
            ), (name, variable)


def networks_of(name: str) -> set[str]:
    return set(SERVICES[name].get("networks", ["default"]))


def test_who_runs_the_code_of_others_reaches_neither_the_database_nor_who_believes_a_proxy() -> None:
    reached_by = {
        name: {other for other in SERVICES if other != name and networks_of(other) & networks_of(name)}
        for name in SERVICES
    }
    assert reached_by["web"] == {"proxy", "postgres", "migrate", "dispatcher", "tend"}
    assert reached_by["postgres"] == {"web", "migrate", "dispatcher", "tend"}
    assert reached_by["worker"] == {"ray-head", "dispatcher"}
    assert {name for service in SERVICES for name in networks_of(service)} == set(COMPOSE["networks"])
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", ())) <= reached_by[name], name


def test_bundles_that_come_in_wait_on_a_disk_and_not_in_memory() -> None:
    web = SERVICES["web"]
    assert web["environment"]["TMPDIR"] in web["volumes"]


def test_every_setting_that_it_names_is_one() -> None:
    known = {f"KNOWNGOOD_{name.upper()}{end}" for name in Settings.model_fields for end in ("", "_FILE")}
    for service in SERVICES.values():
        assert {name for name in service["environment"] if name.startswith("KNOWNGOOD_")} <= known


# -- by hand -----------------------------------------------------------------------------------------------------------


class Place:
    """One host for all services: the secrets of compose as files, its addresses as ports here."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.web, self.head = _free_port(), _free_port()
        secrets = {"database_url": database, "ray_token": "5" * 64, "postgres_password": "unused here"}
        for name, text in secrets.items():
            (folder / name).write_text(f"{text}\n")
        self._running: dict[str, subprocess.Popen[str]] = {}

    def environment(self, name: str) -> dict[str, str]:
        own = {key: self._here(str(value)) for key, value in SERVICES[name]["environment"].items()}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        (self.folder / name).mkdir(exist_ok=True)
        home = {"HOME": str(self.folder / name), "TMPDIR": str(self.folder / name), "RAY_TMPDIR": str(self.folder)}
        return {"PATH": path, "KNOWNGOOD_DATA_DIR": str(self.folder / name), **own, **home}

    def _here(self, text: str) -> str:
        changes = {
            "/run/secrets": str(self.folder),
            "0.0.0.0": "127.0.0.1",  # noqa: S104 - what is changed
            "8000": str(self.web),
            "ray-head": "127.0.0.1",
            "6379": str(self.head),
            "/opt/knowngood/bin/python": sys.executable,
        }
        for there, here in changes.items():
            text = text.replace(there, here)
        return str(self.folder / "data") if text == "/data" else text

    def command(self, name: str, key: str = "command") -> list[str]:
        words = SERVICES[name]["healthcheck"]["test"][1:] if key == "healthcheck" else SERVICES[name][key]
        program, *rest = (self._here(word) for word in words)
        here = shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert here is not None, program
        return [here, *rest]

    def run(self, name: str, key: str = "command") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, key),
            env=self.environment(name),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, name: str) -> subprocess.Popen[str]:
        with self._log(name).open("w") as log:
            self._running[name] = subprocess.Popen(
                self.command(name),
                env=self.environment(name),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        return self._running[name]

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def said(self, name: str) -> str:
        return self._log(name).read_text()

    def wait_for(self, name: str, is_there: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_there():
            assert self._running[name].poll() is None, self.said(name)
            assert time.monotonic() < until, self.said(name)
            time.sleep(0.5)

    def stop(self, name: str) -> int:
        """As `docker compose stop` does it: the signal goes to the service alone."""
        self._running[name].send_signal(signal.SIGTERM)
        return self._running[name].wait(PATIENCE_S)

    def end(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                        with suppress(psutil.NoSuchProcess):
                            one.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def place(empty_postgres_url: str) -> Iterator[Place]:
    """In a folder with a short name: the paths of Ray's sockets may have 107 signs."""
    with tempfile.TemporaryDirectory(prefix="kg-", ignore_cleanup_errors=True) as folder:
        made = Place(Path(folder), empty_postgres_url)
        yield made
        made.end()


@pytest.mark.system
@pytest.mark.timeout(1200)
def test_the_commands_of_all_services_run_by_hand(place: Place, empty_postgres_url: str) -> None:
    migrated = place.run("migrate")
    assert migrated.returncode == 0, migrated.stderr

    web = place.start("web")
    place.wait_for("web", lambda: place.run("web", "healthcheck").returncode == 0)
    place.wait_for("web", lambda: len(answering(web.pid)) == 2)
    assert '"event":"serving"' in place.said("web")
    with urllib.request.urlopen(f"http://127.0.0.1:{place.web}/metrics", timeout=60) as response:
        assert b"knowngood_store_up 1.0" in response.read()

    place.start("ray-head")
    place.wait_for("ray-head", lambda: place.run("ray-head", "healthcheck").returncode == 0)
    place.start("worker")
    place.wait_for("worker", lambda: "joined the fleet" in place.said("worker"))
    place.start("dispatcher")
    place.wait_for("dispatcher", lambda: '"event":"lease taken"' in place.said("dispatcher"))
    assert leases(empty_postgres_url) == ["dispatcher"]
    place.start("tend")
    place.wait_for("tend", lambda: '"event":"step ended"' in place.said("tend"))

    for name in ("tend", "dispatcher", "worker", "web"):
        assert place.stop(name) == 0, place.said(name)
    assert leases(empty_postgres_url) == []
    place.stop("ray-head")
    for secret in ("database_url", "ray_token"):
        text = (place.folder / secret).read_text().strip()
        assert not [
            name for name in SERVICES if name in {"web", "dispatcher", "tend", "worker"} and text in place.said(name)
        ]


def answering(pid: int) -> list[psutil.Process]:
    """The processes that answer, without the one that multiprocessing keeps to look after what they share."""
    return [one for one in psutil.Process(pid).children() if "spawn_main" in " ".join(one.cmdline())]


def leases(url: str) -> list[str]:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = list(connection.execute(sa.text("SELECT name FROM leases WHERE name = 'dispatcher'")).scalars())
    engine.dispose()
    return found
