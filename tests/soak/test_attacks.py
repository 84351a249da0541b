"""Clients that never finish: everybody else is answered meanwhile.

KNOWNGOOD_SOAK_SLOW says how many heads and as many bodies are left half sent, KNOWNGOOD_SOAK_SLOW_S for how long.
Requests that are made to keep a server busy: tests/hostile/test_doors.py.
"""

import asyncio
import os
import time
from contextlib import suppress

import psutil
import pytest

from tests.commands.test_serve import Served
from tests.hostile.attacked import Watch, served
from tests.pace import loop_s

__all__ = ["served"]

pytestmark = pytest.mark.system

SLOW = int(os.environ.get("KNOWNGOOD_SOAK_SLOW", "60"))
SLOW_S = float(os.environ.get("KNOWNGOOD_SOAK_SLOW_S", "4"))
MOST_LOOPS = 50  # of the server's processor for one answer; 2 here (2026-11-27)
MOST_BYTES = 400_000_000

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
    assert slowest < MOST_LOOPS * loop_s()
    assert most < MOST_BYTES
