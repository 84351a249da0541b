"""A server whose every door for text gets hostile ones, while two of its threads are busy.

KNOWNGOOD_SOAK_HOSTILE_S says for how long texts are made up; where it is set, forty of each critical shape are sent at
once, too. The seed, KNOWNGOOD_SOAK_SEED, is printed with every failure.
"""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, quote_plus

import psutil
import pytest

from knowngood.store.engine import connect
from tests.commands.test_serve import Served
from tests.hostile.attacked import Watch, busy, processor_s, resident_bytes, sent, served, template_of
from tests.hostile.shapes import CRITICAL, OTHERS, Maker, query_long
from tests.pace import loop_s
from tests.soak.attackers import FORM, JSON, MULTIPART, TEXT, Hostile, by_chance, worst
from tests.waiting import eventually
from tests.web.asking import address_of, client_of, every_path

__all__ = ["served"]

pytestmark = pytest.mark.system

IS_LONG = "KNOWNGOOD_SOAK_HOSTILE_S" in os.environ
HOSTILE_S = float(os.environ.get("KNOWNGOOD_SOAK_HOSTILE_S", "8"))
SEED = int(os.environ.get("KNOWNGOOD_SOAK_SEED", "16"))
SILENT_LOOPS = 100  # of the server's processor, before a question is answered that anybody asks
FEWEST = 4
END_S = 60  # after 9 s a server ends itself (app/knowngood/commands/serve.py)
MOST_PROCESSOR_S = 3
MORE_BYTES = 100_000_000
AT_ONCE = 40
ANSWERED_S = 20
PLAIN = "api/v1/gate?issues=fla-160&build=torch-2.6.0"
EXPECTED = {200, 303, 404, 413, 422, 429, 503}
MOST_TEXT, MOST_QUERY = 5_000_000, 20_000
SIGNS = [
    "\n",
    " ",
    "\t",
    "\0",
    "\r",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "\\",
    "&a ",
    "*a",
    "#",
    ";",
    "=",
    "\U0001f40d",
    "\ud83d",
]


def _json_gate(field: str) -> Callable[[str, str], Hostile]:
    def make(name: str, text: str) -> Hostile:
        files = {"environment": {"name": "r.txt", "content": "torch==2.6.0\n"}, field: {"name": name, "content": text}}
        return Hostile(field, "POST", "/api/v1/gate", JSON, json.dumps({"issues": ["fla-160"], **files}).encode())

    return make


def _form_gate(field: str) -> Callable[[str, str], Hostile]:
    def make(name: str, text: str) -> Hostile:
        head = b'--B\r\nContent-Disposition: form-data; name="issues"\r\n\r\nfla-160\r\n'
        if field == "policy":
            head += b'--B\r\nContent-Disposition: form-data; name="build"\r\n\r\ntorch-2.6.0\r\n'
        head += f'--B\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'.encode()
        return Hostile(f"{field}, multipart", "POST", "/api/v1/gate", MULTIPART, head + _bytes(text) + b"\r\n--B--\r\n")

    return make


def _body(target: str) -> Callable[[str, str], Hostile]:
    return lambda _name, text: Hostile(target, "POST", target, TEXT, _bytes(text))


def _field(target: str, field: str) -> Callable[[str, str], Hostile]:
    return lambda _name, text: Hostile(target, "POST", target, FORM, f"{field}={quote_plus(_bytes(text))}".encode())


def _query(target: str, field: str) -> Callable[[str, str], Hostile]:
    return lambda _name, text: Hostile(
        target, "GET", f"{target}?{field}={quote(_bytes(text[:MOST_QUERY]))[:MOST_QUERY]}", "", b""
    )


DOORS: list[Callable[[str, str], Hostile]] = [
    *(_json_gate("environment"), _json_gate("policy"), _form_gate("environment"), _form_gate("policy")),
    *(_body("/api/v1/errors"), _field("/errors", "text"), _query("/errors", "build")),
    *(
        _field("/my-build", "environment"),
        _field("/upgrade", "environment"),
        _field("/search", "q"),
        _field("/environment", "q"),
    ),
    *(_query("/search", "q"), _query("/api/v1/search", "q"), _query("/matrix", "q"), _query("/api/v1/matrix", "q")),
]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _made(chance: random.Random) -> Hostile:
    """A shape of any size up to its full one, changed here and there, at any door."""
    make: Maker = chance.choice([*CRITICAL, *OTHERS, query_long])
    (most,) = make.__defaults__ or ()
    name, content = make(max(1, int(most ** chance.uniform(0.2, 1))))
    text = content.decode()[:MOST_TEXT]
    for _ in range(chance.choice([0, 0, 1, 3, 9])):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + 2_000)
        other = chance.choice(["", text[at:to] * 2, chance.choice(SIGNS) * chance.choice([1, 50, 5_000])])
        text = text[:at] + other + text[to:]
    hostile = chance.choice(DOORS)(name or "r.txt", text)
    return Hostile(f"{make.__name__} at {hostile.id}", hostile.method, hostile.target, hostile.kind, hostile.body)


def _status(first_line: bytes) -> int:
    """0 where the connection was dropped."""
    return int(first_line.split()[1]) if first_line else 0


def _watched(served: Served, watch: Watch, hostile: Hostile) -> tuple[float, int]:
    """For how long the server was silent meanwhile, and what it answered."""
    told: list[bytes] = []
    sending = threading.Thread(target=lambda: told.append(sent(served, hostile)), daemon=True)
    sending.start()
    silent = watch.ask()
    while sending.is_alive():
        silent = max(silent, watch.ask())
    return silent, _status(told[0])


def _is_calm(served: Served) -> bool:
    """One child waits for the next text (app/knowngood/foreign_text.py), and none reads."""
    return len(template_of(served).children()) == 1 and all(
        served.get(path)[0] == 200 for path in ("healthz", "readyz")
    )


@pytest.mark.timeout(HOSTILE_S + 900)
def test_no_text_keeps_others_waiting_or_the_server_from_ending(served: Served) -> None:
    chance, watch = random.Random(SEED), Watch(served)  # noqa: S311 - no secret
    with busy(served):
        time.sleep(3)  # caches of answers fill
    began_with = resident_bytes(served)
    _fuzz(served, watch, chance)
    assert eventually(lambda: _is_calm(served))
    fuzzed = resident_bytes(served) - began_with
    costs = [_cost(served, make) for make in ((*CRITICAL, query_long) if IS_LONG else CRITICAL[:3])]
    slowest = max(_crowd(served, make) for make in (CRITICAL if IS_LONG else CRITICAL[:1]))
    assert eventually(lambda: _is_calm(served))
    eventually(lambda: resident_bytes(served) < began_with + MORE_BYTES, 60)
    more = resident_bytes(served) - began_with
    took = _ended(served)
    print(  # noqa: T201 - what a soak measured
        f"\nsilent for {max(watch.silent):.2f} s at most; a request took {max(costs):.2f} s of a processor at most; "
        f"others among {AT_ONCE} waited {slowest:.2f} s at most; {began_with / 1e6:.0f} MB, {fuzzed / 1e6:.0f} more "
        f"after all texts and {more / 1e6:.0f} in the end; ended in {took:.1f} s"
    )
    assert not IS_LONG or more < MORE_BYTES


def _fuzz(served: Served, watch: Watch, chance: random.Random) -> None:
    """Texts at the doors for texts; and, one in five, any request at any route."""
    routes = [address_of(path) for path in sorted(every_path(client_of(connect("sqlite://"))))]
    known = worst()
    chance.shuffle(known)
    until, statuses = time.monotonic() + HOSTILE_S, list[int]()
    with busy(served):
        while time.monotonic() < until or len(statuses) < FEWEST:
            is_text = chance.random() < 0.8
            hostile = _made(chance) if is_text else known.pop() if known else by_chance(chance, routes)
            silent, status = _watched(served, watch, hostile)
            place = f"seed {SEED}: {hostile.id}, {len(hostile.body)} bytes, {hostile.method} {hostile.target[:80]}"
            assert silent < SILENT_LOOPS * loop_s(), f"{place}: {silent:.2f} s"
            assert status in EXPECTED if is_text else status != 500, f"{place}: {status}"
            statuses.append(status)
    told = {status: statuses.count(status) for status in sorted({*statuses})}
    print(f"\n{len(statuses)} requests, answered {told}")  # noqa: T201 - what a soak measured


def _at(make: Maker) -> Hostile:
    """A shape at its full size at the door where it is read."""
    name, content = make()
    door = _query("/api/v1/matrix", "q") if make is query_long else _json_gate("environment")
    return door(name, content.decode())


def _cost(served: Served, make: Maker) -> float:
    took, first_line = processor_s(served, _at(make))
    assert _status(first_line) in EXPECTED, make.__name__
    assert took < MOST_PROCESSOR_S, make.__name__
    return took


def _crowd(served: Served, make: Maker) -> float:
    """Many of one shape at once: how long a plain question waited at most meanwhile."""
    hostile = _at(make)
    waits: list[float] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sending = [pool.submit(sent, served, hostile) for _ in range(AT_ONCE)]
        while not waits or not all(one.done() for one in sending):
            began = time.monotonic()
            assert served.get(PLAIN)[0] == 200
            waits.append(time.monotonic() - began)
            time.sleep(0.05)
    assert {_status(one.result()) for one in sending} <= EXPECTED, make.__name__
    assert max(waits) < ANSWERED_S, make.__name__
    return max(waits)


def _ended(served: Served) -> float:
    """How long it took to end while texts were being read."""
    hostile = _at(CRITICAL[-2])
    server, template = psutil.Process(served.process.pid), template_of(served)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(sent, served, hostile)
        assert eventually(lambda: len(template.children()) > 1)
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert served.process.wait(END_S) == 0
        took = time.monotonic() - began
    assert eventually(lambda: not template.is_running())
    return took
