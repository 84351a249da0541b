"""Somebody who reads the dashboard's answers all the time, and holds each against what a calm run found."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from tests.soak.hosts import Network

_PATIENCE_S = 15.0
_PAUSE_S = 0.3
_NOTHING_KNOWN = frozenset({"not_run", "inconclusive"})


@dataclass(frozen=True)
class Calm:
    """The truth: verdicts by (issue, build), and the gate's answer on a build with one issue."""

    verdicts: Mapping[tuple[str, str], str]
    decisions: Mapping[tuple[str, str], str]

    def wrong_cell(self, cell: Mapping[str, Any]) -> str:
        """Half a cell may say that it cannot say; never another thing than the whole one."""
        true = self.verdicts[cell["issue"], cell["build"]]
        said = cell["verdict"]
        return (
            ""
            if said == true or said in _NOTHING_KNOWN
            else f"{cell['issue']} on {cell['build']} is {said}, not {true}"
        )

    def wrong_decision(self, asked: tuple[str, str], said: str) -> str:
        allowed = {self.decisions[asked], "insufficient_evidence"}
        return "" if said in allowed else f"the gate says {said} of {asked}, not {self.decisions[asked]}"


class Reader(threading.Thread):
    """Asks until it is told to stop. `good_at` is when it last began a round in which every answer was there and right;
    `wrong` are answers that no fault excuses: a lie, a lost result, a status that is neither 200 nor 503 with a reason.
    """

    def __init__(self, network: Network, address: str, calm: Calm) -> None:
        super().__init__(name="reader", daemon=True)
        self._network = network
        self._place = urlsplit(address).netloc
        self._calm = calm
        self._ending = threading.Event()
        self._shown: dict[tuple[str, str], int] = {}
        self._questions = sorted(calm.decisions)
        self.good_at = 0.0
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []

    def stop(self) -> None:
        self._ending.set()
        self.join()

    def run(self) -> None:
        self._network.enter()
        rounds = 0
        while not self._ending.wait(_PAUSE_S):
            began = time.time()
            question = self._questions[rounds % len(self._questions)]
            rounds += 1
            gate = f"/api/v1/gate?build={quote(question[1])}&issues={question[0]}&hardware=cpu-x86_64"
            ready, matrix, decision = (self._ask(path) for path in ("/readyz", "/api/v1/matrix", gate))
            if matrix:
                self._read_matrix(matrix)
            if decision:
                self._note(self._calm.wrong_decision(question, decision["decision"]))
            if ready and matrix and decision:
                self.good_at = began

    def _note(self, problem: str) -> None:
        if problem:
            self.wrong.append(problem)

    def _ask(self, path: str) -> Any:
        """The document; None where there was no answer, or 503 with a reason."""
        try:
            connection = http.client.HTTPConnection(self._place, timeout=_PATIENCE_S)
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                status, body = response.status, response.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            self.answers["none"] += 1
            return None
        self.answers[str(status)] += 1
        try:
            told = json.loads(body)
        except ValueError:
            self._note(f"{path}: {status} with {body[:200]!r}")
            return None
        if status == http.client.OK:
            return told
        if status != http.client.SERVICE_UNAVAILABLE or not told.get("detail"):
            self._note(f"{path}: {status} with {body[:200]!r}")
        return None

    def _read_matrix(self, matrix: Mapping[str, Any]) -> None:
        for cell in matrix["cells"]:
            self._note(self._calm.wrong_cell(cell))
            key, shown = (cell["issue"], cell["build"]), sum(cell["attempts"].values())
            if shown < self._shown.get(key, 0):
                self._note(f"{key} had {self._shown[key]} results and has {shown}")
            self._shown[key] = shown
