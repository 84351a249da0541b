"""The product decides as the rules' text says, for random questions over random stores.

The oracle (tests/oracle.py) tells the rules a second time, by plain loops over every cell. KNOWNGOOD_SOAK_CASES says
how many questions there are (300 unless set; `make soak` takes 5,000), KNOWNGOOD_SOAK_SEED repeats a run: the seed is
printed with every failure. Some of them (200 at most) go through every door: the server over real HTTP, the JSON that
its page leads to, the command over the store, and, where it can answer, a snapshot.
"""

import html
import os
import random
import re
import urllib.request
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import TypeAdapter

from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.domain.builds.build import Build
from knowngood.gate.asking import CODES
from knowngood.gate.renderers import Form, render
from knowngood.gate.request import BadField, read_request, rule
from knowngood.move.compare.comparison import compare
from knowngood.move.schemas import UpgradeBody, compare_body, upgrade_body
from knowngood.move.upgrade.constraints import Constraints, violations
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade
from knowngood.store.engine import connect, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.knowledge.signed_snapshot import public_key, write_snapshot
from tests import oracle
from tests.random_stores import BACKGROUNDS, BUILDS, CPU, GPU, ISSUES, OLD_GPU, random_patterns, store_of
from tests.soak.doors import KEY, a_server, arguments_of, commanded, comparable, fill, told
from tests.soak.questions import a_question
from tests.soak.seed import SEED

CASES = int(os.environ.get("KNOWNGOOD_SOAK_CASES", "300"))
CASES_OF_A_WORLD = max(1, min(100, CASES // 2))
DOORS = min(200, CASES // 15)
_TWIN = re.compile(r'<a href="([^"]+)" type="application/json"')
MANY = 300
"""From so many on every decision is bound to occur."""

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class World:
    """A store as the product has it and as the oracle has it."""

    knowledge: Knowledge
    store: oracle.Store


def a_world(chance: random.Random) -> World:
    density, is_steady = chance.choice([0.3, 0.9, 1.0]), chance.random() < 0.7
    known = store_of(random_patterns(chance, density, is_steady=is_steady), chance.choice(BACKGROUNDS))
    knowledge = Knowledge(known, frozenset(build for _, build, _ in known.cells))
    return World(knowledge, oracle.Store(known.issues, known.builds, known.cells))


@dataclass(frozen=True)
class Doors:
    """Where a question goes through every door."""

    monkeypatch: pytest.MonkeyPatch
    address: str

    def get(self, path: str, **asked: Any) -> dict[str, Any]:
        query = urlencode({name: value for name, value in asked.items() if value}, doseq=True)
        return self._read(urllib.request.Request(f"{self.address}/api/v1/{path}?{query}"))

    def page(self, path: str, **asked: str) -> dict[str, Any]:
        """The JSON that a person's page leads to."""
        request = urllib.request.Request(f"{self.address}/{path}?{urlencode(asked)}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            page = answer.read().decode()
        (twin,) = _TWIN.findall(page)
        return self._read(urllib.request.Request(f"{self.address}{html.unescape(twin)}"))

    def post(self, path: str, body: bytes, kind: str) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.address}/api/v1/{path}", data=body, headers={"Content-Type": kind})
        return self._read(request)

    def _read(self, request: urllib.request.Request) -> dict[str, Any]:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return comparable(answer.read().decode())

    def command(self, *arguments: str) -> dict[str, Any]:
        return commanded(self.monkeypatch, *arguments)

    def gate(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        return told(self.monkeypatch, *arguments)


# -- the gate ----------------------------------------------------------------------------------------------------------


def of_the_gate(chance: random.Random, world: World, doors: Doors | None) -> str:
    now = datetime.now(UTC)
    asked = a_question(chance, world.store, now)
    try:
        ruling = rule(read_request(asked.fields), world.knowledge, now)
    except BadField:
        assert asked.environment is None, asked
        return "refused"
    assert asked.environment is not None, asked
    true = oracle.gate(world.store, asked.policy, asked.watched, asked.environment, now, named=asked.named)
    reasons = {
        (one.issue, one.hardware): (one.effect.value, one.verdict.value, one.assurance.value) for one in ruling.reasons
    }
    assert (ruling.decision.value, reasons) == (true.decision, dict(true.reasons)), asked
    if doors:
        document = comparable(render(ruling, Form.JSON))
        arguments, expected = arguments_of(asked.fields), (CODES[true.decision], document)
        assert document["decision"] == true.decision
        assert doors.gate(*arguments) == expected, asked
        assert doors.gate(*arguments, "--server", doors.address) == expected, asked
        assert doors.gate(*arguments, "--snapshot", "snapshot", "--public-key", public_key(KEY)) == expected, asked
    return true.decision


# -- an upgrade --------------------------------------------------------------------------------------------------------


def of_an_upgrade(chance: random.Random, world: World, doors: Doors | None) -> str:
    start = chance.choice([one for one in BUILDS.values() if one.minor in {"2.5", "2.6"}])
    classes = chance.choice([(), (CPU,), (GPU, CPU), (OLD_GPU,)])
    classes = tuple(one for one in classes if one in {*world.knowledge.known.hardware, CPU})
    rows = sorted(chance.sample(list(ISSUES), chance.randint(1, len(ISSUES))))
    has, enough = chance.choice([(), ("none",), ("torchao",)]), chance.choice([50, 80, 100])
    asked = UpgradeRequest(start.id, issues=tuple(rows), hardware=classes, has=has, enough=enough)
    held = has or ("torchao",)  # where nothing is known of the packages, a row counts that is named
    watched = [row for row in rows if ISSUES[row].requires.package in {"", *held}]
    try:
        advice = advise(read_upgrade(asked, world.knowledge, Recorded()), world.knowledge.known)
    except BadField:
        assert not watched, asked
        return "refused"
    choices = [one for one in BUILDS.values() if is_newer(one, start) and not breaks(one, start, classes)]
    packages = tuple(asked.packages or ())
    true = oracle.upgrade(world.store, start, watched, classes, choices, enough / 100, packages)
    expected = (true.decision, true.best, [(one.build.id, true.ratings[one.build.id]) for one in true.candidates])
    assert shown(advice) == expected, asked
    if doors:
        query = {"from": start.id, "issues": ",".join(rows), "hardware": ",".join(classes), "has": ",".join(has)}
        body = plain(upgrade_body(advice))
        assert doors.get("upgrade", **query, enough=enough) == body, asked
        assert doors.page("upgrade", **query, enough=str(enough)) == body, asked
        options = [f"--{name}={value}" for name, value in query.items() if value]
        assert doors.command("upgrade", *options, f"--enough={enough}", "--json") == body, asked
    return f"upgrade: {true.decision}"


def is_newer(build: Build, start: Build) -> bool:
    return build.build_id.apart_from_python > start.build_id.apart_from_python


def breaks(build: Build, start: Build, classes: tuple[str, ...]) -> bool:
    return any(violations(build, Constraints(hardware=classes), start, {}))


def shown(advice: UpgradeAdvice) -> tuple[str, str, list[tuple[str, str]]]:
    good = {"recommended", "also_good"}
    ratings = [(one.build.id, "good" if one.rating in good else one.rating.value) for one in advice.candidates]
    return advice.decision.value, advice.best.build.id if advice.best else "", ratings


def plain(body: UpgradeBody | Explanation) -> dict[str, Any]:
    return comparable(TypeAdapter(type(body)).dump_json(body).decode())


# -- a comparison ------------------------------------------------------------------------------------------------------


def of_a_comparison(chance: random.Random, world: World, doors: Doors | None) -> str:
    now = datetime.now(UTC)
    before, after = chance.sample(list(BUILDS.values()), 2)
    class_, rows = chance.choice(world.knowledge.known.hardware), sorted(chance.sample(list(ISSUES), 5))
    found = compare([ISSUES[row] for row in rows], before, after, class_, world.knowledge.known, now=now)
    for pair in found.pairs:
        sides = [oracle.claim(world.store, pair.issue, build, class_) for build in (before, after)]
        where = (pair.issue.id, before.id, after.id, class_)
        assert pair.group.value == oracle.became(pair.issue, *sides), where
        shown_sides = [(cell.verdict.value, cell.assurance.value, cell.runs) for cell in (pair.before, pair.after)]
        assert shown_sides == [(one.verdict, one.assurance, one.runs) for one in sides], where
    if doors:
        query = {"hardware": class_, "issues": ",".join(rows)}
        body = comparable(compare_body(found, now, query).model_dump_json())
        assert doors.get("compare", a=before.id, b=after.id, **query) == body
        assert doors.page("compare", a=before.id, b=after.id, **query) == body
        options = [f"--{name}={value}" for name, value in query.items()]
        assert doors.command("compare", before.id, after.id, *options, "--json")["pairs"] == body["pairs"]
    return "compare"


# -- a paste -----------------------------------------------------------------------------------------------------------


def _passes_there(world: World, row: str, build: Build, tested: str | None) -> bool:
    """Measured on the very build that is named: then the words alone do not make it this row."""
    claims = [oracle.claim(world.store, ISSUES[row], build, class_) for class_ in world.store.classes]
    passed = any(one.verdict == "not_affected" and one.assurance == "measured" for one in claims)
    return bool(tested) and passed and not any(one.verdict in oracle.SEEN for one in claims)


def of_a_paste(chance: random.Random, world: World, doors: Doors | None) -> str:
    """A failure in the words of one row, on a build that is named beside it or in it."""
    row = chance.choice([id_ for id_, issue in ISSUES.items() if issue.signature.pattern])
    build = chance.choice([*BUILDS.values()])
    text = f"Traceback (most recent call last):\nRuntimeError: the kernel of {row} broke in 7 places\n"
    known, measured = world.knowledge.known, world.knowledge
    library = make_failure_library(known.issues.values(), {})
    body = explain_paste(text, library, measured, build.id)
    (match,) = body.matches
    assert (match.issue, body.build) == (row, build.id if build.id in measured.tested else None)
    assert body.known is not _passes_there(world, row, build, body.build)
    seen = {(build, class_) for (id_, build, class_), cell in world.store.cells.items() if id_ == row and is_seen(cell)}
    assert {(one.build, one.hardware) for one in match.seen} == seen
    here = [(class_, oracle.claim(world.store, ISSUES[row], build, class_)) for class_ in world.store.classes]
    tried = [(class_, one) for class_, one in here if one.ground is not None and one.ground.measured_at is not None]
    expected = (
        min(tried, key=lambda pair: (pair[1].verdict not in oracle.SEEN, pair[0])) if body.build and tried else None
    )
    told_here = (match.here.hardware, match.here.verdict.value) if match.here else None
    assert told_here == ((expected[0], expected[1].verdict) if expected else None), (row, build.id)
    if doors:
        Path("paste.txt").write_text(text)
        expected_body = plain(body)
        posted = f"errors?{urlencode({'build': build.id})}"
        assert doors.post(posted, text.encode(), "text/plain") == expected_body
        assert doors.command("explain", "paste.txt", "--build", build.id, "--json") == expected_body
    return "explain"


def is_seen(cell: Any) -> bool:
    return cell.verdict in oracle.SEEN


KINDS = (*[of_the_gate] * 6, of_an_upgrade, of_an_upgrade, of_a_comparison, of_a_comparison, of_a_paste)


def test_the_product_decides_what_the_rules_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path))
    monkeypatch.setenv(
        "KNOWNGOOD_SHIPPED", "false"
    )  # worlds of toys: what comes with the release would stand beside them
    chance = random.Random(SEED)  # noqa: S311 - no secret
    ended: Counter[str] = Counter()
    worlds = -(-CASES // CASES_OF_A_WORLD)
    for number in range(worlds):
        world = a_world(chance)
        through_doors = DOORS // worlds
        ended.update(asked_often(chance, world, None, CASES_OF_A_WORLD - through_doors, f"world {number}"))
        if not through_doors:
            continue
        monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", f"sqlite:///{tmp_path / f'world-{number}.db'}")
        engine = connect(os.environ["KNOWNGOOD_DATABASE_URL"])
        fill(engine, world.store.issues.values(), world.store.builds.values(), world.store.cells.values())
        with reading(engine) as s:
            kept = World(load_knowledge(s, datetime.now(UTC)).knowledge, world.store)
        Path("snapshot").write_bytes(write_snapshot(kept.knowledge, KEY))
        with a_server(engine) as address:
            doors = Doors(monkeypatch, address)
            ended.update(asked_often(chance, kept, doors, through_doors, f"world {number}, at the doors"))
        engine.dispose()
    print(f"KNOWNGOOD_SOAK_SEED={SEED}: {dict(ended)}")  # noqa: T201 - shown with -s
    assert CASES < MANY or {*CODES} <= {*ended}, "the questions are worth little if they all end alike"


def asked_often(chance: random.Random, world: World, doors: Doors | None, times: int, where: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in range(times):
        try:
            found[chance.choice(KINDS)(chance, world, doors)] += 1
        except AssertionError as error:
            error.add_note(f"KNOWNGOOD_SOAK_SEED={SEED}, {where}, question {number}")
            raise
    return found
