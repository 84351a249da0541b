"""`knowngood doctor`: whether this machine is able to measure. `knowngood worker`: it joins a fleet and measures for
it; and how `dispatch` comes to lead one.
"""

import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import click
from pydantic import TypeAdapter

from knowngood.cli.context import make_data_dir, root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, NODE_IP, argument, flag, option
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable, wait
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.errors import BadRequest, FleetUnusable
from knowngood.domain.measuring.placement import Member, parse_condition
from knowngood.settings import Settings, read_settings
from knowngood_workers.agent.agent import WorkerConfig
from knowngood_workers.agent.arm_runner import Limits
from knowngood_workers.agent.doctor import State, check_compiler, check_interpreter, check_uv, examine
from knowngood_workers.host.machine_info import describe_machine
from knowngood_workers.ray.node import NODE, NodeProcess, RayNode, offer_machine, require_ray
from knowngood_workers.ray.transport import Fleet, RayTransport

_SIGNS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "bad": "[red]✕[/]"}


@command(
    "Say whether this machine can measure, and what to do if not.",
    AS_JSON,
    example="doctor",
)
def doctor(*, as_json: bool) -> Exit:
    settings = read_settings()
    checks = examine(root(settings), at_least=settings.min_isolation, at_most=settings.max_isolation)
    bad = ", ".join(check.name for check in checks if check.state == "bad")
    if as_json:
        print_json([vars(check) for check in checks])
    else:
        out.print(
            f"This machine cannot measure: {bad}." if bad else "This machine can measure.",
            *(f"{_SIGNS[check.state]} {check.name}: {check.sentence}" for check in checks),
            sep="\n",
            soft_wrap=True,
        )
    return Exit.FINDING if bad else Exit.OK


LOCAL_HEAD = "local-head"
_PORT = 6379
_OPEN_S = 10.0
_JOIN_S = 180.0
_AGAIN_S = 5.0


@command(
    "Join a fleet and measure for it until stopped. This machine needs no database and no token of the server.",
    option("--ray", required=True, metavar="HOST:PORT", help="The head of the fleet."),
    NODE_IP,
    option(
        "--cpu-jobs",
        type=click.IntRange(min=0),
        default=1,
        help="Jobs of the CPU class at once; 0 on a machine for GPUs.",
    ),
    flag("--print", "print_", help_="Start nothing; print what `ray start` must be given here, for a shell."),
    argument("further", "More for `ray start`.", nargs=-1, metavar="[-- OPTIONS]"),
    example="worker --ray head.example:6379",
)
def worker(*, ray: str, node_ip: str, cpu_jobs: int, print_: bool, further: Sequence[str]) -> None:
    settings = read_settings()
    require_ray()
    _require_able()
    make_data_dir(settings)
    root(settings).mkdir(parents=True, exist_ok=True)
    node = offer_machine(
        describe_machine(),
        dump_worker_config(settings),
        address=_address(ray),
        release=version("knowngood"),
        cpu_jobs=cpu_jobs,
        ip=node_ip,
        ray_options=further,
    )
    if print_:
        _print_for_a_shell(node)
        return
    _require_open(node.address)
    with stoppable() as stop:
        _stay(node, stop)


def _require_open(address: str) -> None:
    """Ray itself would try for minutes. Raises FleetUnusable where nothing listens at the address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_OPEN_S).close()
    except OSError as error:
        raise FleetUnusable(
            f"the fleet at {address} cannot be joined: nothing answers there ({error.strerror or error}); "
            "see that its head is running, and that a firewall lets this machine through"
        ) from None


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise BadRequest(f'--ray "{text}" is no address; write HOST:PORT, such as head.example:{_PORT}')
    return text


def _require_able() -> None:
    """Raises FleetUnusable with every reason why nothing could be measured here."""
    checks = (check_uv(), check_interpreter(DEFAULT_PYTHON), check_compiler())
    if bad := [f"{check.name}: {check.sentence}" for check in checks if check.state is State.BAD]:
        raise FleetUnusable(f"this machine cannot measure: {'; '.join(bad)}. `knowngood doctor` tells more")


def _print_for_a_shell(node: RayNode) -> None:
    environment = node.environment(os.environ)
    changes = {name: value for name, value in environment.items() if name == NODE or os.environ.get(name) != value}
    for name, value in sorted(changes.items()):
        out.print(f"export {name}={shlex.quote(value)}", markup=False, soft_wrap=True)
    out.print(f"export KNOWNGOOD_RAY_START={shlex.quote(shlex.join(node.offer))}", markup=False, soft_wrap=True)


def _stay(node: RayNode, stop: Callable[[], bool]) -> None:
    """Be part of the fleet until asked to stop; join again whenever the head is lost. The first time must succeed."""
    is_first = True
    while not stop():
        process = NodeProcess(node, os.environ)
        try:
            joined = _joined(process, stop)
            if joined:
                err.print(f"joined the fleet at {node.address}: {_in_words(node)}; Ctrl-C leaves it", markup=False)
                while process.is_alive() and not stop():
                    time.sleep(0.2)
            if stop():
                process.leave()
                return
            if is_first and not joined:
                raise FleetUnusable(f"the fleet at {node.address} cannot be joined: {process.last_words()}")
        finally:
            process.end()
        is_first = False
        how = "is lost" if joined else f"could not be joined again ({process.reason})"
        err.print(f"the fleet at {node.address} {how}; joining again in {_AGAIN_S:.0f} s", markup=False, soft_wrap=True)
        wait(stop, at_most_s=_AGAIN_S)


def _joined(process: NodeProcess, stop: Callable[[], bool]) -> bool:
    until = time.monotonic() + _JOIN_S
    while process.is_alive() and not stop() and time.monotonic() < until:
        if process.wait_until_started(0.5):
            return True
    return False


def _in_words(node: RayNode) -> str:
    gpus = len(node.launch_spec.gpus) if node.launch_spec else 0
    room = Member("", node.labels, node.cpu_jobs, gpus).room
    return ", ".join(f"{class_} ({n} {'job' if n == 1 else 'jobs'} at once)" for class_, n in room.items()) or "nothing"


@contextmanager
def leading(ray: str, node_ip: str, where: Sequence[str]) -> Iterator[RayTransport]:
    """The fleet at `ray`, led from here: HOST:PORT of its head, or `local-head[:PORT]` for one that starts here.

    `where` are conditions on the labels of machines. Raises BadRequest, and FleetUnusable.
    """
    fleet = Fleet("", version("knowngood"), ip=node_ip, conditions=tuple(parse_condition(text) for text in where))
    host, _, port = ray.partition(":")
    if host != LOCAL_HEAD:
        fleet = replace(fleet, address=_address(ray))
    elif port and not port.isdigit():
        raise BadRequest(f'--ray "{ray}" has no port that is a number; write {LOCAL_HEAD}:{_PORT}')
    else:
        fleet = replace(fleet, port=int(port or _PORT))
    with RayTransport(fleet) as transport:
        yield transport


# The settings of this machine for an agent that works here.


def dump_worker_config(settings: Settings, adopted: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """How agents work on this machine, as JSON can carry it."""
    worker_config = WorkerConfig(
        root=root(settings),
        slots=settings.slots,
        envs_limit_bytes=settings.envs_limit,
        limits=Limits(memory_bytes=settings.memory_limit),
        fork_server=settings.fork,
        min_isolation=settings.min_isolation,
        max_isolation=settings.max_isolation,
        max_gpu_isolation=settings.max_gpu_isolation,
        adopted=adopted or {},
    )
    return cast("dict[str, Any]", TypeAdapter(WorkerConfig).dump_python(worker_config, mode="json"))
