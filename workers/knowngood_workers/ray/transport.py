"""The Ray transport: jobs go to the machines of a fleet that offer their class, and best to one with their environment.

Ray itself is in another process (`driver_process`), which this one starts, hears and starts anew. A job is one
streaming task that is never retried: retries are the dispatcher's. The database, and every secret, stay here.
"""

import itertools
import json
import os
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Self

import orjson
import structlog

from knowngood.domain.errors import FleetUnusable
from knowngood.domain.hardware_classes import whole_class
from knowngood.domain.measuring.job import EnvironmentReady, Event, JobEnded, JobSpec, Provisioning
from knowngood.domain.measuring.placement import (
    RELEASE,
    Condition,
    Member,
    Placement,
    choose,
    needs_of,
    release_label,
    room_of,
)
from knowngood.serialization import codec
from knowngood_workers.common.programs import PipedProcess
from knowngood_workers.dispatch.local_transport import AgentLost, JobReturned
from knowngood_workers.provision.resolver import environment_key
from knowngood_workers.ray.node import CPU_JOBS, ray_environment, require_ray

_FIRST_FLEET_S = 240.0
_AGAIN_S = 2.0
_SAY_WAITING_S = 30.0
_SILENCE_S = 120.0  # a task says something every 10 s
_FAREWELL_S = 10.0
_ENV_MEMORY = 4096  # environments whose places are remembered
_CANCELLED = "cancelled"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Fleet:
    """Which fleet, and who of it. `address` is the head's; empty: the head runs beside this transport, on `port`.

    `ip` is this machine's address as the others reach it. `release` is what nodes must run, `conditions` what they must
    be besides.
    """

    address: str
    release: str
    port: int = 6379
    ip: str = ""
    conditions: tuple[Condition, ...] = ()

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        return (Condition(RELEASE, release_label(self.release)), *self.conditions)


class RayTransport(AbstractContextManager["RayTransport"]):
    """Open it with `with`: raises FleetUnusable where the fleet cannot be led from here. Threads may share it."""

    def __init__(
        self,
        fleet: Fleet,
        environ: Mapping[str, str] = os.environ,
        command: Sequence[str] = (sys.executable, "-m", "knowngood_workers.ray.driver_process"),
    ) -> None:
        self._fleet = fleet
        self._environ = dict(environ)
        self._command = tuple(command)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._handles: dict[str, RayJobHandle] = {}
        self._ready: dict[str, set[str]] = {}  # environment -> machines that have it; the newest last
        self.members: tuple[Member, ...] = ()  # who has joined, our own node and other releases included
        self._room: dict[str, int] = {}
        self._has_fleet = threading.Event()
        self._closing = threading.Event()
        self.driver_pid = 0
        self._orders: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._problem = ""
        self._driver_thread = threading.Thread(target=self._keep_driver, name="ray-driver", daemon=True)

    def __enter__(self) -> Self:
        require_ray(self._environ)
        self._driver_thread.start()
        until = time.monotonic() + _FIRST_FLEET_S
        while not self._has_fleet.wait(0.1):
            if self._problem or time.monotonic() > until:
                self.close()
                raise FleetUnusable(f"the fleet cannot be led from here: {self._problem or 'Ray does not start'}")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End our part of the fleet: every job that still runs dies with it."""
        self._closing.set()
        with self._lock:
            self._orders.put(None)  # the end of its standard input ends the driver, its node and every task
        self._driver_thread.join()

    def room(self) -> dict[str, int]:
        """How many jobs of each class the fleet takes at once, now."""
        return self._room

    def start(self, spec: JobSpec) -> "RayJobHandle":
        """Raises GivenBack where no machine of the fleet can take it any more."""
        with self._lock:
            key = environment_key(spec.build, spec.request)
            choice = self._choose(spec, key)
            if choice is None:
                raise JobReturned(f"no worker of class {spec.hardware} is left")
            handle = RayJobHandle(self, str(next(self._numbers)), spec, key, choice.best)
            self._handles[handle.number] = handle
        body = {"spec": codec.dump_spec(spec).decode(), "options": _options(spec, choice)}
        self.send("start", handle.number, body)
        return handle

    def _choose(self, spec: JobSpec, key: str) -> Placement | None:
        class_ = whole_class(spec.hardware)
        alike = (handle for handle in self._handles.values() if whole_class(handle.spec.hardware) == class_)
        busy = Counter(handle.machine for handle in alike)
        return choose(
            self.members,
            spec.hardware,
            conditions=self._fleet.all_conditions,
            wishes=needs_of(spec.build, spec.hardware),
            holders=self._ready.get(key, ()),
            busy=busy,
        )

    def send(self, word: str, number: str, body: Mapping[str, Any]) -> None:
        """Tell the driver; one that is gone hears nothing, and its jobs are lost anyway."""
        self._orders.put(b"%s %s %s\n" % (word.encode(), number.encode(), orjson.dumps(body)))

    def note_ready(self, handle: "RayJobHandle") -> None:
        """A job's environment is ready where it runs."""
        with self._lock:
            if handle.number in self._handles:
                self._remember(handle.environment, handle.machine)

    def _remember(self, environment: str, node: str) -> None:
        self._ready.setdefault(environment, set()).add(node)
        while len(self._ready) > _ENV_MEMORY:
            del self._ready[next(iter(self._ready))]

    # -- the driver's life, in a thread of its own

    def _keep_driver(self) -> None:
        while not self._closing.is_set():
            problem = self._run_driver()
            self._lose_all()
            if self._closing.is_set():
                return
            self._problem = problem
            # What it said names machines: that is for the log, and not for the jobs' problems, which become evidence.
            log.warning("the connection to Ray ended; it is made anew", reason=problem)
            self._closing.wait(_AGAIN_S)

    def _run_driver(self) -> str:
        """One driver from start to end; why it ended."""
        driver = PipedProcess(self._command, ray_environment(self._environ))
        fleet, orders = self._fleet, self._begin_orders(driver)
        order = {"address": fleet.address, "port": fleet.port, "ip": fleet.ip}
        orders.put(json.dumps(order).encode() + b"\n")
        writer = threading.Thread(target=_forward_orders, args=(driver, orders), name="ray-driver-orders", daemon=True)
        writer.start()
        with driver.stdout:
            for line in driver.stdout:
                self._handle_line(line)
        code = driver.process.wait()
        orders.put(None)
        writer.join(_FAREWELL_S)
        return driver.last_words(_FAREWELL_S) or f"it ended with code {code}"

    def _begin_orders(self, driver: PipedProcess) -> "queue.SimpleQueue[bytes | None]":
        """Orders for this driver alone. They have a thread of their own: a driver that is busy telling reads nothing,
        and whoever hears it must not wait for that.
        """
        with self._lock:
            self.driver_pid = driver.process.pid
            self._orders = queue.SimpleQueue()
            if self._closing.is_set():
                self._orders.put(None)
            return self._orders

    def _handle_line(self, line: bytes) -> None:
        word, number, body = line.split(b" ", 2)
        if word == b"fleet":
            self._update_fleet(json.loads(body))
            return
        handle = self._handles.get(number.decode())
        if handle is None:
            return
        if word == b"placed":
            self._note_place(handle, json.loads(body))
        if word == b"over":
            self._forget(number.decode())
        handle.receive(word.decode(), body)

    def _update_fleet(self, listed: list[dict[str, Any]]) -> None:
        members = tuple(Member(node["id"], node["labels"], node["cpu_jobs"], node["gpus"]) for node in listed)
        with self._lock:
            self.members = members
            self._room = room_of(members, self._fleet.all_conditions)
            waiting = [handle for handle in self._handles.values() if not handle.is_placed]
            stranded = [handle for handle in waiting if self._choose(handle.spec, "") is None]
            there = {member.id for member in members}
            orphaned = [handle for handle in self._handles.values() if handle.node and handle.node not in there]
        for handle in stranded:
            self._give_up(handle, "unplaced", f"no worker of class {handle.spec.hardware} is left")
        for handle in orphaned:  # of a machine that is frozen or cut off, the stream itself says nothing
            self._give_up(handle, "lost", "the machine that ran it is gone: killed, cut off, or restarted")
        if not self._has_fleet.is_set():
            self._problem = ""
            self._has_fleet.set()

    def _give_up(self, handle: "RayJobHandle", word: str, how: str) -> None:
        """End a job of which nothing more is to be heard."""
        self.send("kill", handle.number, {})
        self._forget(handle.number)
        handle.end(word, how)

    def _note_place(self, handle: "RayJobHandle", placement: Mapping[str, Any]) -> None:
        with self._lock:
            handle.node = placement["node"]
            self._ready = {key: nodes - {placement["node"]} for key, nodes in self._ready.items()}
            for key in placement["ready"]:
                self._remember(key, placement["node"])

    def _forget(self, number: str) -> None:
        with self._lock:
            self._handles.pop(number, None)

    def _lose_all(self) -> None:
        with self._lock:
            self.members, self._room = (), {}
            handles, self._handles = list(self._handles.values()), {}
        for handle in handles:
            handle.end("lost" if handle.is_placed else "unplaced", "the dispatcher lost its fleet")


def _options(spec: JobSpec, choice: Placement) -> dict[str, Any]:
    """Ray's scheduling options for a job: one whole GPU, or a place for a CPU job; where it may run, and where it had
    best run.

    The best machine is asked for first; where it has no room at that moment, Ray goes on to the others.
    """
    selector = {name: f"in({','.join(values)})" for name, values in choice.selector.items()}
    needs: dict[str, Any] = {"num_gpus": 1} if spec.hardware.startswith("cuda-") else {"resources": {CPU_JOBS: 1}}
    if not choice.best:
        return {**needs, "label_selector": selector}
    best = {**selector, "ray.io/node-id": choice.best}
    return {**needs, "label_selector": best, "fallback_strategy": [{"label_selector": selector}]}


def _forward_orders(driver: PipedProcess, orders: "queue.SimpleQueue[bytes | None]") -> None:
    while (line := orders.get()) is not None:
        driver.send(line)
    driver.close_stdin()


class RayJobHandle:
    """One job on its way through Ray. `environment` is the key of its environment, `best` where it was sent first."""

    def __init__(self, transport: RayTransport, number: str, spec: JobSpec, environment: str, best: str) -> None:
        self.spec = spec
        self._transport = transport
        self.number = number
        self.environment = environment
        self._best = best
        self._inbox: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._is_asked = False
        self._is_over = False
        self.is_placed = False
        self.node = ""  # where it went, once it has

    @property
    def machine(self) -> str:
        """Where it is, or is meant to be: machines count as busy from the moment that a job is sent to them."""
        return self.node or self._best

    def events(self) -> Generator[Event]:
        """As the protocol says; while no machine has room, progress says so. Raises GivenBack where the job was never
        begun, or where its machine took leave.
        """
        try:
            yield from self._received()
            self._wait_until_over()
        except AgentLost:
            self._wait_until_over()
            raise
        finally:
            self.kill()

    def cancel(self) -> None:
        self._is_asked = True
        self._transport.send("cancel", self.number, {})

    def kill(self) -> None:
        self._is_asked = True
        if not self._is_over:
            self._transport.send("kill", self.number, {})

    def receive(self, word: str, body: bytes) -> None:
        self.is_placed = self.is_placed or word == "placed"
        self._is_over = self._is_over or word == "over"
        self._inbox.put((word, body))

    def end(self, word: str, how: str) -> None:
        """As its stream would end it."""
        self.receive(word, orjson.dumps(how))
        self.receive("over", b"{}")

    def _received(self) -> Generator[Event]:
        heard = time.monotonic()
        while True:
            try:
                word, body = self._inbox.get(timeout=_SAY_WAITING_S)
            except queue.Empty:
                yield from self._bear_silence(time.monotonic() - heard)
                continue
            heard = time.monotonic()
            if word == "event":
                event = self._read(body)
                yield event
                if isinstance(event, JobEnded):
                    return
            elif word == "unplaced":
                if self._is_asked:
                    yield JobEnded(self.spec.job, self.spec.try_no, _CANCELLED)
                    return
                raise JobReturned(orjson.loads(body))
            elif word == "lost":
                raise AgentLost(orjson.loads(body))
            elif word == "over":
                raise AgentLost("its stream ended before its job had")

    def _bear_silence(self, seconds: float) -> Iterator[Event]:
        """Until there is room a job says nothing, so we say that it waits; later a silent one is lost."""
        if not self.is_placed:
            detail = f"for a worker of class {self.spec.hardware} with room"
            yield Provisioning(self.spec.job, self.spec.try_no, "wait", detail)
        elif seconds > _SILENCE_S:
            self.kill()
            raise AgentLost(f"its machine has said nothing for {_SILENCE_S:.0f} s: cut off, or frozen")

    def _read(self, body: bytes) -> Event:
        try:
            event = codec.load_event(body)
        except codec.BadLine as error:
            self.kill()
            raise AgentLost(f"the agent said what is no event: {error}") from None
        if isinstance(event, EnvironmentReady):
            self._transport.note_ready(self)
        if isinstance(event, JobEnded) and event.problem == _CANCELLED and not self._is_asked:
            raise JobReturned("its worker took leave of the fleet")
        return event

    def _wait_until_over(self) -> None:
        """The task ends by itself once its agent has. To kill it would cost Ray a process, and with it the next job
        where Ray had sent one there already.
        """
        until = time.monotonic() + _FAREWELL_S
        while not self._is_over and time.monotonic() < until:
            with suppress(queue.Empty):
                self._inbox.get(timeout=0.1)
