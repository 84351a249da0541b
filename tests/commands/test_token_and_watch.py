"""`knowngood token` and `knowngood watch` as people call them: answers, sentences and exit codes."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from knowngood.settings import read_settings
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import connect, reading
from knowngood.store.tokens import find_token
from tests.commands.given import Call
from tests.given_toys import ROOT
from tests.waiting import PATIENCE_S


def audited(tmp_path: Path) -> list[tuple[str, str]]:
    with reading(connect(read_settings().database)) as s:
        return [(row.action, row.subject) for row in reversed(load_audit(s))]


# -- tokens ------------------------------------------------------------------------------------------------------------


def test_a_token_is_printed_alone_and_never_again(call: Call, tmp_path: Path) -> None:
    done = call("token", "create", "--name", "ci", "--scope", "submit,read", "--expires", "12h")
    assert done.code == 0
    secret = done.out.strip()
    with reading(connect(read_settings().database)) as s:
        found = find_token(s, secret, datetime.now(UTC))
    assert found.token is not None
    assert found.token.scopes == ("read", "submit")
    listed = call("token", "list")
    assert secret[:15] in listed.out
    assert secret[16:] not in call("token", "list", "--json").out + listed.out
    assert "never used" in listed.out


def test_a_token_is_revoked_by_name_or_by_its_public_part(call: Call, tmp_path: Path) -> None:
    for name in ("a", "b"):
        call("token", "create", "--name", name, "--scope", "read", "--expires", "never")
    (first, second) = json.loads(call("token", "list", "--json").out)
    assert (first["in_force"], first["expires_at"]) == (True, None)
    assert call("token", "revoke", "a").code == 0
    assert call("token", "revoke", f"kg_{second['id']}").code == 0
    assert [one["in_force"] for one in json.loads(call("token", "list", "--json").out)] == [False, False]
    assert [action for action, _ in audited(tmp_path)] == ["token.create"] * 2 + ["token.revoke"] * 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["create", "--name", "ci", "--scope", "write"], "no scope; known: read, submit, triage, admin"),
        (["create", "--name", "ci", "--scope", ","], "needs a scope"),
        (["create", "--name", "c i", "--scope", "read"], "no name for a token"),
        (["create", "--name", "ci", "--scope", "read", "--expires", "soon"], "is no time; write 90d"),
        (["create", "--name", "ci", "--scope", "read", "--expires", "0d"], "is no time; write 90d"),
        (["create", "--name", "ci", "--scope", "read", "--expires", "99999w"], "is no time"),
        (["create", "--name", "ci", "--scope", "read", "--expires", "2020-01-31"], "cannot expire before it begins"),
        (["create", "--name", "ci", "--scope", "read", "--expires", "2027-02-30"], "is no time"),
        (["create", "--name", "ci"], "Missing option"),
        (["revoke", "nobody"], 'no token in force is called "nobody"; in force: none'),
    ],
)
def test_what_makes_no_token_is_told_in_a_sentence(call: Call, arguments: list[str], sentence: str) -> None:
    done = call("token", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert json.loads(call("token", "list", "--json").out) == []


def test_no_tokens_are_told_with_how_to_make_one(call: Call) -> None:
    done = call("token", "list")
    assert (done.code, done.out) == (0, "")
    assert "knowngood token create" in done.err


# -- watch lists -------------------------------------------------------------------------------------------------------


def test_a_list_is_added_changed_listed_and_removed(call: Call, tmp_path: Path) -> None:
    done = call("watch", "add", "vision", "--issues", "toy-passes-1,toy-fixed-1", "--hardware", "cpu-x86_64")
    assert (done.code, done.out) == (0, "vision: version 1, issues toy-passes-1, toy-fixed-1; on cpu-x86_64\n")
    assert "version 2" in call("watch", "add", "vision", "--severity", "high", "--owner", "ada").out
    (listed,) = json.loads(call("watch", "list", "--json").out)
    assert (listed["name"], listed["version"], listed["owner"], listed["severity"]) == ("vision", 2, "ada", "high")
    assert call("watch", "list").out == "vision  version 2 of ada  severity high or worse\n"
    assert call("watch", "remove", "vision").code == 0
    assert json.loads(call("watch", "list", "--json").out) == []
    assert audited(tmp_path) == [("watch_list.save", "vision")] * 2 + [("watch_list.remove", "vision")]


FILE = """
[watchlists.vision]
description = "What our vision models compile"
issues = ["toy-passes-1"]

[watchlists.audio]
severity = "high"
"""


def test_lists_of_a_repositorys_file_are_imported_together(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "lists.toml"
    file.write_text(FILE)
    assert call("watch", "import", str(file)).code == 0
    assert [one["name"] for one in json.loads(call("watch", "list", "--json").out)] == ["audio", "vision"]
    again = call("watch", "import", str(file), "--name", "vision")
    assert again.out == "vision: version 1, issues toy-passes-1\n"


def test_what_a_policy_watches_becomes_a_list_under_a_name(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "knowngood.toml"
    file.write_text('hardware = ["cpu-x86_64"]\n[watch]\nissues = ["toy-passes-1"]\n')
    assert call("watch", "import", str(file), "--name", "vision").out == (
        "vision: version 1, issues toy-passes-1; on cpu-x86_64\n"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(FILE.replace("toy-passes-1", "toy-passes-9"), "nearest: ", id="one of two is wrong"),
        pytest.param(FILE.replace("severity", "severty"), 'did you mean "severity"', id="a misspelt key"),
        pytest.param(FILE.replace('"high"', '"awful"'), "severity", id="no severity"),
        pytest.param(FILE.replace("vision", "Vision", 1), "no name for a watch list", id="no name"),
        pytest.param("[watch]\nissues = []\n", "say --name as well", id="a policy without a name"),
        pytest.param("[[[", "is not TOML", id="no TOML"),
        pytest.param("a = " + "9" * 5000, "is not TOML", id="a number that Python does not read"),
        pytest.param("watchlists = 3", "watchlists", id="another thing"),
    ],
)
def test_a_file_with_a_problem_is_imported_not_at_all(call: Call, tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "lists.toml"
    file.write_text(text)
    done = call("watch", "import", str(file))
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert json.loads(call("watch", "list", "--json").out) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "vision"], "watches nothing"),
        (["add", "Vision", "--issues", "toy-passes-1"], "no name for a watch list"),
        (["add", "vision", "--issues", "toy-passes-9"], "nearest: "),
        (["add", "vision", "--severity", "awful"], "known: low, medium, high, critical"),
        (["add", "vision", "--issues", "toy-passes-1", "--hardware", "tpu"], "no hardware class"),
        (["remove", "vision"], 'no watch list is called "vision"'),
        (["import", "nothing.toml"], "cannot be read: No such file"),
    ],
)
def test_what_makes_no_list_is_told_in_a_sentence(call: Call, arguments: list[str], sentence: str) -> None:
    done = call("watch", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err


# -- a server of a team's own ------------------------------------------------------------------------------------------


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[str]:
    """The real server with KNOWNGOOD_READS=token; its address."""
    environment = {**os.environ, "KNOWNGOOD_DATA_DIR": str(tmp_path / "data"), "KNOWNGOOD_READS": "token"}
    command = [sys.executable, "-m", "knowngood", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        line = next(one for one in server.stderr if "Known Good is at" in one)
        yield line.split()[-1].rstrip("/")
        server.terminate()


def status_of(address: str, **headers: str) -> int:
    request = urllib.request.Request(address, headers=headers)
    for _ in range(600):
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except urllib.error.URLError:  # the socket is bound before the server listens
            time.sleep(0.1)
    raise AssertionError(address)


def test_a_server_with_closed_reads_answers_those_with_a_token(call: Call, closed: str) -> None:
    assert status_of(f"{closed}/healthz") == 200
    assert status_of(f"{closed}/api/v1/runs") == 401
    secret = call("token", "create", "--name", "ci", "--scope", "read").out.strip()
    assert status_of(f"{closed}/api/v1/runs", Authorization=f"Bearer {secret}") == 200
    call("token", "revoke", "ci")
    assert status_of(f"{closed}/api/v1/runs", Authorization=f"Bearer {secret}") == 401


@pytest.mark.parametrize(
    ("name", "value"), [("READS", "closed"), ("REQUESTS_PER_S", "-1"), ("BURST", "0"), ("RESULTS_LIMIT", "much")]
)
def test_a_setting_that_cannot_be_is_named(call: Call, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"KNOWNGOOD_{name}", value)
    done = call("token", "list")
    assert done.code == 2
    assert f"KNOWNGOOD_{name}='{value}'" in done.err
