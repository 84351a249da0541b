import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from knowngood.domain.errors import KnownGoodError
from knowngood.domain.issue import Device, Requires, Variant
from knowngood.domain.measuring.job import ArmStarted, Event, JobEnded, JobSpec, Provisioning
from knowngood.domain.measuring.planning import KnownAttempts, PlanRequest, plan_jobs
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER, cancel_run, claim_job, create_run, take_lease
from knowngood.store.records import JobState, RunRow, RunState
from knowngood_workers.dispatch.dispatcher import DispatcherBusy, DispatchOptions, dispatch, utc_now
from knowngood_workers.dispatch.local_transport import AgentLost, JobHandle, LocalTransport
from tests.fixtures.databases import administer
from tests.make import HARDWARE, make_build, make_issue
from tests.store.given import given_catalogue, given_run
from tests.waiting import PATIENCE_S, eventually
from tests.workers.dispatch.test_local_transport import TOY, ledger, none_alive

ONCE = DispatchOptions(hardware=(HARDWARE,), until_idle=True, poll_s=0.02, lease_s=5.0, grace_s=5.0)


@pytest.fixture
def transport(tmp_path: Path) -> LocalTransport:
    return LocalTransport({"ledger": str(tmp_path / "ledger")}, TOY)


def doing(*does: str, **params: Any) -> Any:
    """An issue whose variants do this; without workarounds, so each variant is two arms."""
    variants = tuple(Variant(f"v{n}", "", {"does": what, **params}) for n, what in enumerate(does))
    return make_issue(variants=variants, workarounds=())


def forever() -> bool:
    return False


def load_run(engine: Engine, run: str) -> RunRow:
    with reading(engine) as s:
        return queries.load_run(s, run)


def kinds(engine: Engine) -> Counter[str]:
    with reading(engine) as s:
        return Counter(event.kind for event in queries.load_events(s, 0, None, 10_000))


def counted(engine: Engine) -> Counter[tuple[str, str, str]]:
    with reading(engine) as s:
        return Counter(
            (row.attempt.build, row.attempt.arm, row.attempt.variant)
            for build in queries.load_builds(s)
            for row in queries.load_attempts(s, "toy-1", build.id, HARDWARE)
            if row.counted
        )


@contextmanager
def dispatching(engine: Engine, transport: Any, how: DispatchOptions, **options: Any) -> Iterator[threading.Event]:
    """A dispatcher in the background; set the event to stop it."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(dispatch, engine, transport, how, stop=stop.is_set, **options)
        try:
            yield stop
        finally:
            stop.set()
            done.result(PATIENCE_S)


@pytest.mark.system
def test_a_run_is_carried_out_and_the_matrix_filled(engine: Engine, transport: LocalTransport, tmp_path: Path) -> None:
    builds = [make_build("2.6.0+cu124"), make_build("2.7.0+cu126")]
    run = given_run(engine, [doing("match")], builds, at=utc_now())
    heard: list[Event] = []
    dispatch(engine, transport, ONCE, stop=forever, on_event=heard.append)
    row = load_run(engine, run)
    assert (row.state, row.arms_done, row.arms_total) == (RunState.DONE, 4, 4)
    with reading(engine) as s:
        assert [cell.verdict for cell in queries.load_cells(s)] == [Verdict.AFFECTED] * 2
        assert queries.load_lease(s, DISPATCHER) is None
    assert sum(isinstance(event, JobEnded) for event in heard) == 2
    assert none_alive(tmp_path)


def test_several_jobs_run_at_once_when_asked_to(own_engine: Engine, transport: LocalTransport, tmp_path: Path) -> None:
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(2)]
    both = tmp_path / "both are there"
    run = given_run(own_engine, [doing("pass", until=str(both))], builds, at=utc_now())
    together = DispatchOptions(hardware=(HARDWARE,), jobs=2, until_idle=True, poll_s=0.02)
    going: set[str] = set()
    most = []

    def note(event: Event) -> None:
        if isinstance(event, JobEnded):
            going.discard(event.job)
        else:
            going.add(event.job)
        most.append(len(going))
        if len(going) > 1:
            both.touch()

    dispatch(own_engine, transport, together, stop=forever, on_event=note)
    assert load_run(own_engine, run).state is RunState.DONE
    assert max(most) > 1


def test_jobs_of_the_cpu_run_beside_those_of_the_gpus(
    own_engine: Engine, transport: LocalTransport, tmp_path: Path
) -> None:
    """One at a time on the CPU; on a GPU the next one too, whose environment is made meanwhile."""
    classes = (HARDWARE, "cuda-sm_90")
    all_three = tmp_path / "all three are there"
    on_cpu = doing("pass", until=str(all_three))
    issues = [on_cpu, replace(on_cpu, id="toy-2", requires=Requires(device=Device.CUDA))]
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(2)]
    given_catalogue(own_engine, issues, builds)
    with unit_of_work(own_engine) as s:
        planned = plan_jobs(issues, builds, classes, KnownAttempts(), PlanRequest())
        run = create_run(s, planned, {"by": "test"}, utc_now())
    how = DispatchOptions(hardware=classes, until_idle=True, poll_s=0.02)
    going: dict[str, set[str]] = {class_: set() for class_ in classes}
    at_once: list[tuple[int, ...]] = []

    def note(event: Event) -> None:
        of_class = going[hardware_of[event.job]]
        (of_class.discard if isinstance(event, JobEnded) else of_class.add)(event.job)
        at_once.append(tuple(len(going[class_]) for class_ in classes))
        if at_once[-1] == (1, 2):
            all_three.touch()

    hardware_of = {job.id: job.hardware for job in load_run(own_engine, run).jobs}
    dispatch(own_engine, transport, how, stop=forever, on_event=note)
    assert load_run(own_engine, run).state is RunState.DONE
    assert tuple(map(max, zip(*at_once, strict=True))) == (1, 2)
    assert (1, 2) in at_once


def test_only_what_this_dispatcher_can_serve_is_claimed(own_engine: Engine, transport: LocalTransport) -> None:
    run = given_run(own_engine, [doing("pass")], at=utc_now())
    dispatch(own_engine, transport, DispatchOptions(hardware=("cuda-sm_90",), until_idle=True), stop=forever)
    assert load_run(own_engine, run).state is RunState.QUEUED


def test_only_the_run_asked_for_is_worked_on(own_engine: Engine, transport: LocalTransport) -> None:
    first = given_run(own_engine, [doing("pass")], at=utc_now())
    second = given_run(own_engine, [doing("pass")], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), until_idle=True, run=second, poll_s=0.02)
    dispatch(own_engine, transport, how, stop=forever)
    assert [load_run(own_engine, run).state for run in (first, second)] == [RunState.QUEUED, RunState.DONE]


def test_a_worker_that_dies_is_replaced_until_its_arm_is_given_up(
    own_engine: Engine, transport: LocalTransport
) -> None:
    run = given_run(own_engine, [doing("die", "pass")], at=utc_now())
    dispatch(own_engine, transport, ONCE, stop=forever)
    row = load_run(own_engine, run)
    assert (row.state, row.arms_done) == (RunState.DONE, 4)
    assert row.jobs[0].try_no == 7, "control and baseline die three times each; then what is left runs"
    assert set(counted(own_engine).values()) == {1}
    with reading(own_engine) as s:
        (cell,) = queries.load_cells(s)
    assert cell.verdict is Verdict.INCONCLUSIVE
    with reading(own_engine) as s:
        reasons = {
            row.attempt.variant: english(row.judgement.reason)
            for row in queries.load_attempts(s, "toy-1", make_build().id, HARDWARE)
        }
    assert "the worker died 3 times" in reasons["v0"]
    assert "SIGKILL" in reasons["v0"]
    assert "about to die" in reasons["v0"]


def test_an_agent_that_never_starts_gives_the_whole_job_up(own_engine: Engine) -> None:
    run = given_run(own_engine, [doing("pass")], at=utc_now())
    dispatch(own_engine, LocalTransport({}, ("/nowhere/agent",)), ONCE, stop=forever)
    row = load_run(own_engine, run)
    assert (row.state, row.jobs[0].state, row.arms_done) == (RunState.DONE, JobState.POISONED, 2)
    assert "no agent could be started" in row.jobs[0].problem


def test_an_agent_that_leaves_arms_undone_is_asked_again_then_given_up(
    own_engine: Engine, transport: LocalTransport
) -> None:
    run = given_run(own_engine, [doing("pass", "leave")], at=utc_now())
    dispatch(own_engine, transport, ONCE, stop=forever)
    row = load_run(own_engine, run)
    assert (row.state, row.arms_done) == (RunState.DONE, 4)
    assert set(counted(own_engine).values()) == {1}


@pytest.mark.parametrize("does", ["hang", "deaf"])
def test_a_cancelled_run_stops_its_agents(
    own_engine: Engine, transport: LocalTransport, tmp_path: Path, does: str
) -> None:
    run = given_run(own_engine, [doing(does)], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), poll_s=0.02, grace_s=0.5)
    with dispatching(own_engine, transport, how):
        assert eventually(lambda: len(ledger(tmp_path)) == 1)
        with unit_of_work(own_engine) as s:
            cancel_run(s, run, utc_now())
        assert eventually(lambda: load_run(own_engine, run).state is RunState.CANCELLED)
        assert eventually(lambda: none_alive(tmp_path))


@pytest.mark.parametrize("does", ["hang", "deaf"])
def test_a_stopped_dispatcher_gives_its_jobs_back_and_leaves_no_process(
    own_engine: Engine, transport: LocalTransport, tmp_path: Path, does: str
) -> None:
    run = given_run(own_engine, [doing(does)], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), poll_s=0.02, grace_s=0.5)
    with dispatching(own_engine, transport, how):
        assert eventually(lambda: len(ledger(tmp_path)) == 1)
    assert none_alive(tmp_path)
    row = load_run(own_engine, run)
    assert (row.state, row.jobs[0].state, row.arms_done) == (RunState.RUNNING, JobState.QUEUED, 0)
    with reading(own_engine) as s:
        assert queries.load_lease(s, DISPATCHER) is None
    with unit_of_work(own_engine) as s:
        spec = claim_job(s, "next", utc_now(), 30.0)
    assert spec is not None
    assert len(spec.arms) == 2


def test_a_second_dispatcher_is_refused_with_a_sentence(own_engine: Engine, transport: LocalTransport) -> None:
    with unit_of_work(own_engine) as s:
        take_lease(s, DISPATCHER, "the first", utc_now(), 30.0)
    with pytest.raises(DispatcherBusy, match="another dispatcher is at work until"):
        dispatch(own_engine, transport, ONCE, stop=forever)


def test_a_second_dispatcher_that_waits_takes_over_the_jobs_of_a_dead_one(
    engine: Engine, transport: LocalTransport
) -> None:
    run = given_run(engine, [doing("pass")], at=utc_now())
    with unit_of_work(engine) as s:
        died_at = utc_now()
        take_lease(s, DISPATCHER, "the dead", died_at, 0.5)
        assert claim_job(s, "the dead", died_at, 0.5) is not None
    how = DispatchOptions(hardware=(HARDWARE,), until_idle=True, waits=True, poll_s=0.02)
    dispatch(engine, transport, how, stop=forever)
    assert utc_now() >= died_at + timedelta(seconds=0.5)
    row = load_run(engine, run)
    assert (row.state, row.jobs[0].try_no) == (RunState.DONE, 2)


def test_a_dispatcher_that_waits_can_be_stopped(own_engine: Engine, transport: LocalTransport) -> None:
    with unit_of_work(own_engine) as s:
        take_lease(s, DISPATCHER, "the first", utc_now(), 30.0)
    how = DispatchOptions(hardware=(HARDWARE,), waits=True, poll_s=0.02)
    with dispatching(own_engine, transport, how) as stop:
        time.sleep(0.1)
        stop.set()


def test_a_dispatcher_that_lost_its_lease_stops_at_once_and_records_nothing_more(
    own_engine: Engine, transport: LocalTransport, tmp_path: Path
) -> None:
    """As after a machine slept: by its own clock another one came to be in charge."""
    run = given_run(own_engine, [doing("hang")], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), poll_s=0.02, lease_s=6.0)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(dispatch, own_engine, transport, how, stop=stop.is_set)
        assert eventually(lambda: len(ledger(tmp_path)) == 1)
        with unit_of_work(own_engine) as s:
            assert take_lease(s, DISPATCHER, "the other", utc_now() + timedelta(seconds=60), 60.0)
        with pytest.raises(DispatcherBusy):
            done.result(PATIENCE_S)
    assert none_alive(tmp_path)
    assert load_run(own_engine, run).arms_done == 0
    with reading(own_engine) as s:
        lease = queries.load_lease(s, DISPATCHER)
    assert lease is not None
    assert lease.holder == "the other"


def test_leases_are_renewed_while_a_job_runs(own_engine: Engine, transport: LocalTransport) -> None:
    """Seen twice in one that would last for seconds: a busy machine does not let it lapse."""
    run = given_run(own_engine, [doing("hang")], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), poll_s=0.02, lease_s=2.0)
    seen: set[datetime] = set()

    def is_renewed() -> bool:
        with reading(own_engine) as s:
            lease = queries.load_lease(s, DISPATCHER)
        seen.update([lease.until] if lease else [])
        return len(seen) > 2

    with dispatching(own_engine, transport, how):
        assert eventually(is_renewed)
        (job,) = load_run(own_engine, run).jobs
        assert (job.state, job.try_no) == (JobState.LEASED, 1)


class Scripted:
    """A transport whose agent says what a test tells it to: for what no real agent can be brought to do on time."""

    def __init__(self, tell: Callable[[JobSpec], Iterator[Event]], *, lingers: bool = False) -> None:
        self._tell = tell
        self._lingers = lingers

    def start(self, spec: JobSpec) -> JobHandle:
        return _ScriptedHandle(self._tell(spec), lingers=self._lingers)


class _ScriptedHandle:
    def __init__(self, told: Iterator[Event], *, lingers: bool) -> None:
        self._told = told
        self._killed = threading.Event()
        if not lingers:
            self._killed.set()

    def events(self) -> Generator[Event]:
        yield from self._told
        self._killed.wait(PATIENCE_S)
        raise AgentLost("it was cut off")

    def cancel(self) -> None:
        return

    def kill(self) -> None:
        self._killed.set()


def test_an_agent_that_says_nothing_for_too_long_is_given_up(own_engine: Engine) -> None:
    run = given_run(own_engine, [make_issue(workarounds=(), timeout_s=0.05)], at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), until_idle=True, poll_s=0.02, silence_s=0.1)
    dispatch(own_engine, Scripted(lambda _: iter(()), lingers=True), how, stop=forever)
    row = load_run(own_engine, run)
    assert (row.state, row.arms_done) == (RunState.DONE, 2)
    assert "the agent said nothing for" in row.jobs[0].problem


def test_a_flood_of_progress_is_thinned_out(own_engine: Engine) -> None:
    given_run(own_engine, [doing("pass")], at=utc_now())

    def tell(spec: JobSpec) -> Iterator[Event]:
        for phase in ("resolve", "sync"):
            for done in range(200):
                yield Provisioning(spec.job, spec.try_no, phase, "torch", done, 200)

    heard: list[Event] = []
    began = time.monotonic()
    dispatch(own_engine, Scripted(tell), ONCE, stop=forever, on_event=heard.append)
    seconds = time.monotonic() - began
    assert len(heard) == 3 * 400
    assert 6 <= kinds(own_engine)["provisioning"] <= 6 + seconds, "one of each phase, and one a second"


def test_an_event_of_another_job_is_refused_and_the_agent_let_go(own_engine: Engine) -> None:
    run = given_run(own_engine, [doing("pass")], at=utc_now())
    tries: list[int] = []

    def tell(spec: JobSpec) -> Iterator[Event]:
        tries.append(spec.try_no)
        yield ArmStarted(spec.job, spec.try_no - 1, spec.arms[0].attempt, utc_now())

    with dispatching(own_engine, Scripted(tell), DispatchOptions(hardware=(HARDWARE,), poll_s=0.02, lease_s=5.0)):
        assert eventually(lambda: len(tries) >= 3)
        assert eventually(lambda: load_run(own_engine, run).state is RunState.DONE)
    assert load_run(own_engine, run).jobs[0].state is JobState.POISONED


def test_an_error_of_ours_ends_the_dispatcher_and_is_not_swallowed(
    own_engine: Engine, transport: LocalTransport, tmp_path: Path
) -> None:
    given_run(own_engine, [doing("hang")], at=utc_now())

    def stumble(event: Event) -> None:
        if isinstance(event, ArmStarted):
            raise KnownGoodError("the terminal is gone")

    with pytest.raises(KnownGoodError, match="the terminal is gone"):
        dispatch(own_engine, transport, ONCE, stop=forever, on_event=stumble)
    assert eventually(lambda: none_alive(tmp_path))
    with reading(own_engine) as s:
        assert queries.load_lease(s, DISPATCHER) is None


def test_a_database_that_is_away_for_a_while_costs_no_job_a_try(
    postgres: sa.URL, postgres_url: str, transport: LocalTransport
) -> None:
    """Two jobs are under way when it goes and when it comes back; what their agents say meanwhile is recorded then."""
    engine, name = connect(postgres_url), sa.make_url(postgres_url).database
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(2)]
    run = given_run(engine, [doing("pass", "pass", takes_s=0.4)], builds, at=utc_now())
    how = DispatchOptions(hardware=(HARDWARE,), jobs=2, waits=True, poll_s=0.02, lease_s=60.0)
    with capture_logs() as logs, dispatching(engine, transport, how):
        assert eventually(lambda: kinds(engine)["arm_started"] >= 2)
        hang_up = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608 - ours
        administer(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", hang_up)
        try:
            assert eventually(lambda: any("waiting for it" in line["event"] for line in logs))
            time.sleep(1.0)  # arms end in this time, and nobody can write that down
        finally:
            administer(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert eventually(lambda: load_run(engine, run).state is RunState.DONE)
    assert {job.try_no for job in load_run(engine, run).jobs} == {1}
    assert set(counted(engine).values()) == {1}
    engine.dispose()
