"""Processes are killed at random moments and started again; every planned arm must end with exactly one result.

With toy agents (quick, on both databases); the installation as it is (`knowngood dispatch` and `knowngood serve` over
the toy repros, with real agents, supervisors and environments); and a crowd of it: two dispatchers, two `knowngood up`
and a large import on one store, while a repro leaves folders that nobody can walk. KNOWNGOOD_SOAK_KILLS says how often
(8 unless set; `make soak` takes 200), KNOWNGOOD_SOAK_SEED repeats a run: the seed is printed with every failure.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import sqlalchemy as sa

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Variant
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.share.bundle import BundleHeader, LogText, write_bundle
from knowngood.store import queries
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.evidence.attempt_codec import log_digest
from knowngood.store.maintenance import reclassify
from knowngood.store.records import JobState
from knowngood.store.tables import arms, attempts, jobs, runs
from knowngood_workers.common.files import remove_tree
from tests.given_toys import TOYS, make_installation, toy_wheels
from tests.make import HARDWARE, NOON, make_attempt, make_build, make_issue
from tests.soak.seed import SEED
from tests.store.given import given_run

# By the agent again and again; by the supervisor at the last strike; of uv or of a probe, which is then no answer.
LOST = ("given up", "died before it could report", "was killed (SIGKILL)")
KILLS = int(os.environ.get("KNOWNGOOD_SOAK_KILLS", "8"))
PATIENCE_S = 300.0

PipelineOf = Callable[[str, Path], AbstractContextManager["Pipeline"]]

ELSEWHERE = "cuda-sm_90"
BROUGHT = 1000
HOSTILE = "toy-leaves-folders-1"
LEAVING = """
import os, socket


def _leave_folders():
    for place in {os.getcwd(), os.environ.get("TMPDIR", "/tmp"), os.environ["TORCHINDUCTOR_CACHE_DIR"]}:
        os.makedirs(place, exist_ok=True)
        os.chdir(place)
        os.mkfifo("pipe")
        socket.socket(socket.AF_UNIX).bind("socket")
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        os.chdir(place)
        os.chmod("d", 0)
"""

# What the toys of the real catalogue say undisturbed. Those of the toy agents are all affected.
QUIET = {
    (toy, f"torch-{build}+mini"): {verdict}
    for build in ("0.0.1", "0.0.2", "0.0.3")
    for toy, verdict in {
        "toy-passes-1": Verdict.NOT_AFFECTED,
        "toy-forks-daemon-1": Verdict.NOT_AFFECTED,
        HOSTILE: Verdict.NOT_AFFECTED,
        "toy-aborts-1": Verdict.AFFECTED,
        "toy-fixed-1": Verdict.AFFECTED if build == "0.0.1" else Verdict.NOT_AFFECTED,
    }.items()
} | {
    (toy, "torch-0.0.3+mini"): {Verdict.INCONCLUSIVE}
    for toy in ("toy-passes-1", "toy-fixed-1", "toy-aborts-1", "toy-forks-daemon-1", HOSTILE)
}

BUILDS = [make_build(f"2.{minor}.0+cu124") for minor in range(3)]


def slow(id_: str) -> Issue:
    """Its arms take long enough to be killed in, and short enough to get done between two kills."""
    variants = tuple(Variant(f"v{n}", "", {"does": "match", "takes_s": 0.15}) for n in range(2))
    return make_issue(id_, variants=variants)


ISSUES = [slow("toy-1"), slow("toy-2")]


@dataclass
class Service:
    """A process that is started anew whenever it was killed, as a supervisor would."""

    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    process: subprocess.Popen[bytes] | None = None

    def keep_alive(self) -> None:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Pipeline:
    """The installation under fire: its services, the catalogue it runs, the mark that everything it starts bears, and
    how many attempts are imported meanwhile.
    """

    services: tuple[Service, ...]
    issues: Sequence[Issue]
    builds: Sequence[Build]
    mark: str
    brought: int = 0


@contextmanager
def toy_pipeline(url: str, folder: Path) -> Iterator[Pipeline]:
    mark = f"soak-{uuid4().hex}"
    dispatcher = Service([sys.executable, "-m", "tests.soak.toy_dispatcher", url, str(folder / "ledger"), mark])
    yield from _while_kept(Pipeline((dispatcher,), ISSUES, BUILDS, mark))


SERVE, UP = ("serve", "--port", "0"), ("up", "--port", "0")


@contextmanager
def real_pipeline(url: str, folder: Path) -> Iterator[Pipeline]:
    _small_catalogue(folder / "catalogue")
    yield from _installed(url, folder, ("dispatch",), SERVE)


@contextmanager
def crowded_pipeline(url: str, folder: Path) -> Iterator[Pipeline]:
    _leave_folders(_small_catalogue(folder / "catalogue") / HOSTILE)
    write_brought(folder / "brought.jsonl.gz")
    importing = ("import", str(folder / "brought.jsonl.gz"))
    yield from _installed(url, folder, ("dispatch",), ("dispatch",), UP, UP, SERVE, importing, brought=BROUGHT)


def _installed(url: str, folder: Path, *commands: Sequence[str], brought: int = 0) -> Iterator[Pipeline]:
    """The command itself; the path of its data folder stands in the environment of all that belongs to it."""
    here = make_installation(folder, toy_wheels(folder), catalogue=folder / "catalogue")
    environment = {**here.environment, "KNOWNGOOD_DATABASE_URL": url, "KNOWNGOOD_LEASE_S": "4"}
    services = tuple(Service([sys.executable, "-m", "knowngood", *arguments], environment) for arguments in commands)
    catalogue = read_catalogue([folder / "catalogue"])
    yield from _while_kept(Pipeline(services, catalogue.issues, catalogue.builds, str(folder), brought))


def _small_catalogue(folder: Path) -> Path:
    """Toys that are quick, fork, and leave daemons; the builds with a wheel."""
    folder.mkdir()
    (folder / "builds.toml").write_text((TOYS / "builds.toml").read_text().partition('\n[[build]]\ntorch = "9.9.9"')[0])
    for toy in ("toy-passes-1", "toy-fixed-1", "toy-forks-daemon-1", "toy-aborts-1"):
        (folder / toy).symlink_to(TOYS / toy)
    return folder


def _leave_folders(folder: Path) -> None:
    """A repro that passes, and leaves in all places that it may write to what no plain walk comes through."""
    folder.mkdir()
    for file in (TOYS / "toy-passes-1").iterdir():
        if file.is_file():
            (folder / file.name).write_text(file.read_text().replace("toy-passes-1", HOSTILE))
    script = (folder / "repro.py").read_text()
    own, told = "def baseline():\n    ", "def control():\n"
    assert own in script
    assert told in script
    (folder / "repro.py").write_text(
        script.replace(told, f"{LEAVING}\n\n{told}").replace(own, "def baseline():\n    _leave_folders()\n    ")
    )


def write_brought(path: Path) -> None:
    """A bundle that another site measured on a GPU: large enough to be imported in several steps."""
    issue, build = make_issue("toy-passes-1"), make_build("0.0.1+mini")
    logs = [LogText(log_digest(text), text) for text in (f"{n}\n" * 2000 for n in range(1000, 1000 + BROUGHT))]
    found = [
        make_attempt(issue=issue, build=build, hardware=ELSEWHERE, ordinal=n, log_digest=log.digest)
        for n, log in enumerate(logs, start=1)
    ]
    with path.open("wb") as out:
        write_bundle(out, BundleHeader(NOON, "gpu-box"), [*logs, *found])


def _while_kept(pipeline: Pipeline) -> Iterator[Pipeline]:
    try:
        yield pipeline
    finally:
        for service in pipeline.services:
            service.end()


def with_mark(mark: str) -> list[psutil.Process]:
    """Living processes whose command or environment names `mark`, and what those have started."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            text = "\0".join([*process.cmdline(), *process.environ().values()])
            if mark in text and process.pid != os.getpid():
                found |= {one.pid: one for one in (process, *process.children(recursive=True))}
    return [one for one in found.values() if _is_alive(one)]


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def strike(pipeline: Pipeline, engine: Engine, chance: random.Random) -> str:
    """Kill one process at a random moment: a service, or an agent or anything that agents have started."""
    kind = chance.choice(["service", "agent or below"])
    until = time.monotonic() + PATIENCE_S
    while not victims(pipeline, kind) and unfinished(engine) and time.monotonic() < until:
        keep_alive(pipeline)  # a service that was struck the last time may have taken a moment to die
        time.sleep(0.02)
    time.sleep(chance.uniform(0.0, 1.0))
    found = victims(pipeline, kind)
    if not found:
        return "nobody"
    with suppress(psutil.NoSuchProcess):
        chance.choice(found).send_signal(signal.SIGKILL)
    return kind


def victims(pipeline: Pipeline, kind: str) -> list[psutil.Process]:
    services = {service.pid for service in pipeline.services}
    if kind == "service":
        return [psutil.Process(pid) for pid in sorted(services)]
    return sorted((one for one in with_mark(pipeline.mark) if one.pid not in services), key=lambda one: one.pid)


def unfinished(engine: Engine) -> int:
    with reading(engine) as s:
        n: int = s.execute(sa.select(sa.func.count()).where(runs.c.finished_at.is_(None))).scalar_one()
    return n


def results_per_planned_arm(engine: Engine) -> Counter[int]:
    """How many planned arms have how many counted results. What an `up` took back of an earlier one is not planned."""
    query = (
        sa.select(arms.c.attempt, sa.func.count(attempts.c.id))
        .join(jobs, sa.and_(jobs.c.id == arms.c.job, jobs.c.state != JobState.CANCELLED))
        .join(attempts, sa.and_(attempts.c.id == arms.c.attempt, attempts.c.counts_as.is_not(None)), isouter=True)
        .group_by(arms.c.attempt)
    )
    with reading(engine) as s:
        return Counter(n for _, n in s.execute(query))


def doubles(engine: Engine) -> list[tuple[object, ...]]:
    """Arms that were planned once in a run and have more than one result, under whatever id."""
    job = sa.select(attempts.c.job, attempts.c.issue, attempts.c.arm, attempts.c.variant, attempts.c.ordinal)
    with reading(engine) as s:
        return [key for key, n in Counter(tuple(row) for row in s.execute(job)).items() if n > 1]


def brought(engine: Engine) -> int:
    """How much is there of what was measured elsewhere."""
    with reading(engine) as s:
        return int(s.execute(sa.select(sa.func.count()).where(attempts.c.hardware == ELSEWHERE)).scalar_one())


@pytest.mark.system
@pytest.mark.timeout(420 + KILLS * 30)
@pytest.mark.parametrize(
    ("pipeline_of", "database"),
    [
        pytest.param(toy_pipeline, "sqlite_url", id="toy agents, sqlite"),
        pytest.param(toy_pipeline, "postgres_url", id="toy agents, postgresql", marks=pytest.mark.soak),
        pytest.param(real_pipeline, "sqlite_url", id="the installation, sqlite"),
        pytest.param(crowded_pipeline, "sqlite_url", id="a crowd, sqlite", marks=pytest.mark.soak),
        pytest.param(crowded_pipeline, "postgres_url", id="a crowd, postgresql", marks=pytest.mark.soak),
    ],
)
def test_whatever_is_killed_every_planned_arm_has_exactly_one_result(
    pipeline_of: PipelineOf, database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - chance to be repeated, not to be secret
    url: str = request.getfixturevalue(database)
    engine = connect(url)
    struck: Counter[str] = Counter()
    with pipeline_of(url, tmp_path) as pipeline:
        while struck.total() - struck["nobody"] < KILLS:
            if not unfinished(engine):
                given_run(engine, pipeline.issues, pipeline.builds, at=datetime.now(UTC))
            keep_alive(pipeline)
            struck[strike(pipeline, engine, chance)] += 1
        until = time.monotonic() + PATIENCE_S
        while (unfinished(engine) or brought(engine) < pipeline.brought) and time.monotonic() < until:
            keep_alive(pipeline)
            time.sleep(0.1)
        told = f"seed {SEED}, struck {dict(struck)}"
        print(told)  # noqa: T201 - shown with every failure, and by -s
        assert not unfinished(engine), told
    survivors = wait_for_the_dead(pipeline.mark)
    assert not survivors, f"{told}: {[process.cmdline() for process in survivors]}"
    assert set(results_per_planned_arm(engine)) == {1}, told
    assert doubles(engine) == [], told
    assert brought(engine) == pipeline.brought, told
    assert_only_honest_answers(engine, told)
    engine.dispose()
    remove_tree(tmp_path)  # pytest cannot, where an arm that was killed left what it made


def keep_alive(pipeline: Pipeline) -> None:
    for service in pipeline.services:
        service.keep_alive()


def assert_only_honest_answers(engine: Engine, told: str) -> None:
    """A kill may cost an answer, never change one: a toy says what it says on a quiet day, or was given up."""
    with reading(engine) as s:
        ended = {JobState.DONE, JobState.POISONED, JobState.CANCELLED}
        assert set(s.execute(sa.select(jobs.c.state)).scalars()) <= ended, told
        for cell in queries.load_cells(s, hardware=[HARDWARE]):
            is_lost = any(words in english(variant.reason) for variant in cell.variants for words in LOST)
            assert cell.verdict in QUIET.get((cell.issue, cell.build), {Verdict.AFFECTED}) or is_lost, f"{told}: {cell}"
    with unit_of_work(engine) as s:
        assert reclassify(s, datetime.now(UTC)) == (), told


def wait_for_the_dead(mark: str) -> list[psutil.Process]:
    until = time.monotonic() + PATIENCE_S
    while (alive := with_mark(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    return alive
