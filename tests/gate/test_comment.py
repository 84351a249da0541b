"""The Action's comment on a pull request, written to a server that answers as GitHub's API does (REST 2022-11-28)."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from knowngood.gate.asking import main
from knowngood.gate.comment import fitting
from tests.commands.given import run_here

COMMENTS = "/repos/team/project/issues/7/comments"
STRANGER = {"id": 1, "user": {"type": "User"}, "body": "<!-- knowngood -->\nnot the bot's"}


class GitHub(ThreadingHTTPServer):
    """Comments of one pull request, in pages, and what was asked. `refuses` is the status of every write (0: none)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = [STRANGER]
        self.asked: list[str] = []
        self.refuses = 0

    @property
    def own(self) -> list[str]:
        return [comment["body"] for comment in self.comments if comment["user"] == {"type": "Bot"}]


class Handler(BaseHTTPRequestHandler):
    server: GitHub

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _written(self) -> dict[str, Any] | None:
        self.server.asked.append(self.command)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refuses or self.headers["Authorization"] != "Bearer of-the-job" or len(body["body"]) > 65_536:
            self._answer(self.server.refuses or 422, {"message": "Resource not accessible by integration"})
            return None
        return dict(body)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        page = int(query.rpartition("page=")[2])
        if path != COMMENTS:
            self._answer(404, {"message": "Not Found"})
            return
        self._answer(200, self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        if (body := self._written()) and self.path == COMMENTS:
            made = {"id": len(self.server.comments) + 1, "user": {"type": "Bot"}, **body}
            self.server.comments.append(made)
            self._answer(201, made)

    def do_PATCH(self) -> None:
        if body := self._written():
            (found,) = (each for each in self.server.comments if self.path.endswith(f"/comments/{each['id']}"))
            found |= body
            self._answer(200, found)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.6.0+cu124\n")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "torch"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def run(
    github: GitHub, checkout: Path, inputs: Mapping[str, str], torch: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    """One run of the Action's step on the pull request, which moves torch to that version."""
    if torch:
        (checkout / "requirements.txt").write_text(f"torch=={torch}\n")
    given = {"requirements": "requirements.txt", "base": "main", "comment": "true", "hardware": "cpu-x86_64", **inputs}
    environ = {
        "PATH": os.environ["PATH"],
        "KNOWNGOOD_DATA_DIR": str(checkout.parent / "data"),
        "GITHUB_STEP_SUMMARY": str(checkout.parent / "summary.md"),
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
        "GITHUB_REPOSITORY": "team/project",
        "GATE_PULL_REQUEST": "7",
        "GATE_GITHUB_TOKEN": "of-the-job",
        **{f"GATE_{name.upper()}": value for name, value in given.items()},
        **environ,
    }
    return run_here((), environ, folder=checkout, program=main)


def test_three_runs_write_one_comment_and_edit_it(github: GitHub, checkout: Path) -> None:
    github.comments += [{"id": at, "user": None, "body": None} for at in range(2, 130)]  # of an account that is gone
    moved = run(github, checkout, {"issues": "151290"}, "2.7.1+cu126", GATE_ENFORCE="true")
    (first,) = github.own
    assert moved.returncode == 1, moved.stderr
    assert first.startswith("<!-- knowngood -->\n**Blocked")
    assert "Workarounds to add (1)" in first
    assert "+torch==2.7.1" in first
    run(github, checkout, {"issues": "151290"}, "2.8.0+cu128")
    (second,) = github.own
    assert second.startswith("<!-- knowngood -->\n**Pass")
    run(github, checkout, {"issues": "151290"}, "2.6.0+cu124")
    assert github.own == ["<!-- knowngood -->\ntorch stays at torch-2.6.0+cu124.\n"]
    assert github.asked == ["POST", "PATCH", "PATCH"]
    assert github.comments[0] == STRANGER


def test_the_same_comment_is_not_written_again_and_none_where_torch_stays(github: GitHub, checkout: Path) -> None:
    run(github, checkout, {})
    assert github.asked == []
    for _ in range(2):
        run(github, checkout, {}, "2.8.0+cu128")
    assert github.asked == ["POST"]


def test_a_move_is_told_whole_where_nothing_is_watched(github: GitHub, checkout: Path) -> None:
    run(github, checkout, {}, "2.8.0+cu128")
    (text,) = github.own
    assert re.search(r"\b1\d\d issues watched", text)
    assert "gained" in text


def test_what_github_does_not_take_is_cut_between_lines_and_said() -> None:
    rows = "\n".join(f"- issue {at}: {'x' * 80}" for at in range(1000))
    long = f"**Pass**\n\n<details><summary>Not known there</summary>\n\n{rows}\n\n</details>\n\n```sh\nknowngood\n```\n"
    kept, closed, left = fitting(long).partition("\n\n</details>\n\n**Cut: ")
    assert long.startswith(f"{kept}\n- issue")
    assert left.startswith(f"{len(long.splitlines()) - len(kept.splitlines())} more lines")
    assert 60_000 < len(kept + closed + left) < 65_400
    assert fitting(f"**Pass**\n\n```sh\n{rows}\n```\n").count("```") == 2
    assert fitting("x" * 70_000).startswith("\n\n**Cut: 1 more")
    assert fitting(rows[:60_000]) == rows[:60_000]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_fork_whose_token_may_not_write_has_it_in_the_summary(github: GitHub, checkout: Path, status: int) -> None:
    github.refuses = status
    done = run(github, checkout, {"issues": "151290"}, "2.7.1+cu126")
    assert done.returncode == 0
    assert f"no comment: GitHub answers {status} to POST {COMMENTS}" in done.stderr
    assert "Workarounds to add (1)" in (checkout.parent / "summary.md").read_text()
    assert github.own == []


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"GATE_PULL_REQUEST": ""}, "this job is for no pull request"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9"}, "GitHub cannot be asked for the comment"),
    ],
)
def test_where_no_comment_can_be_written_the_decision_stands(
    github: GitHub, checkout: Path, environ: dict[str, str], says: str
) -> None:
    done = run(github, checkout, {"issues": "151290", "enforce": "true"}, "2.7.1+cu126", **environ)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_comment_needs_a_base(github: GitHub, checkout: Path) -> None:
    done = run(github, checkout, {"base": ""})
    assert done.returncode == 2
    assert "comment needs base, such as origin/main" in done.stderr
