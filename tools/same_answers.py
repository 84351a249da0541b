"""Asks two checkouts the same questions over the evidence that this one ships, and prints what they answer differently.

    .venv/bin/python -m tools.same_answers /path/to/the/other/checkout --questions 3000 -o differences.json

Each checkout has its own .venv, and gets a store and a server of its own for the time of the comparison. Questions are
drawn by a seed: the gate in all its formats, upgrade, compare, matrix, issues, builds, cells, exports, pasted texts
over HTTP, the same pages as people see them, and the commands. Exit 1 where an answer differs.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, urlencode

ROOT = Path(__file__).parents[1]
FILES = ROOT / "tests" / "environments" / "files"
FORMATS = ["json", "text", "junit", "sarif", "github", "markdown", "codequality"]
EXPORTS = ["csv", "osv", "junit", "markdown"]
VERDICTS = ["affected", "not_affected", "flaky", "not_run", "not_applicable", "different_failure"]
SHARE_OF_COMMANDS = 0.05  # each starts a process
_CHANGING = re.compile(
    r"http://127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00)?|\b[0-9a-f]{12,}\b"
    r"|\d+ (?:second|minute)s? ago|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\?v=[^\"&]+"
)


@dataclass(frozen=True)
class Question:
    """A request (`method` GET or POST, `target` its path) or, with an empty method, a command's arguments in `body`."""

    kind: str
    method: str
    target: str
    body: Any = None


class Asker:
    """Draws questions about a catalogue."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        folders = sorted((ROOT / "repros").glob("*/issue.toml"))
        self._issues = [path.parent.name for path in folders]
        self._components = sorted({tomllib.loads(path.read_text(encoding="utf-8"))["component"] for path in folders})
        builds = tomllib.loads((ROOT / "repros" / "builds.toml").read_text(encoding="utf-8"))["build"]
        self._versions = sorted({str(build["torch"]) for build in builds})
        self._files = [path for path in sorted(FILES.iterdir()) if path.name != "README.md"]
        self._kinds = [getattr(self, name) for name in dir(self) if name.startswith("ask_")]

    def draw(self, questions: int) -> Iterator[Question]:
        for number in range(questions):
            if number < questions * SHARE_OF_COMMANDS:
                yield self._command()
            else:
                yield self._chance.choice(self._kinds)()

    def _build(self) -> str:
        return f"torch-{self._chance.choice(self._versions)}{self._chance.choice(['', '', '~py312', '~py310'])}"

    def _version(self) -> str:
        return self._chance.choice(self._versions).partition("+")[0]

    def _hardware(self) -> str:
        return self._chance.choice(["cpu-x86_64", "cuda-sm_90", "H100", "cuda-sm_80", "cpu-x86_64-avx2"])

    def _watch(self) -> dict[str, Any]:
        some = self._chance.sample(self._issues, self._chance.randint(1, 5))
        return self._chance.choice([{"issues": some}, {"component": [self._chance.choice(self._components)]}])

    def _flat(self, fields: Mapping[str, Any]) -> str:
        return urlencode([(name, one) for name, of in fields.items() for one in (of if isinstance(of, list) else [of])])

    def _get(self, kind: str, path: str, **fields: str | int | list[str]) -> Question:
        return Question(kind, "GET", f"{path}?{self._flat(fields)}" if fields else path)

    def ask_gate(self) -> Question:
        fields = {"build": self._chance.choice([self._build(), self._version()]), **self._watch()}
        if self._chance.random() < 0.5:  # noqa: PLR2004 - as often as not
            fields["hardware"] = [self._hardware()]
        return self._get("gate", "/api/v1/gate", format=self._chance.choice(FORMATS), **fields)

    def ask_gate_of_a_file(self) -> Question:
        path = self._chance.choice(self._files)
        environment = {"name": path.name, "content": path.read_text(encoding="utf-8")}
        if self._chance.random() < 0.5:  # noqa: PLR2004
            environment = {"name": "requirements.txt", "content": f"torch=={self._chance.choice(self._versions)}\n"}
        return Question("gate of a file", "POST", "/api/v1/gate", {"environment": environment, **self._watch()})

    def ask_upgrade(self) -> Question:
        fields = {"from": self._chance.choice([self._build(), self._version()]), **self._watch()}
        return self._get("upgrade", "/api/v1/upgrade", **fields, hardware=self._hardware())

    def ask_compare(self) -> Question:
        return self._get("compare", "/api/v1/compare", a=self._version(), b=self._version(), hardware=self._hardware())

    def ask_matrix(self) -> Question:
        condition = self._chance.choice(
            [
                {"verdict": self._chance.choice(VERDICTS)},
                {"component": self._chance.choice(self._components)},
                {"q": f"fails:{self._version()} and not passes:{self._version()}"},
                {"q": f"component:{self._chance.choice(self._components)} or severity:high"},
                {"issues": self._chance.sample(self._issues, 3)},
            ]
        )
        return self._get("matrix", "/api/v1/matrix", **condition, hardware=self._hardware(), limit=20)

    def ask_issue(self) -> Question:
        return self._get("issue", f"/api/v1/issues/{self._chance.choice(self._issues)}")

    def ask_build(self) -> Question:
        return self._get("build", f"/api/v1/builds/{quote(self._build(), safe='')}", hardware=self._hardware())

    def ask_cell(self) -> Question:
        path = f"/api/v1/cells/{self._chance.choice(self._issues)}/{quote(self._build(), safe='')}"
        return self._get("cell", path, hardware=self._hardware())

    def ask_search(self) -> Question:
        words = self._chance.choice([self._chance.choice(self._issues), self._version(), "flex_attention", "inductor"])
        return self._get("search", "/api/v1/search", q=f"{words} {self._chance.choice(['', self._hardware()])}")

    def ask_error(self) -> Question:
        issue = tomllib.loads((ROOT / "repros" / self._chance.choice(self._issues) / "issue.toml").read_text("utf-8"))
        return Question("error", "POST", "/api/v1/errors", {"text": f"{issue['title']}\n{issue['summary']}"})

    def ask_export(self) -> Question:
        path = f"/api/v1/export/{self._chance.choice(EXPORTS)}"
        return self._get("export", path, component=self._chance.choice(self._components))

    def ask_list(self) -> Question:
        paths = ["issues", "lifespans", "hygiene", "coverage", "quality", "changes", "workers", "watchlists"]
        return self._get("list", f"/api/v1/{self._chance.choice(paths)}")

    def ask_page(self) -> Question:
        question = self._chance.choice([self.ask_issue, self.ask_build, self.ask_cell, self.ask_upgrade])()
        return Question(f"page: {question.kind}", "GET", question.target.removeprefix("/api/v1"))

    def _command(self) -> Question:
        issue, build, other = self._chance.choice(self._issues), self._build(), self._version()
        arguments = self._chance.choice(
            [
                ["gate", "--build", build, "--issues", issue, "--format", self._chance.choice(FORMATS)],
                ["gate", "-r", str(self._chance.choice(self._files)), "--issues", issue, "--format", "json"],
                ["env", "-r", str(self._chance.choice(self._files))],
                ["issue", issue, "--build", other],
                ["find", issue, other],
                ["compare", other, self._version(), "--json"],
                ["upgrade", "--from", other, "--issues", issue, "--json"],
                ["matrix", "--issues", issue, "--json"],
            ]
        )
        return Question(f"command: {arguments[0]}", "", "", arguments)


def _read_to_the_end(log: Iterable[str]) -> None:
    """A server whose log nobody reads stops at 64 KB of it."""
    with suppress(ValueError):  # closed, with the server
        deque(log, maxlen=0)


class Checkout:
    """A checkout with a store that holds the shipped evidence, and its server."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._program = str(folder / ".venv" / "bin" / "knowngood")
        self._environment = {**os.environ, "KNOWNGOOD_DATA_DIR": str(data), "KNOWNGOOD_REQUESTS_PER_S": "0"}
        self._address = ""

    @contextmanager
    def serving(self) -> Iterator["Checkout"]:
        for arguments in (["migrate"], ["import", *map(str, sorted((ROOT / "repros" / "evidence").glob("*.gz")))]):
            subprocess.run([self._program, *arguments], env=self._environment, check=True, capture_output=True)
        command = [self._program, "serve", "--port", "0"]
        with subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE, text=True) as server:
            try:
                said = next(line for line in server.stderr or () if "http://" in line)
                self._address = said[said.index("http://") :].strip().rstrip("/")
                Thread(target=_read_to_the_end, args=(server.stderr,), daemon=True).start()
                yield self
            finally:
                server.terminate()

    def answer(self, question: Question) -> str:
        """Status or exit code, and the text, without times, addresses and random ids."""
        status, text = self._fetch(question) if question.method else self._run(question.body)
        if question.kind.startswith("page"):
            text = re.sub(r"<[^>]+>", " ", text[text.find("<main") : text.find("</main>")])
        return f"{status}\n" + re.sub(r"[ \t]+", " ", _CHANGING.sub("*", text))

    def _fetch(self, question: Question) -> tuple[int, str]:
        body = None if question.body is None else json.dumps(question.body).encode()
        headers = {"Content-Type": "application/json"} if body else {}
        request = urllib.request.Request(self._address + question.target, body, headers, method=question.method)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except TimeoutError:
            return 0, "no answer in time"

    def _run(self, arguments: list[str]) -> tuple[int, str]:
        ran = subprocess.run(
            [self._program, *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        return ran.returncode, ran.stdout + ran.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    questions = list(Asker(given.seed).draw(given.questions))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = [
            stack.enter_context(Checkout(checkout.resolve(), folder / name).serving())
            for name, checkout in (("this", ROOT), ("other", given.other))
        ]
        pool = stack.enter_context(ThreadPoolExecutor(len(sides)))
        pairs = [tuple(pool.map(lambda side, one=one: side.answer(one), sides)) for one in questions]
    different = [
        {"kind": one.kind, "question": [one.method, one.target, one.body], "this": this, "other": other}
        for one, (this, other) in zip(questions, pairs, strict=True)
        if this != other
    ]
    counts = Counter(one.kind for one in questions), Counter(str(one["kind"]) for one in different)
    for kind, asked in sorted(counts[0].items()):
        print(f"{kind:20} {asked:5} asked, {counts[1][kind]:5} answered differently")
    refused = sum(not this.startswith(("2", "0")) for this, _ in pairs)
    print(f"{len(questions)} questions, {len(different)} answered differently; {refused} were refused")
    if given.output:
        given.output.write_text(json.dumps(different, indent=1), encoding="utf-8")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
