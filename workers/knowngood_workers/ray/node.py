"""One Ray node on this machine: how it is started, what it tells of itself, and its end with all that it started.

`NodeProcess` runs `ray start` behind a guard (`python -m ...ray.node`), so that no process of Ray's outlives
whoever wanted the node, however that one ends: Ray's own agents do when the head dies (Ray 2.60, measured 2026-11-21).
Not here: jobs, and a connection of our own to Ray. This module does not import Ray.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self, cast

import psutil
from pydantic import TypeAdapter

from knowngood.domain.errors import FleetUnusable
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.placement import labels_of
from knowngood.installation import how_to_install
from knowngood_workers.agent.process_guard import (
    end_with_everything,
    run_guarded,
    settle,
    take_stdout,
    watch_stdin,
    write_all,
)
from knowngood_workers.common.programs import PipedProcess
from knowngood_workers.dispatch.local_transport import agent_environment
from knowngood_workers.standalone.supervisor import descendants, destroy

CPU_JOBS = "knowngood_cpu_jobs"
"""The custom resource of a node: how many jobs of the CPU class it takes at once."""

NODE = "KNOWNGOOD_NODE"
"""The variable in which a node tells its own tasks how agents are started there: JSON of `AgentLaunchSpec`."""

# Every node counts up Ray's own range for itself: of two nodes on one machine that begin a process at once, one may get
# a port that the other has just taken, and that process dies before it is known (ray#19336; fairchem#1787, 2026-02-17).
_FREE_PORTS = ("--min-worker-port=0", "--max-worker-port=0")
# Idle processes that Ray keeps ready for the next task: a new one takes 1 to 3 s (2 busy cores, 2026-11-21).
_READY_PROCESSES = 1
# What travels is text of some kilobytes; Ray refuses less than 75 MiB.
_OBJECT_STORE_BYTES = 100 << 20
_STARTED = b"Ray runtime started"
_LEAVE_S = 45.0  # Ray gives running tasks 30 s
_DRAIN_FIRST_S = 1.0
_HANG_UP_S = 10.0

_EXCEPTION = re.compile(r"[\w.]*(Error|Exception): ")

_RAY_SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    # A CPU task sees the machine's own CUDA_VISIBLE_DEVICES: which GPUs there are belongs to what the machine is.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Memory is our supervisor's to watch: Ray would kill what supervises an arm, and the evidence with it.
    "RAY_memory_monitor_refresh_ms": "0",
    # Ray's tasks run at niceness 15 unless told otherwise, and with them agents and arms: a timeout must mean the same.
    "RAY_worker_niceness": "0",
    # Machines that measure are busy: where a process of Ray's took a minute to start it was given up and begun anew.
    # One that dies as it starts is missed only then, and until then its node begins no other (killed so, 2026-11-23).
    "RAY_worker_register_timeout_seconds": "150",
}


@dataclass(frozen=True)
class AgentLaunchSpec:
    """How agents are started on a node. `worker_config` is handed to them as it is. `gpus` are the machine's
    numbers of the GPUs that Ray counts from 0, `visible` its CUDA_VISIBLE_DEVICES (None: not set).
    """

    worker_config: Mapping[str, Any]
    command: tuple[str, ...] = (sys.executable, "-m", "knowngood_workers.agent.agent")
    gpus: tuple[int, ...] = ()
    visible: str | None = None

    def dump(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def load(cls, text: str) -> Self:
        return TypeAdapter(cls).validate_json(text)


@dataclass(frozen=True)
class RayNode:
    """A node to start. `address` is the head's; empty where this node is the head, which then listens on `port`.

    `launch_spec` is None on a node that takes no jobs: the dispatcher's own. `ip` is the address at which other nodes
    reach this one (empty: Ray finds it). `ray_options` are options for `ray start` as they are.
    """

    address: str
    port: int = 6379
    ip: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_jobs: int = 0
    launch_spec: AgentLaunchSpec | None = None
    ray_options: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """Everything for `ray start`."""
        head = ["--head", "--port", str(self.port), "--include-dashboard=false", "--no-monitor"]
        place = ["--address", self.address] if self.address else head
        own = ["--node-ip-address", self.ip] if self.ip else []
        return [
            *place,
            *own,
            *self.offer,
            *_FREE_PORTS,
            "--dashboard-agent-listen-port=0",
            "--block",
            *self.ray_options,
        ]

    @property
    def offer(self) -> list[str]:
        """The part that says what this machine has to give."""
        gpus = len(self.launch_spec.gpus) if self.launch_spec else 0
        options = [f"--num-cpus={_READY_PROCESSES if self.launch_spec else 0}", f"--num-gpus={gpus}"]
        if self.cpu_jobs:
            options.append("--resources=" + json.dumps({CPU_JOBS: self.cpu_jobs}, separators=(",", ":")))
        if self.labels:
            options.append("--labels=" + ",".join(f"{name}={value}" for name, value in sorted(self.labels.items())))
        quiet = ["--disable-usage-stats", "--include-log-monitor=false"]
        return [*options, f"--object-store-memory={_OBJECT_STORE_BYTES}", *quiet]

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        variables = ray_environment(environ)
        if self.launch_spec is not None:
            variables[NODE] = self.launch_spec.dump()
        return variables


def offer_machine(  # noqa: PLR0913 - all but the first two are given by name
    machine: Machine,
    worker_config: Mapping[str, Any],
    *,
    address: str,
    release: str,
    cpu_jobs: int = 1,
    ip: str = "",
    ray_options: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> RayNode:
    """Offer this machine as a node that takes jobs. Raises FleetUnusable where its GPUs are of several classes."""
    kinds = sorted({gpu.hardware for gpu in machine.gpus})
    if len(kinds) > 1:
        raise FleetUnusable(
            f"the GPUs here are of {' and '.join(kinds)}, and a worker offers one class; start a worker for each, "
            "with CUDA_VISIBLE_DEVICES naming its GPUs"
        )
    gpus = tuple(gpu.index for gpu in machine.gpus)
    launch_spec = AgentLaunchSpec(worker_config, gpus=gpus, visible=environ.get("CUDA_VISIBLE_DEVICES"))
    return RayNode(
        address,
        ip=ip,
        labels=labels_of(machine, release),
        cpu_jobs=cpu_jobs,
        launch_spec=launch_spec,
        ray_options=tuple(ray_options),
    )


def ray_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of Ray's processes: those that agents may see, Ray's own variables, and no secret but Ray's
    token.
    """
    variables = agent_environment(environ) | {name: value for name, value in environ.items() if name.startswith("RAY_")}
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    # Driver and nodes need the same minor version of Python; without this, the same patch version too.
    variables.setdefault("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    return variables | _RAY_SETTINGS


def require_ray(environ: Mapping[str, str] = os.environ) -> None:
    """Raises FleetUnusable where Ray is not installed, or no token is to be found."""
    if find_spec("ray") is None:
        raise FleetUnusable(f"Ray is not installed here; {how_to_install('ray')}")
    named = environ.get("RAY_AUTH_TOKEN_PATH")
    file = Path(named) if named else Path(environ.get("HOME", "/")) / ".ray" / "auth_token"
    with suppress(OSError):
        if environ.get("RAY_AUTH_TOKEN") or file.read_text(encoding="utf-8").strip():
            return
    raise FleetUnusable(
        f"there is no token for Ray in {file}; make one on the head's machine with `ray get-auth-token --generate`, "
        "and copy that file to every machine of the fleet (or set RAY_AUTH_TOKEN_PATH)"
    )


class NodeProcess(PipedProcess):
    """A node that runs for as long as this process does, or until it is ended. Raises FleetUnusable where no process
    can be started for it.
    """

    def __init__(self, node: RayNode, environ: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kgray-"))
        self._started = threading.Event()
        settle()
        try:
            command = [sys.executable, "-m", "knowngood_workers.ray.node"]
            super().__init__(command, node.environment(environ), lines=30, line_bytes=1 << 16)
        except OSError as error:
            raise FleetUnusable(f"no Ray node could be started: {error}") from None
        threading.Thread(target=self._wait_for_start, name="ray-node", daemon=True).start()
        agent = node.launch_spec.command if node.launch_spec else None
        order = {"arguments": node.arguments, "agent": agent, "folder": str(self.folder)}
        self.send(json.dumps(order).encode() + b"\n")

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def wait_until_started(self, seconds: float) -> bool:
        """False where it ended, or took longer."""
        until = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < until:
            if self._started.wait(0.1):
                return True
        return False

    @property
    def reason(self) -> str:
        """The one line of its last words that tells why it ended, as far as one can know: Ray's last exception."""
        lines = self.last_words().splitlines() or ["Ray said nothing"]
        return next((line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1])

    def leave(self) -> None:
        """Take no new jobs, have those that run stopped and given back, and end; made to where that takes too long."""
        self.process.terminate()
        try:
            self.process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self.end()

    def end(self) -> None:
        """End the node and all that it started, now."""
        self.close_stdin()
        try:
            self.process.wait(_HANG_UP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_for_start(self) -> None:
        with self.stdout:
            for _ in self.stdout:
                self._started.set()


# -- the program: `ray start` behind a guard ---------------------------------------------------------------------------


def main() -> None:
    run_guarded(_run_node)


def _run_node() -> None:
    words = take_stdout()
    order = json.loads(sys.stdin.buffer.readline())
    folder = order["folder"]
    signal.signal(signal.SIGHUP, lambda *_: _end(folder))
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    threading.Thread(target=watch_stdin, args=(lambda: False,), name="stdin", daemon=True).start()
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--temp-dir", folder, *order["arguments"]]
    ray = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    threading.Thread(target=_forward_output, args=(ray, words), name="ray-words", daemon=True).start()
    while ray.poll() is None:
        if leaving.wait(0.2):
            _drain(ray, order["agent"])
            break
    destroy()
    shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(0 if leaving.is_set() else 1)


def _end(folder: str) -> None:
    destroy()
    shutil.rmtree(folder, ignore_errors=True)
    end_with_everything()


def _forward_output(ray: "subprocess.Popen[bytes]", words: int) -> None:
    for line in cast(IO[bytes], ray.stdout):
        if _STARTED in line:
            write_all(words, b"started\n")
        write_all(2, line)


def _drain(ray: "subprocess.Popen[bytes]", agent: Sequence[str] | None) -> None:
    """Ray drains the node: no new task comes, and it ends once none runs. The agents are asked to end their jobs."""
    ray.terminate()
    time.sleep(_DRAIN_FIRST_S)
    for pid in descendants() if agent else ():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.cmdline() == list(agent or ()):
                process.terminate()
    ray.wait()


if __name__ == "__main__":
    main()
