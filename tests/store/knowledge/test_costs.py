"""The time that workarounds take, from a bundle to what is known of it."""

from dataclasses import replace
from pathlib import Path

from knowngood.domain.access import Actor
from knowngood.domain.issue import COSTS, Issue, cost_binding, environment_request, variants_of
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.paired_time import Says, TimedCost, as_observed
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.share.bundle import BundleHeader, write_bundle
from knowngood.share.store import take_in_bundle
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.model import Knowledge, together
from knowngood.store.knowledge.snapshot import read_unsigned, write_unsigned
from tests.make import NOON, make_attempt, make_build, make_issue, make_record
from tests.store.given import MACHINE, given_catalogue, given_results, given_run

ISSUE, BUILD = make_issue(workarounds=("aot_eager", "clone")), make_build()


def timed(workaround: str, ratio: float, n: int = 1, issue: Issue = ISSUE) -> Attempt:
    variant = variants_of(issue, workaround)[0]
    observed = as_observed("calls", (2.0, 3.0), 2, [(1e-3, ratio * 1e-3, 1e-3)] * 10)
    return replace(
        make_attempt(issue=issue, build=BUILD),
        id=f"{n:032x}",
        job=f"{n:032x}",
        arm=COSTS + workaround,
        ordinal=n,
        binding=cost_binding(issue, workaround, variant, environment_request(issue, BUILD)),
        record=make_record(observed=observed, probes={}, sandbox=("process",)),
        machine=MACHINE.digest,
        finished_at=make_attempt().finished_at.replace(minute=n),
    )


def take_in(engine: Engine, folder: Path, *attempts: Attempt) -> None:
    path = folder / f"{attempts[0].id}.gz"
    with path.open("wb") as file:
        write_bundle(file, BundleHeader(NOON, "test"), [MACHINE, *attempts])
    take_in_bundle(engine, path, NOON, by=Actor("test"))


def known(engine: Engine) -> Knowledge:
    with reading(engine) as s:
        return load_knowledge(s, NOON).knowledge


def costs(knowledge: Knowledge) -> dict[str, TimedCost]:
    return dict(knowledge.known.costs.get(ISSUE.id, {}))


def test_the_newest_time_of_each_workaround_is_known(own_engine: Engine, tmp_path: Path) -> None:
    given_catalogue(own_engine, [ISSUE], [BUILD])
    take_in(own_engine, tmp_path, timed("aot_eager", 1.3), timed("aot_eager", 1.2, 3), timed("clone", 1.0, 2))
    found = costs(known(own_engine))
    assert {id_: cost.compared.says for id_, cost in found.items()} == {
        "aot_eager": Says.COSTS,
        "clone": Says.NO_DIFFERENCE,
    }
    assert round(found["aot_eager"].compared.cost.ratio, 3) == 1.2
    assert found["aot_eager"].on == MACHINE.cpu_model


def test_no_verdict_rests_on_it(own_engine: Engine, tmp_path: Path) -> None:
    given_run(own_engine, [ISSUE], [BUILD])
    given_results(own_engine, Outcome.MATCH)
    before = dict(known(own_engine).known.cells)
    take_in(own_engine, tmp_path, timed("aot_eager", 1.3))
    assert dict(known(own_engine).known.cells) == before
    assert Verdict.AFFECTED in {cell.verdict for cell in before.values()}


def test_it_is_forgotten_once_either_side_is_edited(own_engine: Engine, tmp_path: Path) -> None:
    for edited in ("baseline", "aot_eager"):
        given_catalogue(own_engine, [ISSUE], [BUILD])
        take_in(own_engine, tmp_path, timed("aot_eager", 1.3))
        assert "aot_eager" in costs(known(own_engine))
        arms = tuple(replace(arm, code="new") if arm.id == edited else arm for arm in ISSUE.arms)
        given_catalogue(own_engine, [replace(ISSUE, arms=arms)], [BUILD])
        assert not costs(known(own_engine))


def test_a_snapshot_and_a_store_beside_it_keep_it(own_engine: Engine, tmp_path: Path) -> None:
    given_catalogue(own_engine, [ISSUE], [BUILD])
    without = known(own_engine)
    take_in(own_engine, tmp_path, timed("aot_eager", 1.3))
    knowledge = known(own_engine)
    read = read_unsigned(write_unsigned(knowledge)).knowledge
    assert costs(read) == costs(knowledge) != {}
    assert costs(together(without, read)) == costs(knowledge)
    edited = replace(ISSUE, arms=tuple(replace(arm, code="new") for arm in ISSUE.arms))
    other = replace(without, known=replace(without.known, issues={ISSUE.id: edited}))
    assert not costs(together(other, read))
