"""Environments read through the door for foreign text (knowngood.foreign_text), as a server and as a command do, beside
the same readers called bare: same process, same run, taken in turns.
"""

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sizes import size
from knowngood import foreign_text
from knowngood.environments.detect import read_environment

FILES = Path(__file__).parents[1] / "tests" / "environments" / "files"
NAMES = ("pip-freeze.txt", "environment.yml", "poetry.lock", "uv.lock")
TIMES = size(200, 3)
APART_S = 0.03  # texts of strangers do not follow each other within the time that a child takes to be made


def run() -> None:
    for name in NAMES:
        _compare(name, (FILES / name).read_bytes())


def _compare(name: str, content: bytes) -> None:
    def bare() -> None:
        read_environment(name, content)

    def through() -> None:
        foreign_text.read(read_environment, name, content)

    spent: dict[str, list[float]] = {"bare": [], "command": [], "server": []}
    for _ in range(TIMES):
        spent["bare"].append(_ms(bare))
        spent["command"].append(_ms(through))
    is_over = threading.Event()
    beside = threading.Thread(target=is_over.wait)  # with a second thread the door takes this process for a server
    beside.start()
    through()  # its template starts
    for _ in range(TIMES):
        spent["bare"].append(_ms(bare))
        time.sleep(APART_S)
        spent["server"].append(_ms(through))
    is_over.set()
    beside.join()
    median = {one: statistics.median(times) for one, times in spent.items()}
    more = ", ".join(f"{one} {median[one] - median['bare']:+.1f} ms" for one in ("command", "server"))
    print(f"{name}, {len(content):,} bytes: {median['bare']:.1f} ms bare; {more}", flush=True)


def _ms(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)
