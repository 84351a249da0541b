"""Faults, drawn by chance from a seed: what is struck, how, and how long it took until it did its work again.

Each lane has one target, which is struck again only once it has recovered; lanes go on side by side. What dies three
times in a row is given up by the rule (tests/store/jobs/test_event_recorder.py), and asked again by the next run.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import psutil
import sqlalchemy as sa

from knowngood.store.engine import Engine, connect
from knowngood.store.tables import attempts, runs
from tests.soak.fleet import WORKERS, Fleet
from tests.soak.hosts import Service
from tests.soak.reader import Reader
from tests.waiting import eventually

_RECOVERY_S = 600.0
_LOOK_S = 0.15
_VICTIM_S = 30.0

Strike = Callable[[random.Random], bool]
"""Does it, to its end; False where there was nobody to be struck."""


@dataclass(frozen=True)
class Fault:
    kind: str
    at: float
    """Seconds since the first."""
    recovered_s: float | None
    """From the end of the fault until progress was seen; None where it never was."""


class Progress(threading.Thread):
    """The progress of the work as the store has it, again and again: `results` were counted, so many runs are
    `unfinished`.
    """

    def __init__(self, database: str) -> None:
        super().__init__(name="progress", daemon=True)
        separator = "&" if "?" in database else "?"
        self._engine: Engine = connect(f"{database}{separator}connect_timeout=3")
        self._ending = threading.Event()
        self._looked_at = 0.0
        self.results = 0
        self.grew_after = 0.0
        """Results were added after this time."""
        self.unfinished = 1

    def stop(self) -> None:
        self._ending.set()
        self.join()
        self._engine.dispose()

    def run(self) -> None:
        while not self._ending.wait(_LOOK_S):
            try:
                self._look()
            except sa.exc.SQLAlchemyError:
                continue  # it is down, which is among the faults

    def _look(self) -> None:
        now = time.time()
        with self._engine.connect() as connection:

            def ask(query: sa.Select[Any]) -> int:
                return int(connection.execute(query).scalar_one() or 0)

            results = ask(sa.select(sa.func.count()).select_from(attempts))
            if results > self.results:
                self.grew_after, self.results = self._looked_at, results
            self.unfinished = ask(sa.select(sa.func.count()).select_from(runs).where(runs.c.finished_at.is_(None)))
        self._looked_at = now


@dataclass(frozen=True)
class Kind:
    """One way to strike. `weight` is how often it is drawn. What `is_long` is no part of a short run: it takes half a
    minute or more until work goes on.
    """

    name: str
    weight: int
    strike: Strike
    is_long: bool = False


@dataclass(frozen=True)
class Lane:
    """A target, the ways to strike it, and how one sees that it works again after a moment."""

    name: str
    kinds: Sequence[Kind]
    works_since: Callable[[float], bool]
    pause_s: float


@dataclass
class Storm:
    """The lanes at work, until it is told to end. Seeded: each lane draws its own faults, in its own order."""

    lanes: Sequence[Lane]
    seed: int
    progress: Progress
    of_each: int
    """So many faults of each lane, none of which is long and no two of a kind; 0: on and on, of every kind."""
    faults: list[Fault] = field(default_factory=list)
    _calming: threading.Event = field(default_factory=threading.Event)
    _began: float = field(default_factory=time.monotonic)

    @contextmanager
    def raging(self) -> Iterator[Callable[[], bool]]:
        """Tells whether any lane still strikes; in the end every fault that is under way ends first."""
        self._began = time.time()
        threads = [threading.Thread(target=self._go, args=(lane,), name=lane.name, daemon=True) for lane in self.lanes]
        for thread in threads:
            thread.start()
        try:
            yield lambda: any(thread.is_alive() for thread in threads)
        finally:
            self._calming.set()
            for thread in threads:
                thread.join()

    def _go(self, lane: Lane) -> None:
        chance = random.Random(f"{self.seed} {lane.name}")  # noqa: S311 - chance to be repeated, not to be secret
        for kind in self._drawn(lane, chance):
            if self._calming.wait(chance.uniform(0.0, lane.pause_s)):
                return
            began = time.time()
            if not kind.strike(chance):
                continue
            ended = time.time()
            recovered = self._recovered(lane, ended)
            fault = Fault(f"{lane.name.rstrip('12')}: {kind.name}", began - self._began, recovered)
            print(fault, flush=True)  # noqa: T201 - whoever waits for it with -s sees that it goes on
            self.faults.append(fault)

    def _drawn(self, lane: Lane, chance: random.Random) -> Iterator[Kind]:
        if self.of_each:
            yield from chance.sample([kind for kind in lane.kinds if not kind.is_long], self.of_each)
            return
        while True:
            yield chance.choices(lane.kinds, [kind.weight for kind in lane.kinds])[0]

    def _recovered(self, lane: Lane, ended: float) -> float | None:
        until = ended + _RECOVERY_S
        while not lane.works_since(ended):
            if time.time() > until:
                return None
            if not self.progress.unfinished and lane.name in {*WORKERS, "lead"}:
                break  # there is nothing left that it could do
            time.sleep(_LOOK_S)
        return time.time() - ended


def lanes_of(fleet: Fleet, progress: Progress, reader: Reader, pause_s: float) -> list[Lane]:
    services = fleet.services

    def answers(since: float) -> bool:
        return reader.good_at > since

    def goes_on(since: float) -> bool:
        return progress.grew_after > since

    return [
        Lane("web", _ways_for_web(services["web"]), answers, pause_s),
        Lane("PostgreSQL", _ways_for_postgres(services["postgres"]), lambda t: answers(t) and goes_on(t), pause_s),
        *(
            Lane(name, _ways_for_a_worker(services[name]), partial(_runs_arms, services[name]), pause_s)
            for name in WORKERS
        ),
        Lane("lead", _ways_for_the_lead(services["dispatcher"], services["ray-head"]), goes_on, pause_s),
    ]


def _ways_for_web(web: Service) -> tuple[Kind, ...]:
    return (
        Kind("one of two processes killed", 3, _kill_one(web, "spawn_main")),
        Kind("killed", 1, _kill(web)),
        Kind("frozen", 4, _for_a_while(web.frozen)),
        Kind("cut off", 4, _for_a_while(web.host.cut_off)),
    )


def _ways_for_postgres(postgres: Service) -> tuple[Kind, ...]:
    return (
        Kind("killed", 2, _kill(postgres)),
        Kind("frozen", 2, _for_a_while(postgres.frozen)),
        Kind("cut off", 2, _for_a_while(postgres.host.cut_off)),
    )


def _ways_for_a_worker(worker: Service) -> tuple[Kind, ...]:
    return (
        Kind("agent killed", 4, _kill_one(worker, "knowngood_workers.agent.agent")),
        Kind("raylet killed", 1, _kill_one(worker, "raylet/raylet")),
        Kind("killed", 1, _kill(worker)),
        Kind("frozen", 5, _for_a_while(worker.frozen)),
        Kind("cut off", 5, _for_a_while(worker.host.cut_off)),
        Kind("cut off until the fleet gives it up", 1, _for_a_while(worker.host.cut_off, 20.0), is_long=True),
    )


def _ways_for_the_lead(dispatcher: Service, head: Service) -> tuple[Kind, ...]:
    return (
        Kind("dispatcher killed", 3, _kill(dispatcher)),
        Kind("dispatcher's driver killed", 2, _kill_one(dispatcher, "knowngood_workers.ray.driver_process")),
        Kind("dispatcher frozen", 4, _for_a_while(dispatcher.frozen)),
        Kind("dispatcher and head cut off", 4, _for_a_while(dispatcher.host.cut_off)),
        Kind("head killed", 1, _kill(head), is_long=True),
    )


def _kill(service: Service) -> Strike:
    def strike(_chance: random.Random) -> bool:
        service.kill()
        return True

    return strike


def _kill_one(service: Service, word: str) -> Strike:
    """One of its processes with `word` in the command line, once there is one."""

    def strike(chance: random.Random) -> bool:
        if not eventually(lambda: bool(service.find(word)), _VICTIM_S):
            return False
        with suppress(psutil.NoSuchProcess, IndexError):
            chance.choice(service.find(word)).kill()
            return True
        return False

    return strike


def _for_a_while(hold: Callable[[], AbstractContextManager[None]], seconds: float = 0.0) -> Strike:
    def strike(chance: random.Random) -> bool:
        lasts_s = seconds or chance.uniform(0.3, 4.0)
        with hold():
            time.sleep(lasts_s)
        return True

    return strike


def _runs_arms(worker: Service, since: float) -> bool:
    """A process of an arm is there that began after that: the machine is in the fleet, and trusted with a job."""
    found = worker.find("workers/knowngood_workers/standalone/harness.py")
    with suppress(psutil.NoSuchProcess):
        return bool(found) and found[-1].create_time() > since
    return False


def report(faults: Sequence[Fault]) -> str:
    """How many of each kind there were, and how long it took until work went on: median and worst, in seconds."""
    lines = [f"{len(faults)} faults survived; seconds until work went on (median, worst):"]
    for kind in sorted({fault.kind for fault in faults}):
        times = [fault.recovered_s for fault in faults if fault.kind == kind and fault.recovered_s is not None]
        lines += [f"  {kind:50} {len(times):4}  {median(times):6.1f} {max(times):6.1f}"] if times else []
    return "\n".join(lines)
