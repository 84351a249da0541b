"""The gate beside a bare FastAPI route that returns a constant of the same size: same server, same run, taken in turns.

Behind it lie 1,000 issues x 200 builds, each with its cell. Attempts lie in a table that the gate never reads; with
KNOWNGOOD_BENCH_ATTEMPTS they are there (2,000,000 take 3 GB and ten minutes to write). "Same" asks one question again
and again, as CI farms do; "different" asks another each time, so that every decision is made.
"""

import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psutil
import sqlalchemy as sa

from benchmarks.sizes import size
from knowngood.catalogue_digest import shipped_evidence
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, Issue
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.serialization import codec
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.evidence.attempt_codec import attempt_row
from knowngood.store.evidence.cells import touch
from knowngood.store.migrations import migrate
from knowngood.store.tables import attempts, cells
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue

ISSUES, BUILDS = size((1000, 200), (20, 200))
ATTEMPTS = int(os.environ.get("KNOWNGOOD_BENCH_ATTEMPTS", "0"))
WATCHED = 20
REQUESTS, ROUNDS = size((400, 5), (20, 1))
PROCESSES = 2
_AT_ONCE = 10_000

_BARE = """
import sys, uvicorn
from fastapi import FastAPI, Response
app = FastAPI()
CONSTANT = b"x" * int(sys.argv[2])
@app.get("/constant")
def constant() -> Response:
    return Response(CONSTANT, media_type="application/json")
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", server_header=False)
"""


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = _fill(Path(folder))
        with _gates(folder) as (ports, processes):
            _first_answers(ports)
            size = len(_get(ports[0], _question(0)))
            with _bare(size) as bare:
                _compare(ports[0], bare, size)
            resident = ", ".join(f"{psutil.Process(one.pid).memory_info().rss / 1e6:.0f} MB" for one in processes)
            print(f"memory of each server process: {resident}", flush=True)
            _news(engine, ports)
        engine.dispose()
    _start_up()


# -- what lies behind it -----------------------------------------------------------------------------------------------


def _fill(folder: Path) -> Engine:
    issues = [make_issue(f"toy-{n}", workarounds=("eager", "clone")) for n in range(1, ISSUES + 1)]
    builds = [make_build(f"2.{minor}.{patch}+cu124") for minor in range(1, 41) for patch in range(5)]
    engine = connect(f"sqlite:///{folder / 'knowngood.sqlite3'}")
    migrate(engine)
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, NOON)
    begun = time.perf_counter()
    with unit_of_work(engine) as s:
        touch(s)
        for issue in issues:
            rows = [_row(_cell(issue, build, column)) for column, build in enumerate(builds)]
            s.execute(sa.insert(cells), rows)
    for start in range(0, ATTEMPTS, _AT_ONCE):
        _write_attempts(engine, issues, builds, start)
    print(
        f"{ISSUES} x {BUILDS} cells, {ATTEMPTS:,} attempts written in {time.perf_counter() - begun:.0f} s", flush=True
    )
    return engine


def _cell(issue: Issue, build: Build, column: int, verdict: Verdict | None = None) -> Cell:
    found = verdict or (Verdict.NOT_AFFECTED if (int(issue.id[4:]) + column) % 3 else Verdict.AFFECTED)
    cures = {"eager": WorkaroundFinding(WorkaroundVerdict.EFFECTIVE)} if found is Verdict.AFFECTED else {}
    measured = datetime.now(UTC) - timedelta(days=column % 100)
    return Cell(issue.id, build.id, HARDWARE, found, NOT_RUN, measured, workarounds=cures)


def _row(cell: Cell, changed: int = 0) -> dict[str, object]:
    doc = codec.CELL.dump_json(cell, exclude_defaults=True).decode()
    place = {"issue": cell.issue, "build": cell.build, "hardware": cell.hardware}
    return {**place, "verdict": cell.verdict, "measured_at": cell.measured_at, "changed": changed, "doc": doc}


def _write_attempts(engine: Engine, issues: Sequence[Issue], builds: Sequence[Build], start: int) -> None:
    rows = []
    for number in range(start, min(start + _AT_ONCE, ATTEMPTS)):
        issue, build = issues[number % ISSUES], builds[number // ISSUES % BUILDS]
        made = make_attempt(Outcome.PASS, issue=issue, build=build, arm=BASELINE, ordinal=number)
        rows.append(attempt_row(made, NOON))
    with unit_of_work(engine) as s:
        s.execute(sa.insert(attempts), rows)


# -- asking ------------------------------------------------------------------------------------------------------------


def _question(number: int) -> str:
    build = f"torch-2.{1 + number % 40}.{number // 40 % 5}+cu124"
    watched = ",".join(f"toy-{1 + (number + one * (37 + number // ISSUES)) % ISSUES}" for one in range(WATCHED))
    return f"/api/v1/gate?build={quote(build)}&issues={watched}"


def _compare(gate: int, bare: int, size: int) -> None:
    rounds = []
    asked = iter(range(1, 10**6))
    for _ in range(ROUNDS):
        constant = _rate(bare, lambda: "/constant")
        same = _rate(gate, lambda: _question(0))
        different = _rate(gate, lambda: _question(next(asked)))
        rounds.append((constant, same, different))
    print(f"an answer about {WATCHED} issues is {size:,} bytes; {ROUNDS} rounds of {REQUESTS} requests, one at a time")
    for name, place in (("constant of that size", 0), ("gate, same question", 1), ("gate, different ones", 2)):
        rates = sorted(one[place].per_s for one in rounds)
        p99 = statistics.median(one[place].p99_ms for one in rounds)
        share = sorted(one[place].per_s / one[0].per_s for one in rounds)
        print(
            f"{name:<22} {statistics.median(rates):>6.0f} requests/s ({rates[0]:.0f} to {rates[-1]:.0f}), "
            f"p99 {p99:.1f} ms, {statistics.median(share):.0%} of the constant ({share[0]:.0%} to {share[-1]:.0%})",
            flush=True,
        )


class _Rate:
    def __init__(self, seconds: Sequence[float]) -> None:
        self.per_s = len(seconds) / sum(seconds)
        self.p99_ms = statistics.quantiles(seconds, n=100)[98] * 1000


def _rate(port: int, address: Callable[[], str]) -> _Rate:
    """One connection that is kept, as every client of a service has."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    seconds = []
    for _ in range(REQUESTS):
        asked = address()
        begun = time.perf_counter()
        connection.request("GET", asked)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - begun)
        assert answer.status == 200, answer.status
    connection.close()
    return _Rate(seconds)


def _get(port: int, address: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", address)
    body = connection.getresponse().read()
    connection.close()
    return body


def _first_answers(ports: Sequence[int]) -> None:
    for port in ports:
        begun = time.perf_counter()
        _get(port, _question(0))
        print(f"first answer of a process, with loading all: {time.perf_counter() - begun:.1f} s", flush=True)


def _news(engine: Engine, ports: Sequence[int]) -> None:
    """Write one cell anew, and ask every process until each tells it."""
    times = []
    for number in range(10):
        issue, build = make_issue("toy-1", workarounds=("eager", "clone")), make_build("2.1.0+cu124")
        verdict = Verdict.AFFECTED if number % 2 else Verdict.NOT_AFFECTED
        address = f"/api/v1/gate?build={quote(build.id)}&issues=toy-1"
        with unit_of_work(engine) as s:
            touch(s)
            generation = s.execute(sa.text("SELECT value FROM meta WHERE name = 'generation'")).scalar_one()
            place = (cells.c.issue == issue.id) & (cells.c.build == build.id)
            s.execute(sa.update(cells).where(place).values(**_row(_cell(issue, build, 0, verdict), generation)))
        begun = time.perf_counter()
        waiting = set(ports)
        while waiting:
            waiting = {port for port in waiting if _verdict(port, address) != verdict}
        times.append(time.perf_counter() - begun)
    print(
        f"a new result is seen by all {len(ports)} processes after {statistics.median(times):.2f} s "
        f"(at most {max(times):.2f} of {len(times)})",
        flush=True,
    )


def _verdict(port: int, address: str) -> str:
    return str(json.loads(_get(port, address))["reasons"][0]["verdict"])


# -- processes ---------------------------------------------------------------------------------------------------------


@contextmanager
def _gates(folder: str) -> Iterator[tuple[list[int], list[subprocess.Popen[bytes]]]]:
    ports = [_free_port() for _ in range(PROCESSES)]
    environment = {**os.environ, "KNOWNGOOD_DATA_DIR": folder, "KNOWNGOOD_REQUESTS_PER_S": "0"}
    command = [sys.executable, "-m", "knowngood", "serve", "--port"]
    processes = [
        subprocess.Popen([*command, str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for port in ports
    ]
    try:
        for port in ports:
            _wait_for(port)
        yield ports, processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


@contextmanager
def _bare(size: int) -> Iterator[int]:
    port = _free_port()
    process = subprocess.Popen([sys.executable, "-c", _BARE, str(port), str(size)])
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not come up within 60 s")


# -- the command -------------------------------------------------------------------------------------------------------


def _start_up() -> None:
    """CPU seconds beside the wall clock's: the former say more where others use the machine."""
    knowngood = str(Path(sys.executable).with_name("knowngood"))
    with tempfile.TemporaryDirectory() as folder, _shipped(folder, knowngood) as address:
        snapshot = str(Path(folder) / "snapshot")
        environment = {**os.environ, "KNOWNGOOD_DATA_DIR": folder}
        made = subprocess.run([knowngood, "snapshot", "-o", snapshot], env=environment, capture_output=True, check=True)
        key = made.stdout.decode().strip()
        asked = ["--build", "torch-2.5.1+cu124", "--issues", "xla-8464"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "gate --server": [knowngood, "gate", *asked, "--server", address],
            "gate --snapshot": [knowngood, "gate", *asked, "--snapshot", snapshot, "--public-key", key],
            "gate, local store": [knowngood, "gate", *asked],
            "knowngood --help": [knowngood, "--help"],
        }
        for name, command in commands.items():
            cpu, wall = zip(*[_once(command, environment) for _ in range(size(15, 1))], strict=True)
            print(
                f"{name:<18} CPU {statistics.median(cpu) * 1000:.0f} ms, wall {statistics.median(wall) * 1000:.0f} ms "
                f"(least {min(cpu) * 1000:.0f} and {min(wall) * 1000:.0f})",
                flush=True,
            )


@contextmanager
def _shipped(folder: str, knowngood: str) -> Iterator[str]:
    """A server over the shipped evidence."""
    environment = {**os.environ, "KNOWNGOOD_DATA_DIR": folder}
    evidence = [str(path) for path in sorted(shipped_evidence(), key=lambda one: one.stat().st_size)[: size(None, 1)]]
    subprocess.run([knowngood, "import", *evidence], env=environment, capture_output=True, check=True)
    port = _free_port()
    command = [knowngood, "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _once(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=False)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
