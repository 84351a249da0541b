"""The Ray transport on a real cluster: the dispatcher's own head and two workers, on one machine, with toy agents.

Skipped only where Ray is not installed. Ray listens on every interface whatever it is told (2.60, measured 2026-11-21);
whoever is not of the cluster lacks its token, which is of this run alone.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import sqlalchemy as sa

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_classes import isa_classes
from knowngood.domain.measuring.job import ArmFinished, ArmStarted, Event, JobEnded, JobSpec, JobStarted
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.health.coverage import load_waiting
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.jobs.job_queue import DISPATCHER, take_lease
from knowngood.store.jobs.workers import load_offers
from knowngood.store.records import JobState
from knowngood.store.tables import arms, jobs
from knowngood_workers.dispatch.dispatcher import DispatchOptions, dispatch, utc_now
from knowngood_workers.dispatch.local_transport import AgentLost, JobReturned, LocalTransport
from knowngood_workers.provision.resolver import environment_key
from knowngood_workers.ray.node import NODE, NodeProcess, offer_machine
from knowngood_workers.ray.transport import Fleet, RayJobHandle, RayTransport
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE, make_build
from tests.store.given import given_run
from tests.waiting import eventually
from tests.workers.dispatch.test_dispatcher import ONCE, counted, doing, forever, load_run
from tests.workers.dispatch.test_local_transport import spec

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.system,
    pytest.mark.timeout(600),
]

RELEASE = "1.0"
GPU_CLASS = "cuda-sm_90"
HOST = Machine("Toy", "none", 2, 8 << 30, "none", "none", "none", "")
GPU_HOST = replace(HOST, driver="580.65", driver_cuda="13.0", gpus=(Gpu(3, "H100", (9, 0), 80 << 30),))
PATIENCE_S = 120.0
HEAD, FIRST, SECOND = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@dataclass
class Site:
    """A cluster and what belongs to it. `mark` stands in the command line of every agent and of all that it starts."""

    folder: Path
    environ: dict[str, str]
    mark: str
    port: int
    transport: RayTransport
    nodes: dict[str, NodeProcess]

    def join(self, ip: str, machine: Machine = HOST) -> tuple[NodeProcess, str]:
        """Start a worker and wait until it has joined; its process, and its id in the fleet."""
        before = {member.id for member in self.transport.members}
        node = offer_machine(
            machine,
            {"ledger": str(self.folder / "ledger"), "root": str(self.folder / ip)},
            address=f"{HEAD}:{self.port}",
            release=RELEASE,
            ip=ip,
            environ=self.environ,
        )
        assert node.launch_spec is not None
        toy = (sys.executable, "-m", "tests.workers.toy_agent", self.mark)
        process = NodeProcess(replace(node, launch_spec=replace(node.launch_spec, command=toy)), self.environ)
        self.nodes[ip] = process
        assert process.wait_until_started(PATIENCE_S), process.last_words()
        assert eventually(lambda: len({one.id for one in self.transport.members} - before) == 1, PATIENCE_S)
        (id_,) = {one.id for one in self.transport.members} - before
        return process, id_

    def has_environment(self, node: str, build: Build) -> None:
        """As if that machine had made the environment of `spec` for this build, and no other had."""
        self.transport._ready[environment_key(build, spec("pass").request)] = {node}

    def ledger(self) -> list[list[str]]:
        path = self.folder / "ledger"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def agent_and_task(self) -> tuple[psutil.Process, psutil.Process]:
        """The first agent of the ledger, and the process of Ray's that started it."""
        agent = psutil.Process(int(self.ledger()[0][1]))
        task = agent.parent()
        assert task is not None
        return agent, task

    def toys(self) -> list[psutil.Process]:
        """Every living process of any agent."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if self.mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def ray(self) -> list[str]:
        """Every living process of Ray's: the token's path stands in the environment of all of them."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mine = process.environ().get("RAY_AUTH_TOKEN_PATH") == self.environ["RAY_AUTH_TOKEN_PATH"]
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {process.name()}")
        return found


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind((HEAD, 0))
        port: int = asked.getsockname()[1]
    return port


@contextmanager
def site_at(folder: Path) -> Iterator[Site]:
    """A head with its transport; workers join as tests ask for them."""
    (folder / "token").write_text(secrets.token_hex(32))
    environ = {
        **os.environ,
        "RAY_AUTH_TOKEN_PATH": str(folder / "token"),
        "KNOWNGOOD_DATABASE_URL": "postgresql://secret@db/x",
        "GITHUB_TOKEN": "secret",
    }
    port = free_port()
    nodes: dict[str, NodeProcess] = {}
    with RayTransport(Fleet("", RELEASE, port=port, ip=HEAD), environ) as transport:
        try:
            yield Site(folder, environ, f"toy-{uuid4().hex}", port, transport, nodes)
        finally:
            for node in nodes.values():
                node.end()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Two workers: one of the CPU class alone, one with a GPU."""
    with tempfile.TemporaryDirectory(prefix="kg-ray-") as folder:
        with site_at(Path(folder)) as made:
            made.join(FIRST)
            made.join(SECOND, GPU_HOST)
            yield made
        assert eventually(lambda: not made.toys() and not made.ray(), PATIENCE_S), (made.toys(), made.ray())


@pytest.fixture(autouse=True)
def _clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """No process of any agent is left behind by any test."""
    yield
    if "site" in request.fixturenames:
        made: Site = request.getfixturevalue("site")
        assert eventually(lambda: not made.toys(), PATIENCE_S), made.toys()
        (made.folder / "ledger").unlink(missing_ok=True)


def follow(handle: RayJobHandle, at_start: Callable[[], None] = lambda: None) -> tuple[list[Event], AgentLost | None]:
    """Events up to the end, and how it was lost; `at_start` is called as an arm starts."""
    events: list[Event] = []
    try:
        for event in handle.events():
            events.append(event)
            if isinstance(event, ArmStarted):
                at_start()
    except AgentLost as lost:
        return events, lost
    return events, None


def on(spec_: JobSpec, hardware: str) -> JobSpec:
    return replace(spec_, hardware=hardware)


def test_events_arrive_in_the_order_they_happened(site: Site) -> None:
    events, lost = follow(site.transport.start(spec("pass", "match")))
    assert lost is None
    assert isinstance(events[0], JobStarted)
    attempts = [event.attempt for event in events if isinstance(event, ArmStarted | ArmFinished)]
    assert attempts == ["a1", "a1", "a2", "a2"]
    assert events[-1] == JobEnded("j-1", 1)


def test_many_jobs_at_once_keep_their_events_apart(site: Site) -> None:
    specs = [replace(spec(*["pass"] * 5), job=f"j-{n}") for n in range(4)]
    heard: dict[str, list[Event]] = {}

    def run(one: JobSpec) -> None:
        heard[one.job], lost = follow(site.transport.start(one))
        assert lost is None

    threads = [threading.Thread(target=run, args=(one,)) for one in specs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for one in specs:
        assert {event.job for event in heard[one.job]} == {one.job}
        assert sum(isinstance(event, ArmFinished) for event in heard[one.job]) == 5


@pytest.mark.parametrize(
    ("does", "sentence"),
    [("die", "the agent was killed by SIGKILL"), ("exit", "exit code 7"), ("babble", "what is no event")],
)
def test_an_agent_that_dies_early_is_lost_and_it_is_told_how(site: Site, does: str, sentence: str) -> None:
    events, lost = follow(site.transport.start(spec("pass", does)))
    assert sentence in str(lost)
    assert [event.attempt for event in events if isinstance(event, ArmFinished)][:1] == ["a1"]


def test_a_cancelled_agent_ends_in_its_own_order_and_its_last_words_arrive(site: Site) -> None:
    handle = site.transport.start(spec("hang", "pass"))
    events, lost = follow(handle, handle.cancel)
    assert lost is None
    assert events[-1] == JobEnded("j-1", 1, "cancelled")
    assert len([event for event in events if isinstance(event, ArmFinished)]) == 1


def test_a_killed_job_leaves_nothing_behind(site: Site) -> None:
    handle = site.transport.start(spec("deaf"))

    def kill() -> None:
        assert eventually(lambda: len(site.ledger()) == 1)
        handle.cancel()
        handle.kill()

    _, lost = follow(handle, kill)
    assert str(lost) == "it was killed"
    handle.kill()
    handle.cancel()


def test_a_follower_that_turns_away_ends_the_agent(site: Site) -> None:
    events = site.transport.start(spec("hang")).events()
    for event in events:
        if isinstance(event, ArmStarted):
            break
    events.close()
    assert eventually(lambda: not site.toys(), PATIENCE_S)


def test_the_death_of_rays_own_process_is_a_loss_in_words(site: Site) -> None:
    def kill() -> None:
        assert eventually(lambda: len(site.ledger()) == 1)
        site.agent_and_task()[1].kill()

    _, lost = follow(site.transport.start(spec("hang")), kill)
    assert str(lost) == "the Ray process that ran its agent died: killed, or out of memory"
    assert not isinstance(lost, JobReturned)


def test_a_job_for_a_gpu_goes_where_one_is_and_gets_it_alone(site: Site) -> None:
    gpu_node = next(member for member in site.transport.members if member.gpus)
    first = site.transport.start(on(spec("hang"), GPU_CLASS))
    second: list[RayJobHandle] = []

    def start_another() -> None:  # not earlier: Ray places two waiting jobs in any order
        second.append(site.transport.start(on(replace(spec("pass"), job="j-2"), GPU_CLASS)))
        time.sleep(1.0)
        assert not second[0].is_placed, "two jobs had the one GPU at once"
        first.cancel()

    _, lost = follow(first, start_another)
    assert lost is None
    events, lost = follow(second[0])
    assert lost is None
    assert events[-1] == JobEnded("j-2", 1)
    assert site.transport.room()[GPU_CLASS] == gpu_node.gpus == 1


def test_a_job_of_a_class_that_nobody_offers_is_given_back_at_once(site: Site) -> None:
    with pytest.raises(JobReturned, match="no worker of class cuda-sm_120 is left"):
        site.transport.start(on(spec("pass"), "cuda-sm_120"))


def test_a_job_that_waits_for_room_is_cancelled_without_having_begun(site: Site) -> None:
    holding = site.transport.start(on(spec("hang"), GPU_CLASS))

    def hold() -> None:
        waiting = site.transport.start(on(replace(spec("pass"), job="j-2"), GPU_CLASS))
        threading.Timer(0.5, waiting.cancel).start()
        assert follow(waiting) == ([JobEnded("j-2", 1, "cancelled")], None)
        holding.cancel()

    _, lost = follow(holding, hold)
    assert lost is None


def test_a_job_goes_back_to_the_machine_that_has_its_environment(site: Site) -> None:
    """Five times to each of two machines, in turn. Ray may not have counted a place that has just become free, however
    long that takes under load, and then goes on to the other machine: twice is no failure, and chance does that well in
    one of 18 runs.
    """
    homes = [member.id for member in site.transport.members if member.cpu_jobs]
    assert len(homes) == 2
    elsewhere = 0
    for n, home in enumerate(homes * 5):
        build = make_build(f"2.{n}.0+cu124")
        site.has_environment(home, build)
        handle = site.transport.start(replace(spec("pass"), build=build))
        _, lost = follow(handle)
        assert lost is None
        elsewhere += handle.node != home
    assert elsewhere <= 2


def test_what_a_machine_made_is_remembered(site: Site) -> None:
    build = make_build("2.8.0+cu128")
    handle = site.transport.start(replace(spec("pass"), build=build))
    _, lost = follow(handle)
    assert lost is None
    assert site.transport._ready[environment_key(build, spec("pass").request)] == {handle.node}


def test_a_busy_home_keeps_no_job_waiting(site: Site) -> None:
    first = site.transport.start(spec("hang"))
    moved: list[str] = []

    def also() -> None:
        site.has_environment(first.node, make_build())
        other = site.transport.start(replace(spec("pass"), job="j-2"))
        _, lost = follow(other)
        assert lost is None
        moved.append(other.node)
        first.cancel()

    _, lost = follow(first, also)
    assert lost is None
    assert [one in {"", first.node} for one in moved] == [False]


def test_no_secret_and_no_database_reaches_a_worker(site: Site) -> None:
    """Ray's processes have its token, which they need; an agent has not even that."""
    seen: dict[str, dict[str, str]] = {}

    def look() -> None:
        assert eventually(lambda: len(site.ledger()) == 1)
        agent, task = site.agent_and_task()
        seen["agent"], seen["task"] = agent.environ(), task.environ()
        handle.cancel()

    handle = site.transport.start(spec("hang"))
    follow(handle, look)
    assert seen["task"]["RAY_AUTH_MODE"] == "token"
    for whose, environment in seen.items():
        assert "PATH" in environment
        for name, value in environment.items():
            assert "secret" not in value, (whose, name)
            assert not name.startswith("KNOWNGOOD_") or name == NODE, (whose, name)
    assert not [name for name in seen["agent"] if name.startswith(("RAY_", "KNOWNGOOD_"))]


def test_nobody_joins_without_the_token(site: Site, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0" * 64)
    before = {one.id for one in site.transport.members}
    told = offer_machine(HOST, {}, address=f"{HEAD}:{site.port}", release=RELEASE, ip="127.0.0.9", environ={})
    node = NodeProcess(told, {**site.environ, "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")})
    try:
        assert not node.wait_until_started(PATIENCE_S)
        assert {one.id for one in site.transport.members} == before
    finally:
        node.end()


def test_the_matrix_is_the_same_as_the_local_carriers(site: Site, new_store: NewStore) -> None:
    issues, builds = [doing("pass", "match")], [make_build(f"2.{n}.0+cu124") for n in range(3)]
    local, fleet = (connect(new_store()) for _ in range(2))
    for engine in (local, fleet):
        given_run(engine, issues, builds, at=utc_now())
    toy = (sys.executable, "-m", "tests.workers.toy_agent")
    dispatch(local, LocalTransport({"ledger": os.devnull}, toy), ONCE, stop=forever)
    how = DispatchOptions(hardware=(), room=site.transport.room, until_idle=True, poll_s=0.05)
    dispatch(fleet, site.transport, how, stop=forever)
    assert counted(fleet) == counted(local) != {}
    assert verdicts_of(fleet) == verdicts_of(local)
    assert {verdict for verdict, _ in verdicts_of(fleet).values()} == {Verdict.AFFECTED}
    with reading(fleet) as s:
        assert set(load_offers(s)) == {HARDWARE, *isa_classes(HARDWARE), GPU_CLASS}
    for engine in (local, fleet):
        engine.dispose()


def verdicts_of(engine: Engine) -> dict[str, tuple[Verdict, str]]:
    with reading(engine) as s:
        return {cell.build: (cell.verdict, english(cell.reason)) for cell in queries.load_cells(s)}


def test_a_class_that_nobody_offers_stays_queued_and_is_said(site: Site, own_engine: Engine) -> None:
    run = given_run(own_engine, [doing("pass")], at=utc_now())
    gpus_alone = DispatchOptions(
        hardware=(), room=lambda: {GPU_CLASS: site.transport.room()[GPU_CLASS]}, until_idle=True
    )
    dispatch(own_engine, site.transport, gpus_alone, stop=forever)
    assert load_run(own_engine, run).jobs[0].state is JobState.QUEUED
    with reading(own_engine) as s:
        (waiting,) = load_waiting(s, utc_now())
    assert waiting.reason == "no dispatcher is at work; start one with `knowngood dispatch`"
    with unit_of_work(own_engine) as s:
        take_lease(s, DISPATCHER, "d-1", utc_now(), 60.0)
    with reading(own_engine) as s:
        (waiting,) = load_waiting(s, utc_now())
    assert waiting.reason == f"no worker of class {HARDWARE} has joined; none ever has"


def test_a_worker_that_takes_leave_costs_no_job_a_loss(site: Site, own_engine: Engine) -> None:
    leaver, home = site.join("127.0.0.5")
    run = given_run(own_engine, [doing("pass", takes_s=30.0)], at=utc_now())
    site.has_environment(home, make_build())
    stop = threading.Event()
    how = DispatchOptions(hardware=(), room=site.transport.room, poll_s=0.05)
    dispatcher = threading.Thread(target=dispatch, args=(own_engine, site.transport, how), kwargs={"stop": stop.is_set})
    dispatcher.start()
    try:
        assert eventually(lambda: bool(site.ledger()), PATIENCE_S)
        assert int(site.ledger()[0][1]) in below(leaver.process.pid)
        leaver.leave()
        assert not leaver.is_alive()
        assert eventually(lambda: len({line[1] for line in site.ledger()}) == 2, PATIENCE_S), "nobody took it over"
    finally:
        stop.set()
        dispatcher.join(PATIENCE_S)
    assert load_run(own_engine, run).jobs[0].state is JobState.QUEUED
    assert losses_of(own_engine) == 0


@pytest.mark.parametrize("victim", ["raylet", "the guard"])
def test_a_node_that_is_killed_is_a_loss_in_words_and_leaves_nothing(site: Site, victim: str) -> None:
    node, home = site.join("127.0.0.6")
    site.has_environment(home, make_build())
    handle = site.transport.start(spec("hang"))

    def kill() -> None:
        assert eventually(lambda: len(site.ledger()) == 1)
        assert handle.node == home
        if victim == "raylet":
            next(one for one in processes_below(node.process.pid) if one.name() == "raylet").kill()
        else:
            os.kill(node.process.pid, signal.SIGKILL)

    _, lost = follow(handle, kill)
    assert str(lost) == "the machine that ran it is gone: killed, cut off, or restarted"
    assert eventually(lambda: not node.is_alive(), PATIENCE_S)
    node.end()
    assert eventually(lambda: home not in {member.id for member in site.transport.members}, PATIENCE_S)


def test_the_death_of_a_dispatcher_ends_its_jobs_and_nothing_else(site: Site) -> None:
    command = [sys.executable, "-m", "tests.workers.toy_leader", f"{HEAD}:{site.port}", "127.0.0.7", RELEASE]
    leader = subprocess.Popen(command, stdout=subprocess.PIPE, env=site.environ)
    assert leader.stdout is not None
    with leader.stdout:
        assert leader.stdout.readline() == b"started\n"
        assert site.toys()
        own = below(leader.pid)
        leader.kill()
        leader.wait()
    assert eventually(lambda: not site.toys(), PATIENCE_S)
    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in own), PATIENCE_S)
    _, lost = follow(site.transport.start(spec("pass")))
    assert lost is None


def test_the_death_of_rays_driver_loses_its_jobs_and_it_is_started_anew(site: Site) -> None:
    """With it goes the head that stood beside it, and so the fleet; the dispatcher lives on. The last of this file."""
    before = site.transport.driver_pid

    def kill() -> None:
        assert eventually(lambda: len(site.ledger()) == 1)
        os.kill(before, signal.SIGKILL)

    _, lost = follow(site.transport.start(spec("hang")), kill)
    assert str(lost) == "the dispatcher lost its fleet"
    with pytest.raises(JobReturned):
        site.transport.start(spec("pass"))
    assert eventually(lambda: site.transport.driver_pid != before and bool(site.transport.members), PATIENCE_S)


SCRIPTED = """
import json, sys
member = {"id": "m1", "labels": {"knowngood-cpu": "cpu-x86_64", "knowngood-release": "1.0"}, "cpu_jobs": 1, "gpus": 0}
def say(word, number, body):
    print(word, number, json.dumps(body), flush=True)
sys.stdin.readline()
say("fleet", "-", [member])
word, number, _ = sys.stdin.readline().split(" ", 2)
if sys.argv[1] == "placed":
    say("placed", number, {"node": "m1", "agent": [1, 0.0], "ready": []})
say("fleet", "-", [])
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("stage", "kind", "sentence"),
    [
        ("placed", AgentLost, "the machine that ran it is gone: killed, cut off, or restarted"),
        ("waiting", JobReturned, "no worker of class cpu-x86_64 is left"),
    ],
)
def test_a_job_whose_machine_the_fleet_has_given_up_is_not_waited_for(
    stage: str, kind: type[AgentLost], sentence: str
) -> None:
    """As with a machine that is frozen: Ray drops it from the fleet, and its stream says nothing."""
    command = (sys.executable, "-c", SCRIPTED, stage)
    with RayTransport(Fleet("head:1", RELEASE), {**os.environ, "RAY_AUTH_TOKEN": "t"}, command) as transport:
        _, lost = follow(transport.start(spec("pass")))
        assert (type(lost), str(lost)) == (kind, sentence)
        assert transport.room() == {}


def processes_below(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def below(pid: int) -> set[int]:
    return {one.pid for one in processes_below(pid)}


def losses_of(engine: Engine) -> int:
    with reading(engine) as s:
        of_arms = s.execute(sa.select(sa.func.sum(arms.c.losses))).scalar_one()
        of_jobs = s.execute(sa.select(sa.func.sum(jobs.c.losses))).scalar_one()
    return int(of_arms) + int(of_jobs)
