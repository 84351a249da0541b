"""Without a store the results that come with the release answer: what they say, how, and that nothing is written."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from zlib import decompress

import pytest

from knowngood.ask.explain.matcher import make_failure_library
from knowngood.ask.explain.store import failures_in
from knowngood.cli import knowledge as asked_here
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.snapshot import FILE, age_in_words, read_shipped
from tests.commands.given import Call, Done
from tests.given_toys import TOYS
from tools.shipped import shipped_snapshot

LOG = "torch._dynamo.exc.BackendCompilerFailed\nPyTorch version: 2.6.0+cu124\n"
POLICIES = {
    "as it comes": "",
    "measured alone": 'accept = "measured"\nhardware = ["cpu-x86_64"]',
    "lenient": 'unknown = "warn"\nflaky = "warn"\nminimum = "high"\nsilent_always = false',
}


def contents(file: bytes) -> list[object]:
    """Both lines: compressed, the same may be other bytes with another zlib."""
    return [json.loads(line) for line in decompress(file.split(b"\n", 2)[2], wbits=31).split(b"\n")]


def test_it_is_what_the_shipped_evidence_says(shipped: Engine) -> None:
    made = shipped_snapshot(shipped)
    assert contents(FILE.read_bytes()) == contents(made), "write it anew with tools/shipped.py"
    assert made == shipped_snapshot(shipped)


def test_it_is_small() -> None:
    assert FILE.stat().st_size < 600_000


@pytest.mark.system
def test_it_decides_as_a_store_with_the_same_evidence_does_on_every_cell(shipped: Engine) -> None:
    found = read_shipped().knowledge
    now = found.known.as_of + timedelta(days=1)
    with reading(shipped) as s:
        store = load_knowledge(s, found.known.as_of).knowledge
    for build, text in zip(sorted(found.tested), cycle(POLICIES.values())):  # each build by one policy
        asked = GateRequest(build=build, issues=("all",), policy=AttachedFile(text, "knowngood.toml"))
        assert rule(asked, found, now) == rule(asked, store, now), build


def test_failures_are_recognised_as_by_a_store_with_the_same_evidence(shipped: Engine) -> None:
    found = read_shipped()
    issues = tuple(found.knowledge.known.issues.values())
    library, of_store = (make_failure_library(issues, one) for one in (found.recorded.failures, failures_in(shipped)))
    assert library.courses == of_store.courses
    assert vars(library.texts) == vars(of_store.texts)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty one that nobody may write to (the superuser may: what is there afterwards is looked at)."""
    for name in ("KNOWNGOOD_DATA_DIR", "KNOWNGOOD_CATALOGUE", "KNOWNGOOD_DATABASE_URL", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("HOME", str(folder))
    yield folder
    assert list(folder.rglob("*")) == []


QUESTIONS: Mapping[str, tuple[int, str]] = {
    "gate --build 2.6.0+cu124 --python 3.12 --issues pytorch-151290,xla-8464": (0, "Pass: none of 2 watched issues"),
    "gate --build torch-2.5.1+cu124 --issues xla-8464": (1, "fixed in torch 2.6.0"),
    "compare 2.5.1 2.7.1 --issues pytorch-151290": (0, "1 newly broken"),
    "compare 2.5.1 2.7.1 --json": (0, '"transition"'),
    "upgrade --from 2.5.1 --component Dynamo": (0, "You are on torch 2.5.1 (CUDA 12.4)"),
    "matrix --builds 2.5.1 --issues pytorch-151290": (0, "pytorch-151290"),
    "explain LOG": (3, "Not known here: "),
    "issue 151290": (0, "fails in 2.7.0 to 2.7.1, fixed in 2.8.0"),
    "find create_block_mask": (0, "pytorch-151290"),
    "env --build torch-2.7.1+cu126": (0, "known issues fail here, "),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.usefixtures("home")
def test_every_question_is_answered_with_the_date_of_the_results(question: str, command: Call, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(LOG)
    done = command(*(str(log) if word == "LOG" else word for word in question.split()))
    code, told = QUESTIONS[question]
    assert (done.code, told in done.out) == (code, True), done
    made_at = read_shipped().made_at
    assert f"answered from the results of {made_at:%Y-%m-%d} that come with this release" in done.err


def aged(command: Call, monkeypatch: pytest.MonkeyPatch, days: int, *more: str) -> Done:
    """The gate, where what is shipped was measured so many days ago."""
    found = read_shipped()
    known = replace(found.knowledge.known, as_of=datetime.now(UTC) - timedelta(days=days, hours=1))
    old = replace(found, knowledge=replace(found.knowledge, known=known))
    monkeypatch.setattr(asked_here, "read_shipped", lambda: old)
    return command("gate", "--build", "torch-2.6.0+cu124", "--issues", "xla-8464", *more)


@pytest.mark.usefixtures("home")
def test_its_age_is_no_reason_to_refuse_but_to_warn(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    young, old = (aged(command, monkeypatch, days) for days in (179, 200))
    assert (young.code, old.code) == (0, 0)
    assert "days old" not in young.err
    assert "They are 200 days old; a newer release may know more" in old.err


@pytest.mark.usefixtures("home")
def test_unless_the_policy_says_how_old_it_may_be(
    command: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = tmp_path / "knowngood.toml"
    policy.write_text("snapshot_days = 30\n")
    done = aged(command, monkeypatch, 40, "--policy", str(policy))
    assert (done.code, done.out) == (4, "")
    assert "40 days old, and the policy takes 30 at most" in done.err


def test_nothing_is_old_before_half_a_year() -> None:
    now = datetime.now(UTC)
    assert [bool(age_in_words(now - timedelta(days=days), now)) for days in (0, 180, 181)] == [False, False, True]


@pytest.mark.usefixtures("home")
def test_a_teams_own_issues_are_known_without_a_store(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_CATALOGUE", str(TOYS))
    done = command("gate", "--build", "torch-2.5.1+cu124", "--issues", "toy-passes-1,xla-8464", "--format", "json")
    body = json.loads(done.out)
    assert body["decision"] == "block"
    assert "toy-passes-1" in done.out


@pytest.mark.usefixtures("home")
def test_without_what_is_shipped_a_store_is_asked_for(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_SHIPPED", "false")
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", "/dev/null/nowhere")
    assert command("compare", "2.5.1", "2.7.1").code == 4


@pytest.mark.usefixtures("home")
def test_status_says_what_answers_and_how_fresh_it_is(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_SERVER", "https://knowngood.example.org")
    done = command("status")
    assert done.code == 0
    assert "https://knowngood.example.org answers `gate`" in done.out
    assert "store    none here" in done.out
    assert f": results of {read_shipped().made_at:%Y-%m-%d}, " in done.out.splitlines()[0]
    body = json.loads(command("status", "--json").out)
    assert (body["store"], body["shipped"]["cells"]) == (None, len(read_shipped().knowledge.known.cells))


@pytest.mark.usefixtures("home")
def test_status_of_a_database_elsewhere_shows_no_password(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", "postgresql://ada:secret@db.example.org/known?password=secret")
    done = command("status")
    assert "store    db.example.org/known: not looked into here" in done.out
    assert "secret" not in done.out
