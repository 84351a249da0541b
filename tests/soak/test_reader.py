"""Whoever reads the dashboard during the fleet's soak would notice a lie, a lost result, and an error."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.soak.hosts import Network, Service, supervised, why_no_hosts
from tests.soak.reader import Calm, Reader
from tests.waiting import eventually

TRUE = Calm({("toy-1", "torch-1"): "affected"}, {("toy-1", "torch-1"): "block"})
READY = [200, {"status": "ready"}]
BLOCKED = [200, {"decision": "block"}]
AWAY = [503, {"detail": "the database cannot be used"}]

# Answers to each path one after the other, the last one for ever.
SERVER = """
import http.server, json, sys
told = json.loads(sys.argv[1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answers = told[self.path.partition("?")[0]]
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""


def matrix(verdict: str, results: int) -> list[Any]:
    cell = {"issue": "toy-1", "build": "torch-1", "verdict": verdict, "attempts": {"match": results}}
    return [200, {"cells": [cell]}]


@pytest.mark.parametrize(
    ("ready", "matrices", "gate", "noticed"),
    [
        pytest.param(READY, [matrix("not_run", 0), matrix("affected", 1)], BLOCKED, "", id="nothing is wrong"),
        pytest.param(READY, [AWAY, matrix("affected", 1)], BLOCKED, "", id="503 with a reason is no lie"),
        pytest.param(READY, [matrix("not_affected", 1)], BLOCKED, "not affected", id="a cell that lies"),
        pytest.param(READY, [matrix("affected", 2), matrix("affected", 1)], BLOCKED, "has 1", id="a result is lost"),
        pytest.param(READY, [matrix("affected", 1)], [200, {"decision": "pass"}], "says pass", id="a gate that lies"),
        pytest.param([500, {"detail": "oh"}], [matrix("affected", 1)], BLOCKED, "/readyz: 500", id="an error"),
        pytest.param([503, {}], [matrix("affected", 1)], BLOCKED, "/readyz: 503", id="503 without a reason"),
    ],
)
def test_a_reader_notices(ready: list[Any], matrices: list[Any], gate: list[Any], noticed: str, tmp_path: Path) -> None:
    if reason := why_no_hosts():
        pytest.skip(reason)
    told = {"/readyz": [ready], "/api/v1/matrix": matrices, "/api/v1/gate": [gate]}
    command = [sys.executable, "-c", SERVER, json.dumps(told)]
    with Network() as network:
        host, environment = network.add("web"), {"PATH": os.environ["PATH"]}
        service = Service("web", host, command, environment, tmp_path / "own", tmp_path / "log", is_wanted=True)
        reader = Reader(network, f"http://{host.address}:80", TRUE)
        with supervised([service]):
            reader.start()
            assert eventually(lambda: reader.answers["200"] > 6, 60.0)
            reader.stop()
    assert bool(reader.wrong) == bool(noticed), reader.wrong
    assert all(noticed in one for one in reader.wrong)
    assert bool(reader.good_at) == (ready == READY)
