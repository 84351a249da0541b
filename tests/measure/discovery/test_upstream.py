"""The states of upstream's threads: read from a server on this machine that answers as GitHub's API does."""

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from knowngood.domain.issue import Look
from knowngood.measure.discovery.upstream import read_states
from knowngood.store.catalogue import load_looks, save_catalogue, save_looks
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.queries import load_issue, load_issues
from tests.commands.given import run_here
from tests.given_toys import TOYS
from tests.make import NOON, make_issue

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TODAY, EARLIER = NOW.date(), date(2026, 11, 1)
THREAD = "https://github.com/pytorch/pytorch/issues/{}"
RESET = str(int(NOW.timestamp()) + 600)


@dataclass
class GitHub:
    """Answers by the number of a thread: status, headers, body. `asked` are the requests that came."""

    answers: dict[str, tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def turn(self, number: int, state: str, etag: str = "") -> None:
        self.answers[str(number)] = (200, {"ETag": etag} if etag else {}, json.dumps({"state": state}).encode())


@contextmanager
def serve(github: GitHub) -> Iterator[GitHub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            github.asked.append((self.path, dict(self.headers)))
            status, headers, body = github.answers.get(self.path.rpartition("/")[2], (404, {}, b"{}"))
            if headers.get("ETag") and self.headers["If-None-Match"] == headers["ETag"]:
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    github.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serve(GitHub({})) as running:
        running.turn(1, "open", '"one"')
        yield running


@pytest.mark.parametrize(
    ("answer", "state", "why", "again"),
    [
        ((200, {}, b'{"state": "closed", "number": 7}'), "closed", "", 0),
        ((200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, b'{"state": "open"}'), "open", "", 600),
        ((301, {"Location": "/repos/new/place/issues/1"}, b""), "open", "", 0),
        ((404, {}, b'{"message": "Not Found"}'), "", "404 (Not Found)", 0),
        ((410, {}, b'{"message": "This issue was deleted"}'), "", "410 (Gone)", 0),
        ((403, {"X-RateLimit-Remaining": "4999"}, b"{}"), "", "403 (Forbidden)", 0),
        ((403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, b"{}"), "", "", 600),
        ((403, {"Retry-After": "30"}, b"{}"), "", "", 30),
        ((429, {}, b"{}"), "", "", 60),
        ((429, {"Retry-After": "9" * 12}, b"{}"), "", "", 24 * 3600),
        ((429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, b"{}"), "", "", 60),
        ((200, {}, b'{"state": '), "", "Expecting value", 0),
        ((200, {}, b"[" * 100_000), "", "recursion", 0),
        ((200, {}, b'{"state": ["open"]}'), "", "no issue that is open or closed", 0),
        ((200, {}, b'["state"]'), "", "no issue that is open or closed", 0),
        ((200, {}, b'{"state": "open"}' + b" " * (2 << 20)), "", "sends more than 2 MB", 0),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, tuple) else "",
)
def test_each_answer_is_a_state_a_reason_or_a_wish_to_be_left_alone(
    github: GitHub, answer: tuple[int, dict[str, str], bytes], state: str, why: str, again: int
) -> None:
    github.answers["7"] = answer
    threads = [THREAD.format(7), THREAD.format(1)]
    found = dict(read_states(threads, {}, {"GITHUB_API_URL": github.address}, NOW))
    first = found[threads[0]]
    assert (first.state if isinstance(first, Look) else "") == state
    assert why in first if isinstance(first, str) else not why
    if again and isinstance(first, str):
        assert first.endswith(f"no more until {NOW + timedelta(seconds=again):%Y-%m-%d %H:%M} UTC")
    assert (threads[1] in found) == (not again), "another thread is read, unless the API asks to be left alone"


@pytest.mark.parametrize(("status", "why"), [(503, "503"), (401, "401")])
def test_a_server_that_cannot_be_used_is_asked_no_more(github: GitHub, status: int, why: str) -> None:
    github.answers["7"] = (status, {}, b"{}")
    found = dict(read_states([THREAD.format(7), THREAD.format(1)], {}, {"GITHUB_API_URL": github.address}, NOW))
    assert (list(found), len(github.asked)) == ([THREAD.format(7)], 1)
    assert why in str(found[THREAD.format(7)])


def test_nothing_that_answers_is_said_without_a_traceback() -> None:
    ((_, why),) = read_states([THREAD.format(7)], {}, {"GITHUB_API_URL": "http://127.0.0.1:9"}, NOW)
    assert str(why).startswith("GitHub's API cannot be asked: ")


def test_what_still_holds_is_asked_for_by_its_tag_and_a_token_goes_along(github: GitHub) -> None:
    before = {THREAD.format(1): Look("open", EARLIER, '"one"')}
    variables = {"GITHUB_API_URL": f"{github.address}/", "GITHUB_TOKEN": "a-token\n"}
    assert dict(read_states(before, before, variables, NOW)) == {THREAD.format(1): Look("open", TODAY, '"one"')}
    ((path, headers),) = github.asked
    assert path == "/repos/pytorch/pytorch/issues/1"
    assert (headers["If-None-Match"], headers["Authorization"]) == ('"one"', "Bearer a-token")


# -- kept beside what rows say -----------------------------------------------------------------------------------------


def seen(engine: Engine) -> tuple[str, date | None]:
    """Of the issue's report, by every way in which issues are read."""
    with reading(engine) as s:
        known = load_knowledge(s, NOON).knowledge.known.issues["toy-1"]
        every = [known, load_issue(s, "toy-1"), *load_issues(s)]
    (report,) = {each.report for each in every}
    assert report
    return report.state, report.seen


def test_the_newest_look_is_shown_and_the_row_keeps_what_it_says(engine: Engine) -> None:
    thread = make_issue("toy-1").links[0].url
    with unit_of_work(engine) as s:
        save_catalogue(s, [make_issue("toy-1")], [], NOON)
    assert seen(engine) == ("", None)
    with reading(engine) as s:
        before = load_knowledge(s, NOON)
    for look in (Look("open", EARLIER, "x"), Look("closed", TODAY, "y")):
        with unit_of_work(engine) as s:
            save_looks(s, {thread: look, THREAD.format(99): look})
        assert seen(engine) == (look.state, look.seen)
    with reading(engine) as s:
        assert load_looks(s) == {thread: Look("closed", TODAY, "y")}
        report = load_knowledge(s, NOON, before).knowledge.known.issues["toy-1"].report
    assert report
    assert report.state == "closed", "also where what was known before is brought up to date"
    by_hand = replace(make_issue("toy-1").links[0], state="open", seen=TODAY + timedelta(days=1))
    with unit_of_work(engine) as s:
        save_catalogue(s, [make_issue("toy-1", links=(by_hand,))], [], NOON)
    assert seen(engine) == ("open", TODAY + timedelta(days=1)), "a person looked later"


# -- the command -------------------------------------------------------------------------------------------------------


def look(folder: Path, github: GitHub, *arguments: str) -> CompletedProcess[str]:
    catalogue = folder / "catalogue"
    for number in (1, 2):
        row = catalogue / f"toy-passes-{number}"
        row.mkdir(parents=True, exist_ok=True)
        (row / "repro.py").write_text((TOYS / "toy-passes-1" / "repro.py").read_text())
        text = (TOYS / "toy-passes-1" / "issue.toml").read_text()
        link = f'url = "{THREAD.format(number)}"\nstate = "open"\nseen = 2026-01-01'
        (row / "issue.toml").write_text(re.sub(r'url = "https://example.org/.*"', link, text))
    (catalogue / "builds.toml").write_text((TOYS / "builds.toml").read_text())
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KNOWNGOOD_DATA_DIR": str(folder / "data"),
        "KNOWNGOOD_CATALOGUE": str(catalogue),
        "KNOWNGOOD_SHIPPED": "false",
        "GITHUB_API_URL": github.address,
    }
    return run_here(["discover", "--upstream", *arguments], environment, folder=folder)


def test_a_thread_that_turned_ends_in_1_and_one_that_cannot_be_read_is_named(tmp_path: Path, github: GitHub) -> None:
    done = look(tmp_path, github)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["pytorch/pytorch#2 was not read: 404 (Not Found)", "1 of 2 threads looked at, 0 turned"],
    )
    github.turn(1, "closed")
    done = look(tmp_path, github)
    assert (done.returncode, done.stdout.splitlines()[1]) == (1, "pytorch/pytorch#1 is closed now")
    assert look(tmp_path, github).returncode == 0


def test_what_the_api_allows_is_kept_and_nothing_at_all_ends_in_4(tmp_path: Path, github: GitHub) -> None:
    github.answers["1"] = (200, {"X-RateLimit-Remaining": "0"}, b'{"state": "closed"}')
    done = look(tmp_path, github)
    assert (done.returncode, "1 turned; the others the next time" in done.stdout) == (1, True)
    github.answers["1"] = github.answers["2"] = (403, {"Retry-After": "3600"}, b"{}")
    done = look(tmp_path, github)
    assert (done.returncode, "no more until" in done.stdout) == (4, True)


def test_it_asks_no_package_index(tmp_path: Path, github: GitHub) -> None:
    done = look(tmp_path, github, "--since", "2.9")
    assert (done.returncode, "--upstream asks no package index" in done.stderr) == (2, True)
