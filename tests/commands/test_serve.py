"""`knowngood serve` as processes: what they count together, and how they end."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0


@dataclass
class Served:
    process: subprocess.Popen[str]
    log: Path
    folder: Path
    address: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.address}{path}", timeout=PATIENCE_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def answering(self) -> set[int]:
        """The processes that have counted a request."""
        return {int(name.stem.partition("_")[2]) for name in self.folder.rglob("counter_*.db")}

    def counted(self, route: str) -> float:
        _, text = self.get("metrics")
        samples = (one for family in text_string_to_metric_families(text) for one in family.samples)
        return sum(
            one.value for one in samples if one.name == "knowngood_http_requests_total" and one.labels["route"] == route
        )


@contextmanager
def serving(folder: Path, processes: int, **more: str) -> Iterator[Served]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "KNOWNGOOD_DATA_DIR": str(folder / "data"),
        "KNOWNGOOD_LOG_FORMAT": "json",
        "KNOWNGOOD_SHIPPED": "false",
        **more,
    }
    log = folder / "serve.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "knowngood", "serve", "--port", "0", "--processes", str(processes)],
            env=environment,
            cwd=ROOT,
            stdout=file,
            stderr=file,
            text=True,
        )
    served = Served(process, log, folder)
    try:
        wait_until(lambda: "serving" in log.read_text(), served)
        found = re.search(r'"address":"([^"]+)"', log.read_text())
        assert found
        served.address = found[1]
        wait_until(lambda: served.get("readyz")[0] == 200, served)
        yield served
    finally:
        if process.poll() is None:
            for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                with suppress(psutil.NoSuchProcess):  # some end with the one that was killed before them
                    one.kill()
        process.wait()


def wait_until(is_so: Callable[[], bool], served: Served) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, served.log.read_text()
        time.sleep(0.2)


@pytest.mark.system
@pytest.mark.timeout(600)
def test_several_processes_count_as_one_also_when_one_of_them_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, 2) as served:
        asked = 0

        def ask() -> bool:
            nonlocal asked
            is_answered = served.get("api/v1/runs")[0] == 200
            asked += is_answered
            return is_answered

        wait_until(lambda: ask() and len(served.answering()) == 2, served)
        assert [served.counted("/api/v1/runs") for _ in range(6)] == [asked] * 6, "whichever of them is asked"
        before = served.answering()
        psutil.Process(min(before)).kill()
        wait_until(lambda: served.counted("/api/v1/runs") == asked, served)
        wait_until(lambda: ask() and len(served.answering() - before) == 1, served)
        assert served.counted("/api/v1/runs") >= asked
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(PATIENCE_S) == 0
    assert not list(tmp_path.glob("knowngood-counters-*"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.system)])
def test_asked_to_stop_it_says_so_ends_streams_finishes_what_began_and_exits_well(
    tmp_path: Path, processes: int
) -> None:
    with serving(tmp_path, processes, KNOWNGOOD_DRAIN_S="15") as served:
        stream = http.client.HTTPConnection(served.host, timeout=PATIENCE_S)
        stream.request("GET", "/api/v1/events")
        followed = stream.getresponse()
        assert followed.status == 200
        body = json.dumps({"text": "RuntimeError: nothing that anybody knows"}).encode()
        slow = begun(served, body)
        served.process.send_signal(signal.SIGTERM)
        wait_until(lambda: served.get("readyz")[0] == 503, served)
        assert served.get("healthz")[0] == 200
        assert served.get("api/v1/runs")[0] == 200, "what is asked until then is answered"
        followed.read()  # to its end, which the server makes
        followed.close()
        stream.close()
        wait_until(lambda: served.get("healthz")[0] == 0, served)
        slow.send(body[10:])
        with slow.getresponse() as finished:
            assert finished.status == 200, "what had begun is finished, after new connections are refused"
        slow.close()
        assert served.process.wait(PATIENCE_S) == 0
    events = [json.loads(line) for line in served.log.read_text().splitlines()]
    assert {"serving", "request"} <= {one["event"] for one in events}
    assert not [one for one in events if one["level"] == "error"]


def begun(served: Served, body: bytes) -> http.client.HTTPConnection:
    """A request of which the server has read the head and the first bytes."""
    connection = http.client.HTTPConnection(served.host, timeout=PATIENCE_S)
    connection.putrequest("POST", "/api/v1/errors")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    connection.send(body[:10])
    return connection


@pytest.mark.system
@pytest.mark.timeout(600)
def test_nobody_is_left_where_the_supervisor_was_killed(tmp_path: Path) -> None:
    with serving(tmp_path, 2) as served:
        children = psutil.Process(served.process.pid).children(recursive=True)
        served.process.kill()
        _, alive = psutil.wait_procs(children, PATIENCE_S)
        assert alive == []
