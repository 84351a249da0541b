"""Requests made to keep a server busy, and clients that never finish: everybody else is answered meanwhile.

KNOWNGOOD_SOAK_HOSTILE_S says for how long requests are made up, KNOWNGOOD_SOAK_SLOW how many heads and as many bodies
are left half sent, KNOWNGOOD_SOAK_SLOW_S for how long. The seed is printed with every failure.
"""

import asyncio
import os
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

from knowngood.app.store.engine import connect
from tests.commands.test_serve import Served, serving
from tests.fixtures.databases import NewStore
from tests.soak.attackers import Hostile, by_chance, worst
from tests.web.asking import address_of, client_of, every_path

pytestmark = pytest.mark.system

HOSTILE_S = float(os.environ.get("KNOWNGOOD_SOAK_HOSTILE_S", "8"))
SLOW = int(os.environ.get("KNOWNGOOD_SOAK_SLOW", "60"))
SLOW_S = float(os.environ.get("KNOWNGOOD_SOAK_SLOW_S", "4"))
SEED = int(os.environ.get("KNOWNGOOD_SOAK_SEED", "16"))
SILENT_S = 0.5 if "KNOWNGOOD_SOAK_HOSTILE_S" in os.environ else 1.0
MOST_BYTES = 400_000_000
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
        before, began = self._spent(), time.monotonic()
        with urllib.request.urlopen(f"{self.served.address}{path}", timeout=PATIENCE_S) as response:
            response.read()
        self.silent.append(min(self._spent() - before, time.monotonic() - began))
        return self.silent[-1]

    def _spent(self) -> float:
        times = psutil.Process(self.served.process.pid).cpu_times()
        return times.user + times.system


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


@pytest.mark.timeout(HOSTILE_S + 300)
def test_no_request_keeps_all_others_waiting(served: Served) -> None:
    chance, watch = random.Random(SEED), Watch(served)  # noqa: S311 - no secret
    routes = [address_of(path) for path in sorted(every_path(client_of(connect("sqlite://"))))]
    known = worst()
    chance.shuffle(known)
    until, asked = time.monotonic() + HOSTILE_S, 0
    with busy(served):
        while time.monotonic() < until:
            hostile = known.pop() if known else by_chance(chance, routes)
            told: list[bytes] = []
            sending = threading.Thread(target=lambda one=hostile, to=told: to.append(sent(served, one)), daemon=True)
            sending.start()
            silent = watch.ask()
            while sending.is_alive():
                silent = max(silent, watch.ask())
            place = f"seed {SEED}: {hostile.id}, {len(hostile.body)} bytes, {hostile.method} {hostile.target[:80]}"
            assert silent < SILENT_S, f"{place}: {silent:.2f} s"
            assert b" 500 " not in told[0], place
            asked += 1
    print(f"\n{asked} requests; silent for {max(watch.silent):.2f} s at most")  # noqa: T201 - what a soak measured
    assert asked > 3


# -- slow clients ------------------------------------------------------------------------------------------------------

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
QUESTION = (
    b"POST /api/v1/gate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n{"
)


async def crawl(served: Served, begin: bytes, source: str) -> None:
    """One byte a second; whoever is put out comes back. Each from an address of its own: no limit for one helps."""
    host, _, port = served.host.partition(":")
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
            try:
                writer.write(begin)
                while not writer.is_closing():
                    await asyncio.sleep(1)
                    writer.write(b"x")
                    await writer.drain()
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.5)


async def besieged(served: Served, watch: Watch) -> int:
    """The largest resident set of the server meanwhile."""
    sources = [f"127.0.{1 + n // 250}.{1 + n % 250}" for n in range(2 * SLOW)]
    # Some of the bodies come in a flood at first, up to the last bytes.
    begins = [HEAD if n % 2 else QUESTION + b"x" * (7_000_000 if n % 16 == 0 else 100) for n in range(2 * SLOW)]
    crawling = [asyncio.create_task(crawl(served, *one)) for one in zip(begins, sources, strict=True)]
    most, until = 0, time.monotonic() + SLOW_S
    while time.monotonic() < until:
        for path in ("healthz", "", "api/v1/gate?issues=fla-160&build=torch-2.6.0"):
            await asyncio.to_thread(watch.ask, path)
        most = max(most, psutil.Process(served.process.pid).memory_info().rss)
    for task in crawling:
        task.cancel()
    await asyncio.gather(*crawling, return_exceptions=True)
    return most


@pytest.mark.timeout(SLOW_S + 300)
def test_half_sent_heads_and_bodies_keep_nobody_else_waiting(served: Served) -> None:
    watch = Watch(served)
    most = asyncio.run(besieged(served, watch))
    slowest = sorted(watch.silent)[int(len(watch.silent) * 0.99)]
    print(f"\n{len(watch.silent)} answers, p99 {slowest:.3f} s; {most / 1e6:.0f} MB")  # noqa: T201 - what a soak measured
    assert slowest < 0.5
    assert most < MOST_BYTES
