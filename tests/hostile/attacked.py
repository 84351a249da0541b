"""A server that is attacked while two of its threads are busy, and what watches it."""

import random
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil
import pytest

from tests.commands.test_serve import Served, serving
from tests.fixtures.databases import NewStore
from tests.soak.attackers import Hostile

PATIENCE_S = 120.0
BUSY = ["upgrade?from=torch-2.6.0", "compare?a=2.6.0&b=2.7.1", "api/v1/matrix?builds=all", "quality"]


@dataclass
class Watch:
    """Asks whether the server answers, again and again. `silent` are the seconds of the server's own time that each
    answer took, so that what else keeps this machine busy is not held against it.
    """

    served: Served
    silent: list[float] = field(default_factory=list)

    def ask(self, path: str = "healthz") -> float:
        process = psutil.Process(self.served.process.pid)
        before, began = _spent(process), time.monotonic()
        with urllib.request.urlopen(f"{self.served.address}{path}", timeout=PATIENCE_S) as response:
            response.read()
        self.silent.append(min(_spent(process) - before, time.monotonic() - began))
        return self.silent[-1]


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory, new_store: NewStore, filled_store: str) -> Iterator[Served]:
    settings = {"KNOWNGOOD_DATABASE_URL": new_store(filled_store), "KNOWNGOOD_REQUESTS_PER_S": "0"}
    with serving(tmp_path_factory.mktemp("served"), 1, **settings) as served:
        for path in ("", "healthz", *BUSY):
            served.get(path)
        yield served


@contextmanager
def busy(served: Served) -> Iterator[None]:
    """Two threads of the server that always have something to do."""
    is_over = threading.Event()

    def ask(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 - no secret
        while not is_over.is_set():
            path = chance.choice(BUSY)
            served.get(f"{path}{'&' if '?' in path else '?'}lang={chance.random()}")

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    yield
    is_over.set()
    for thread in threads:
        thread.join(PATIENCE_S)


def sent(served: Served, hostile: Hostile) -> bytes:
    """The first line of the answer; empty where there was none."""
    host, _, port = served.host.partition(":")
    got = b""
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        with suppress(OSError):  # refused before all of it was sent
            for piece in hostile.wire:
                connection.sendall(piece)
        while b"\r\n" not in got and (more := connection.recv(4096)):
            got += more
    return got.partition(b"\r\n")[0]


def template_of(served: Served) -> psutil.Process:
    """The process that forks for each text (`app/knowngood/foreign_text.py`)."""
    (template,) = psutil.Process(served.process.pid).children()
    return template


def resident_bytes(served: Served) -> int:
    """Of the server and its template."""
    return sum(one.memory_info().rss for one in (psutil.Process(served.process.pid), template_of(served)))


def processor_s(served: Served, hostile: Hostile) -> tuple[float, bytes]:
    """What one request costs the server, its template and the child that reads for it; and the answer's first line.

    Nobody waits for a child, so what it used is looked at while it lives.
    """
    whole = [psutil.Process(served.process.pid), template_of(served)]
    before = sum(_spent(one) for one in whole)
    told: list[bytes] = []
    sending = threading.Thread(target=lambda: told.append(sent(served, hostile)), daemon=True)
    sending.start()
    children: dict[int, float] = {}
    while sending.is_alive():
        for one in whole[1].children():
            with suppress(psutil.Error):
                children[one.pid] = _spent(one)
        sending.join(0.02)
    return sum(_spent(one) for one in whole) - before + sum(children.values()), told[0]


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
