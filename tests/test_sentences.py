"""No answer is made of our own words: with each sentence replaced by its key no decision or number is another."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.ask.lookup.service import answer_environment
from knowngood.domain.message import SENTENCES
from knowngood.domain.verdicts.verdict import is_flaky
from knowngood.gate.renderers.common import plain_passes
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.health.rules import remarks_of
from knowngood.move.compare.comparison import compare
from knowngood.move.upgrade.ranking import advise
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import read_shipped

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"{(\w+)}")
BUILDS = ("2.5.1", "2.9.1")
POLICY = AttachedFile('variants = "reported"\naccept = "measured"\nunknown = "warn"\n', "knowngood.toml")
PASTED = "torch==2.7.1\nRuntimeError: error: conflicting declaration 'int64_t tmp_acc0_arr [2]'\n"


def decisions() -> Iterator[object]:
    """What is decided and counted from the shipped results, without a word of why."""
    knowledge = read_shipped().knowledge
    known, now = knowledge.known, knowledge.known.as_of
    for build in BUILDS:
        for policy in (AttachedFile(""), POLICY):
            ruling = rule(GateRequest(build=build, issues=("all",), policy=policy), knowledge, now)
            yield (
                ruling.decision,
                dict(ruling.counts),
                [
                    (
                        one.issue,
                        one.hardware,
                        one.verdict,
                        one.effect,
                        one.sign,
                        one.first_fixed,
                        one.assurance,
                        one.runs,
                    )
                    for one in ruling.reasons
                ],
            )
            yield sum(map(len, plain_passes(ruling).values()))
        asked = answer_environment(GateRequest(build=build, issues=("all",)), knowledge, now)
        yield [(one.issue, one.verdict) for one in asked.ruling.reasons]
        advice = advise(read_upgrade(UpgradeRequest(build), knowledge, Recorded()), known)
        yield advice.decision, [(one.build.id, one.rating, one.counts) for one in advice.candidates]
        yield [one.build for one in advice.left_out]
    sides = [next(one for one in known.builds.values() if one.id.startswith(f"torch-{name}")) for name in BUILDS]
    for before, after in pairwise(sides):
        for class_ in known.hardware:
            found = compare(known.issues.values(), before, after, class_, known, now=now)
            yield [(pair.issue.id, pair.group) for pair in found.pairs]
    explained = explain_paste(PASTED, make_failure_library(tuple(known.issues.values()), {}), knowledge)
    yield explained.build, [(one.issue, one.strength, one.here) for one in explained.matches]
    yield [(one.trouble, one.issue, one.hardware) for one in remarks_of(known)]
    yield [is_flaky(cell) for cell in list(known.cells.values())[::7]]


def test_no_decision_or_number_is_read_off_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list(decisions())
    read_shipped.cache_clear()
    for key in SENTENCES:
        monkeypatch.setitem(SENTENCES, key, key)
    found = list(decisions())
    read_shipped.cache_clear()
    assert len(told) > 15
    assert found == told


def test_every_message_has_its_sentence_and_fills_its_places() -> None:
    """Of the keys that are written out; the others are made of enumerations that the tables are made of, too."""
    for file in (*ROOT.glob("app/**/*.py"), *ROOT.glob("workers/**/*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if name != "Message" or not isinstance(node, ast.Call) or not node.args:
                continue
            for key in (one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)):
                given = {one.arg for one in node.keywords}
                if isinstance(node.args[0], ast.Constant) and None not in given:
                    assert set(PLACE.findall(SENTENCES[str(key)])) == given, (file.name, key)
