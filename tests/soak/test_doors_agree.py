"""Server, command line and snapshot give the same document for random policies, environments and evidence.

KNOWNGOOD_SOAK_CASES says how many (60 unless set; `make soak` takes 5,000), KNOWNGOOD_SOAK_SEED repeats a run: the seed
is printed with every failure. The server and the snapshot are asked through the command itself, over real HTTP and a
real file; the store is read as the command reads it.
"""

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from knowngood.cli.exit_codes import Exit
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Packages, Requires, Severity
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.gate.asking import CODES
from knowngood.gate.policy import Effect, RemedyFilter
from knowngood.gate.renderers import Form, render
from knowngood.gate.request import BadField, read_request, rule
from knowngood.store.engine import connect, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.knowledge.signed_snapshot import public_key, write_snapshot
from tests.make import make_build, make_issue
from tests.oracle import Store
from tests.random_stores import BACKGROUNDS, random_patterns, store_of
from tests.soak import questions
from tests.soak.doors import KEY, a_server, arguments_of, comparable, fill, told
from tests.soak.seed import SEED

CASES = int(os.environ.get("KNOWNGOOD_SOAK_CASES", "60"))
CASES_OF_A_WORLD = max(1, min(100, CASES // 2))
MANY = 300
"""From so many on every decision is bound to occur."""
CLASSES = ("cpu-x86_64", "cuda-sm_80", "cuda-sm_90")

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]


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
        workaround.id: WorkaroundFinding(rng.choice(list(WorkaroundVerdict)), rng.choice([None, quoted("says so")]))
        for workaround in issue.workarounds
        if rng.random() < 0.7
    }
    return Cell(
        issue.id,
        build.id,
        hardware,
        rng.choice(list(Verdict)),
        quoted(rng.choice(["1 of 1 attempt", "control failed", ""])),
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
            ("remedy", RemedyFilter),
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


def an_environment(rng: random.Random) -> dict[str, Any]:
    """Fields of the API. Files are named by their content."""
    build = rng.choice(["torch-2.5.1+cu124", "torch-2.6.0 cu124", "torch-2.7.1+cpu", "torch-2.8.0.dev20261101+cu128"])
    if rng.random() < 0.5:
        return {"build": build}
    lines = ["-i https://example.org", rng.choice(["torch==2.6.0", "torch==2.7.1+cpu", "torch==9.9", "x==1"])]
    lines += rng.sample(["numpy==1.26.4", "triton==3.2.0", "torch_xla==2.6.0", "fla==0.1"], rng.randint(0, 3))
    return {"environment": {"name": "requirements.txt", "content": "\n".join(lines) + "\n"}}


def a_watch(rng: random.Random) -> dict[str, Any]:
    name, words = rng.choice(
        [
            ("issues", [f"toy-{n}" for n in rng.sample(range(1, 7), 2)]),
            ("component", ["Inductor"]),
            ("package", ["torch-xla"]),
            ("severity", "medium"),
            ("severity", "low"),
        ]
    )
    hardware = rng.choice([[], ["cpu-x86_64"], ["cuda-sm_90", "cpu-x86_64"], ["cuda-sm_70"]])
    return {name: words, "hardware": hardware}


def a_question(rng: random.Random) -> dict[str, Any]:
    policy = {"name": "knowngood.toml", "content": a_policy(rng)}
    return {**an_environment(rng), **a_watch(rng), "policy": policy}


World = tuple[Iterable[Issue], Iterable[Build], Iterable[Cell], Callable[[], Mapping[str, Any]]]


def worlds(rng: random.Random) -> Iterator[World]:
    """One after the other: cells of any kind on a few builds; then three Pythons of each, which answer for each other,
    with questions in every format and policies that take inferred answers or none.
    """
    while True:
        issues, builds, found = a_world(rng)
        yield issues, builds, found, partial(a_question, rng)
        known = store_of(random_patterns(rng, 0.6, is_steady=True), rng.choice(BACKGROUNDS))
        store = Store(known.issues, known.builds, known.cells)
        asked = partial(questions.a_question, rng, store, datetime.now(UTC))
        yield known.issues.values(), known.builds.values(), known.cells.values(), partial(_fields, asked)


def _fields(asked: Callable[[], Any]) -> Any:
    return asked().fields


def answered(asked: Mapping[str, Any], knowledge: Knowledge) -> tuple[int, dict[str, Any]]:
    """The exit code and document that every door should end in. In a world without a component nobody can watch it:
    usage, and no document.
    """
    try:
        ruling = rule(read_request(asked), knowledge, datetime.now(UTC))
    except BadField:
        return Exit.USAGE, {}
    document = comparable(render(ruling, Form.JSON))
    return CODES[document["decision"]], document


def test_three_doors_give_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(SEED)  # noqa: S311 - no secret
    decisions: set[str] = set()
    for world, (issues, builds, found, asking) in zip(range(-(-CASES // CASES_OF_A_WORLD)), worlds(rng), strict=False):
        engine = connect(f"sqlite:///{tmp_path / f'world-{world}.db'}")
        fill(engine, issues, builds, found)
        with reading(engine) as s:
            knowledge = load_knowledge(s, datetime.now(UTC)).knowledge
        Path("snapshot").write_bytes(write_snapshot(knowledge, KEY))
        with a_server(engine) as address:
            for case in range(CASES_OF_A_WORLD):
                asked = asking()
                arguments = arguments_of(asked)
                expected = answered(asked, knowledge)
                snapshot = ("--snapshot", "snapshot", "--public-key", public_key(KEY))
                where = f"KNOWNGOOD_SOAK_SEED={SEED}, world {world}, case {case}: {asked}"
                assert told(monkeypatch, *arguments, *snapshot) == expected, where
                assert told(monkeypatch, *arguments, "--server", address) == expected, where
                decisions.add(expected[1].get("decision", "refused"))
        engine.dispose()
    assert CASES < MANY or decisions - {"refused"} == set(CODES), "the cases are worth little if all end alike"
