"""`knowngood run` and its neighbours on two builds. On all toys and builds: test_pipeline.py."""

import socket
from pathlib import Path

import pytest

from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.given_toys import Installation, make_installation

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--builds", "torch-0.0.9+mini"), 'no build is called "torch-0.0.9+mini" here; nearest: '),
        (("run", "--builds", "newest"), '"newest" names no build'),
        (("run", "--issues", "toy-fixed-2"), "nearest: toy-fixed-1"),
        (("matrix", "--fail-on", "broken"), "is no verdict"),
        (("run", "--next", "--issues", "toy-fixed-1"), "--next chooses what to run"),
        (("next", "--hardware", "gpu"), "is no hardware class"),
        (("export", "-o", "x", "--format", "yaml"), "known: osv, csv, "),
    ],
)
def test_a_question_that_cannot_be_asked_gets_a_sentence(call: Call, arguments: tuple[str, ...], words: str) -> None:
    done = call(*arguments)
    assert done.code == 2
    assert words in done.err


def test_a_setting_that_cannot_be_used_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_PORT", "eighty")
    done = call("matrix")
    assert done.code == 2
    assert "KNOWNGOOD_PORT='eighty'" in done.err


@pytest.mark.system
def test_one_command_tries_workarounds_only_where_their_issue_is_seen(
    wheels: Path, tmp_path: Path, new_setting: NewStore
) -> None:
    fresh = make_installation(tmp_path, wheels, store=new_setting())
    where = ("--builds", "torch-0.0.1+mini,torch-0.0.2+mini", "--issues", "toy-fixed-1")
    for cell in fresh.answer("run", *where, "--no-workarounds", "--json")["cells"]:
        assert cell["verdict"] in {"affected", "not_affected"}
        assert set(cell["workarounds"].values()) == {"unverified"}
    first, second = fresh.answer("run", *where, "--where-affected", "--json")["cells"]
    assert (first["verdict"], second["verdict"]) == ("affected", "not_affected")
    assert "unverified" not in first["workarounds"].values()
    assert set(second["workarounds"].values()) == {"unverified"}
    assert "nothing to run" in fresh.command("run", *where, "--where-affected").stderr


def test_a_dry_run_tells_the_price_and_runs_nothing(wheels: Path, tmp_path: Path, new_setting: NewStore) -> None:
    fresh = make_installation(tmp_path, wheels, store=new_setting())
    where = ("--builds", "torch-0.0.1+mini", "--issues", "toy-passes-1")
    told_price = fresh.command("run", *where, "--dry-run", KNOWNGOOD_SLOTS="1")
    assert "to do: 1 cell, 2 arms, 1 environment" in told_price.stdout
    assert "time:        about 50 s once all is here; 2 arms never timed, 15 s each" in told_price.stdout
    assert told_price.stdout.count("to download: ") == 1, "once the index was asked"
    assert "asking the package index about 1 environment, for at most 20 s" in told_price.stderr
    known = fresh.command("run", *where, "--dry-run", "--no-sizes")
    assert (known.stderr, "a guess" in known.stdout) == ("", False), "what the index said is kept"
    assert not list((fresh.data / "environments").glob("*"))
    cells = fresh.answer("matrix", *where, "--json")["cells"]
    assert [cell["verdict"] for cell in cells] == ["not_run"]


def test_a_port_in_use_is_said_before_anything_else_happens(installation: Installation) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("serve", "up"):
            data = installation.data.with_name(command)
            refused = installation.command(command, "--port", port, KNOWNGOOD_DATA_DIR=str(data))
            assert (refused.returncode, "Traceback" in refused.stderr) == (4, False)
            assert f"port {port}" in refused.stderr
            assert command == "serve" or not data.exists()


def test_a_build_that_is_taken_for_another_is_named(installation: Installation) -> None:
    asked = ("run", "--issues", "toy-passes-1", "--dry-run", "--no-sizes", "--builds")
    assert "0.0.1 is taken for torch-0.0.1+mini\n" in installation.command(*asked, "0.0.1,default").stderr
    assert "taken for" not in installation.command(*asked, "torch-0.0.1+mini,default").stderr
