"""Server, command line and snapshot give the same document for random policies, environments and evidence.

KNOWNGOOD_SOAK_CASES says how many (60 unless set; `make soak` takes 5,000), KNOWNGOOD_SOAK_SEED repeats a run: the seed
is printed with every failure. The server and the snapshot are asked through the command itself, over real HTTP and a
real file; the store is read as the command reads it.
"""

import json
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa
import uvicorn

from app.commands import gate
from app.commands.exits import Exit
from app.domain.build import Build
from app.domain.issue import Device, Issue, Packages, Requires, Severity
from app.domain.policy import Effect, Remedy
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from app.formats import wire
from app.formats.forms import Form, render
from app.formats.question import BadField, Grounds, asked_of, rule
from app.formats.snapshot import make_key, public_key, write_snapshot
from app.store.cells import touch
from app.store.known import load_edition
from app.store.session import Engine, connect, migrate, reading, unit_of_work
from app.store.tables import cells
from app.store.writes import save_catalogue
from app.web.application import create_app
from app.web.reader import Rules
from tests.make import make_build, make_issue

CASES = int(os.environ.get("KNOWNGOOD_SOAK_CASES", "60"))
SEED = int(os.environ.get("KNOWNGOOD_SOAK_SEED", random.SystemRandom().randrange(10**6)))
CASES_OF_A_WORLD = 100
CLASSES = ("cpu-x86_64", "cuda-sm_80", "cuda-sm_90")
KEY = make_key()

pytestmark = pytest.mark.timeout(3600)


def a_world(rng: random.Random) -> tuple[list[Issue], list[Build], list[Cell]]:
    issues = [
        make_issue(
            f"toy-{n}",
            component=rng.choice(["Inductor", "Triton", "Dynamo"]),
            severity=rng.choice(list(Severity)),
            silent=rng.random() < 0.3,
            requires=Requires(rng.choice(list(Device)), rng.choice(["", ">=2.5", "<2.7"])),
            packages=Packages(rng.choice([(), ("torch_xla=={torch}",), ("fla==0.1",)])),
            workarounds=("eager", "clone", "flags"),
        )
        for n in range(1, 7)
    ]
    names = ["2.5.1+cu124", "2.6.0+cu124", "2.7.1+cu126", "2.7.1+cpu", "2.8.0.dev20261101+cu128", "2.9.0+cu128"]
    builds = [make_build(name, origin="cpu" if name.endswith("cpu") else "default") for name in names]
    found = [
        a_cell(rng, issue, build, hardware)
        for issue in issues
        for build in builds
        for hardware in CLASSES
        if rng.random() < 0.6
    ]
    return issues, builds, found


def a_cell(rng: random.Random, issue: Issue, build: Build, hardware: str) -> Cell:
    """Measured a quarter of a day after midnight of now, so that no age is on the edge of a day while it is asked."""
    measured = datetime.now(UTC) - timedelta(days=rng.choice([0, 3, 10, 100, 200, 400]), hours=6)
    cures = {
        workaround.id: WorkaroundFinding(rng.choice(list(WorkaroundVerdict)), rng.choice(["", "says so"]))
        for workaround in issue.workarounds
        if rng.random() < 0.7
    }
    return Cell(
        issue.id,
        build.id,
        hardware,
        rng.choice(list(Verdict)),
        rng.choice(["1 of 1 attempt", "control failed", ""]),
        measured,
        attempts={"pass": 1},
        workarounds=cures,
        evidence="attempt-1",
    )


def a_policy(rng: random.Random) -> str:
    """TOML, sometimes of nothing."""
    lines = [
        f'{name} = "{rng.choice(list(kinds))}"'
        for name, kinds in [
            ("affected", Effect),
            ("flaky", Effect),
            ("different_failure", Effect),
            ("unknown", Effect),
            ("stale", Effect),
            ("remedy", Remedy),
            ("minimum", Severity),
        ]
        if rng.random() < 0.4
    ]
    lines += [f"{name} = {str(rng.random() < 0.5).lower()}" for name in ("silent_always", "refuse_assumed")]
    lines += [f"release_days = {rng.choice([1, 50, 180, 1000])}"]
    if rng.random() < 0.3:
        lines += ['base = "torch-2.5.1+cu124"', "only_new = true"]
    if rng.random() < 0.3:
        lines += ["[applied]", f'toy-{rng.randint(1, 8)} = ["{rng.choice(["eager", "clone", "nothing"])}"]']
    if rng.random() < 0.4:
        day = datetime.now(UTC).date() + timedelta(days=rng.choice([-10, 30]))
        lines += ["[[ignore]]", f'issue = "toy-{rng.randint(1, 6)}"', 'reason = "known"', 'author = "lead"']
        lines += [f"expires = {day}"]
    return "\n".join([*lines, ""])


def an_environment(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    """As arguments of the command, and as fields of the API. Files are named by their content."""
    build = rng.choice(["torch-2.5.1+cu124", "torch-2.6.0 cu124", "torch-2.7.1+cpu", "torch-2.8.0.dev20261101+cu128"])
    if rng.random() < 0.5:
        return ["--build", build], {"build": build}
    lines = ["-i https://example.org", rng.choice(["torch==2.6.0", "torch==2.7.1+cpu", "torch==9.9", "x==1"])]
    lines += rng.sample(["numpy==1.26.4", "triton==3.2.0", "torch_xla==2.6.0", "fla==0.1"], rng.randint(0, 3))
    return ["-r", "requirements.txt"], {"environment": {"name": "requirements.txt", "content": "\n".join(lines) + "\n"}}


def a_watch(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    name, words = rng.choice(
        [
            ("issues", [f"toy-{n}" for n in rng.sample(range(1, 7), 2)]),
            ("component", ["Inductor"]),
            ("package", ["torch-xla"]),
            ("severity", "medium"),
            ("severity", "low"),
        ]
    )
    text = words if isinstance(words, str) else ",".join(words)
    hardware = rng.choice([[], ["cpu-x86_64"], ["cuda-sm_90", "cpu-x86_64"], ["cuda-sm_70"]])
    arguments = [f"--{name}", text, *(part for one in hardware for part in ("--hardware", one))]
    return arguments, {name: words, "hardware": hardware}


@contextmanager
def a_server(engine: Engine) -> Iterator[str]:
    app = create_app(engine, clock=lambda: datetime.now(UTC), rules=Rules(requests_per_s=0))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def fill(engine: Engine, rng: random.Random) -> None:
    issues, builds, found = a_world(rng)
    migrate(engine)
    now = datetime.now(UTC)
    with unit_of_work(engine) as s:
        save_catalogue(s, issues, builds, now)
        touch(s)
        rows = [
            {
                "issue": cell.issue,
                "build": cell.build,
                "hardware": cell.hardware,
                "verdict": cell.verdict,
                "measured_at": cell.measured_at,
                "doc": wire.CELL.dump_json(cell, exclude_defaults=True).decode(),
            }
            for cell in found
        ]
        s.connection().execute(sa.insert(cells), rows)


def told(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The command's exit code and its document."""
    out = TextIOWrapper(BytesIO())
    monkeypatch.setattr("sys.stdout", out)
    code = gate.main([*arguments, "--format", "json"])
    text = out.buffer.getvalue().decode()
    return code, comparable(text)


def answered(asked: dict[str, Any], grounds: Grounds) -> tuple[int, dict[str, Any]]:
    """What every door should end in. In a world without a component nobody can watch it: usage, and no document."""
    try:
        ruling = rule(asked_of(asked), grounds, datetime.now(UTC))
    except BadField:
        return Exit.USAGE, {}
    document = comparable(render(ruling, Form.JSON))
    return gate.CODES[document["decision"]], document


def comparable(text: str) -> dict[str, Any]:
    """Less the time and the server's address."""
    document: dict[str, Any] = json.loads(re.sub(r"http://127\.0\.0\.1:\d+/", "/", text)) if text else {}
    return {name: value for name, value in document.items() if name not in {"decided_at", "known_at"}}


def test_three_doors_give_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(SEED)  # noqa: S311 - no secret
    decisions: set[str] = set()
    for world in range(-(-CASES // CASES_OF_A_WORLD)):
        engine = connect(f"sqlite:///{tmp_path / f'world-{world}.db'}")
        fill(engine, rng)
        with reading(engine) as s:
            grounds = load_edition(s, datetime.now(UTC)).grounds
        Path("snapshot").write_bytes(write_snapshot(grounds, KEY))
        with a_server(engine) as address:
            for case in range(min(CASES, CASES_OF_A_WORLD)):
                policy, (named, fields), (watched, watch) = a_policy(rng), an_environment(rng), a_watch(rng)
                Path("knowngood.toml").write_text(policy)
                Path("requirements.txt").write_text(fields.get("environment", {}).get("content", ""))
                asked = {**fields, **watch, "policy": {"name": "knowngood.toml", "content": policy}}
                expected = answered(asked, grounds)
                snapshot = ("--snapshot", "snapshot", "--public-key", public_key(KEY))
                from_snapshot = told(monkeypatch, *named, *watched, *snapshot)
                from_server = told(monkeypatch, *named, *watched, "--server", address)
                where = f"KNOWNGOOD_SOAK_SEED={SEED}, world {world}, case {case}: {asked}"
                assert from_snapshot == expected, where
                assert from_server == expected, where
                decisions.add(expected[1].get("decision", "refused"))
        engine.dispose()
    assert decisions - {"refused"} == set(gate.CODES), "the cases are worth little if they all end alike"
