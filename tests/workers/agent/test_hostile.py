"""The table of docs/threat-model.md, row by row: each attack is made at every level, and gets what the table says.

Levels that this kernel does not offer are skipped. Without Landlock means that it is left out, on a kernel that has it.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.domain.issue import BASELINE
from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import Ending
from knowngood_workers.agent import sandbox_policy
from knowngood_workers.agent.arm_runner import Execution, ForkServer, Limits, RunLocation, execute, scratch_folder
from knowngood_workers.agent.sandbox_policy import SandboxSpec, probe_sandbox
from knowngood_workers.standalone import sandbox
from tests.waiting import eventually
from tests.workers.toy_environment import SECRET, Host, make_host, survivors

HOSTILE = Path(__file__).parents[1] / "hostile"
PAGE = Path(__file__).parents[3] / "docs" / "threat-model.md"
MEGABYTE = 1 << 20
MEMORY = 200 * MEGABYTE
SHARED = Path("/tmp")  # noqa: S108 - what arms share where nothing is their own
NOBODY = 65534

LEVELS = {
    "process": (Isolation.PROCESS, False),
    "process and Landlock": (Isolation.PROCESS, True),
    "network": (Isolation.NETWORK, False),
    "network and Landlock": (Isolation.NETWORK, True),
    "namespaces": (Isolation.NAMESPACES, True),
    "filtered": (Isolation.FILTERED, True),
}
HOST_DECIDES = frozenset(
    {
        "gets by filters (io_uring)",
        "listens to the kernel (perf)",
        "loads programs into the kernel (bpf)",
        "mounts as root of a namespace inside",
        "reads files of /etc that are not for everybody",
        "opens the kernel's doors for writing",
    }
)
"""Where the table says that an attack gets something, a host may be stricter by settings of its own."""

STOPPED, ENDED, GETS, GETS_AS_ROOT, GETS_AS_USER = "-", "ended", "gets it", "gets it as root", "gets it unless root"
ENDED_AS_ROOT = "ended as root"

NEIGHBOUR = """
import subprocess, time

def baseline():
    subprocess.Popen(["sleep", "60"])
    time.sleep(60)
"""

pytestmark = pytest.mark.timeout(300)


@cache
def table() -> dict[str, dict[str, str]]:
    """The table of the page: by attack, by level."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("| attack |"))
    columns = [cell.strip() for cell in lines[head].strip("|").split("|")][1:]
    rows = {}
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        attack, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[attack] = dict(zip(columns, cells, strict=True))
    return rows


def said(attack: str, level: str) -> str:
    word = table()[attack][level]
    if word in {GETS_AS_ROOT, GETS_AS_USER}:
        return GETS if (word == GETS_AS_ROOT) == (os.geteuid() == 0) else STOPPED
    return word


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    host = make_host(tmp_path_factory.mktemp("host"))
    compiled: list[str | Path] = [
        host.python,
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "checked-hash",
        host.site / "torch",
    ]
    subprocess.run(compiled, check=True)
    host.stored.parent.mkdir()
    host.stored.hardlink_to(host.bytecode)
    return host


@pytest.fixture(scope="module")
def reached(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SandboxSpec]:
    @cache
    def of(level: Isolation, *, is_mutable: bool = False) -> SandboxSpec:
        sandbox_inputs = host.sandbox_inputs(MEMORY, host.python.resolve(), is_mutable=is_mutable)
        return probe_sandbox(sandbox_inputs, tmp_path_factory.mktemp("try"), level)

    return of


@pytest.fixture(params=LEVELS, scope="module")
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sandbox_for(level: str, reached: Callable[..., SandboxSpec], *, is_mutable: bool = False) -> SandboxSpec:
    wanted, has_landlock = LEVELS[level]
    found = reached(wanted, is_mutable=is_mutable)
    if found.level is not wanted:
        pytest.skip(f"this kernel offers '{found.level}' at most: {found.why_not}")
    if wanted.rank >= Isolation.NAMESPACES.rank:
        return found
    if has_landlock and sandbox.LANDLOCK not in found.steps:
        pytest.skip("this kernel has no Landlock")
    steps = tuple(step for step in found.steps if has_landlock or step != sandbox.LANDLOCK)
    return replace(found, steps=steps)


@pytest.fixture
def sandbox_spec(level: str, reached: Callable[..., SandboxSpec]) -> SandboxSpec:
    """Asked anew by each test: one that was kept would outlive its level where another test names its own."""
    return sandbox_for(level, reached)


@pytest.fixture(scope="module")
def fork_server(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    place = RunLocation(host.python, (), Limits(MEMORY))
    with scratch_folder(tmp_path_factory.mktemp("fork-server")) as folder, ForkServer(place, folder) as process:
        yield process


def attempt(  # noqa: PLR0913 - all but the first three by name
    host: Host,
    sandbox_spec: SandboxSpec,
    script: str,
    *,
    arm: str = BASELINE,
    fork_server: ForkServer | None = None,
    timeout_s: float = 60.0,
    is_over: Callable[[], bool] = lambda: False,
    limits: dict[str, int] | None = None,
    **params: Any,
) -> Execution:
    place = RunLocation(
        host.python,
        (),
        Limits(MEMORY, grace_s=0.3, **(limits or {})),
        sandbox_spec=sandbox_spec,
        interpreter=host.python.resolve(),
    )
    spec = ArmSpec("a-1", "toy-1", arm, "default", 1, "b", "s", params, {}, (), timeout_s=timeout_s)
    path = HOSTILE / f"{script}.py"
    text = path.read_text(encoding="utf-8") if path.exists() else script
    with scratch_folder(host.data / "scratch") as scratch:
        return execute(spec, text, place=place, scratch=scratch, fork_server=fork_server, is_cancelled=is_over)


@dataclass
class Neighbour:
    """An innocent arm at the same level, at the same time."""

    arm: psutil.Process
    folder: Path
    done: list[Execution]


@contextmanager
def neighbour(host: Host, sandbox_spec: SandboxSpec, fork_server: ForkServer | None) -> Iterator[Neighbour]:
    before, over, done = set(psutil.pids()), threading.Event(), list[Execution]()
    thread = threading.Thread(
        target=lambda: done.append(attempt(host, sandbox_spec, NEIGHBOUR, fork_server=fork_server, is_over=over.is_set))
    )
    thread.start()
    try:
        found = Neighbour(find_arm(host, before), next(host.data.glob("scratch/kg-*/repro.py")).parent, done)
        yield found
    finally:
        over.set()
        thread.join()


def find_arm(host: Host, before: set[int]) -> psutil.Process:
    """The process whose child sleeps."""
    found: list[psutil.Process] = []

    def look() -> bool:
        for pid in set(psutil.pids()) - before:
            try:
                process = psutil.Process(pid)
                if process.name() == "sleep" and str(host.data) in process.cwd():
                    found.append(psutil.Process(process.ppid()))
            except psutil.Error:
                continue
        return bool(found)

    assert eventually(look, 60), "the neighbour never began"
    return found[0]


@contextmanager
def listeners(abstract: str, path: str) -> Iterator[int]:
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in ("\0" + abstract, path):
            server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            server.bind(address)
            server.listen()
        yield int(tcp.getsockname()[1])


@pytest.fixture(scope="module")
def tried(
    request: pytest.FixtureRequest,
    host: Host,
    reached: Callable[..., SandboxSpec],
    level: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """The results, at this level, of all attacks that take no time."""
    sandbox_spec = sandbox_for(level, reached)
    fork_server = request.getfixturevalue("fork_server") if request.param == "forked" else None
    shared = SHARED / f"knowngood-left-{os.getpid()}-{len(level)}-{request.param}"
    path = tmp_path_factory.mktemp("socket") / "s"
    with ExitStack() as stack:
        stack.callback(shared.unlink, missing_ok=True)
        port = stack.enter_context(listeners(shared.name, str(path)))
        victim = stack.enter_context(
            subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "TOKEN": SECRET})
        )
        stack.callback(victim.kill)
        attempt(host, sandbox_spec, "tries_everything", arm="control", told={"shared": str(shared)})
        with neighbour(host, sandbox_spec, fork_server) as other:
            told = {
                "word": SECRET,
                "victim": victim.pid,
                "arm": [other.arm.pid, other.arm.ppid()],
                "programs": [child.pid for child in other.arm.children()],
                "folder": str(other.folder),
                "secrets": [str(secret) for secret in host.secrets],
                "files": [str(secret) for secret in host.secrets[1:3]],
                "port": port,
                "abstract": shared.name,
                "path": str(path),
                "site": str(host.site),
                "module": str(host.site / "torch" / "__init__.py"),
                "bytecode": str(host.bytecode),
                "stored": str(host.stored),
                "folders": [str(host.home), "/etc", "/usr", "/opt", "/var"],
                "config": str(host.environment / "pyvenv.cfg"),
                "bin": str(host.environment / "bin"),
                "shared": str(shared),
            }
            done = attempt(host, sandbox_spec, "tries_everything", fork_server=fork_server, told=told)
        assert done.record.ending is Ending.RETURNED, done.log
        assert [one.record.ending for one in other.done] == [Ending.CANCELLED]
        yield dict(done.record.observed)
    assert survivors(host.data / "scratch") == []


def attacks_of(script: str) -> list[str]:
    return re.findall(r'^        "([^"]+)": ', (HOSTILE / f"{script}.py").read_text(encoding="utf-8"), re.MULTILINE)


QUICK = attacks_of("tries_everything")


# Forked arms are tried as the product runs them; at the levels below it they are more of the same.
TRIED = [
    *((level, "fresh") for level in LEVELS),
    *(pytest.param(level, "forked", marks=() if level == "filtered" else pytest.mark.soak) for level in LEVELS),
]


@pytest.mark.parametrize(("level", "tried"), TRIED, indirect=True, scope="module")
@pytest.mark.parametrize("attack", QUICK)
def test_an_attack_gets_what_the_table_says_and_no_more(tried: dict[str, str], attack: str, level: str) -> None:
    expected, got = said(attack, level), tried[attack]
    if expected == STOPPED:
        assert got == ""
    elif attack not in HOST_DECIDES:
        assert (expected, bool(got)) == (GETS, True)


# What takes its time: of two levels that differ by Landlock alone one is tried, for it has no part in this.
SOME = ("process", "filtered", *(pytest.param(one, marks=pytest.mark.soak) for one in ("network", "namespaces")))
some = pytest.mark.parametrize("level", SOME, scope="module")


def ended(done: Execution, *endings: Ending) -> str:
    if done.record.ending in endings:
        return ENDED
    if done.record.ending is not Ending.RETURNED:
        return done.log
    return STOPPED if done.record.observed.get("kept") == "nothing" else GETS


LIMITED: dict[str, Callable[[Host, SandboxSpec], str]] = {
    "starts processes without end": lambda host, sandbox_spec: ended(
        # Whose memory is hidden from its supervisor is counted whole for each process.
        attempt(host, sandbox_spec, "forks", limits={"processes": 48}, timeout_s=200.0),
        Ending.OVER_PROCESSES,
        *((Ending.OVER_MEMORY,) if os.geteuid() else ()),
    ),
    "fills the disk with many files": lambda host, sandbox_spec: ended(
        attempt(host, sandbox_spec, "fills", folder="", wait=20, limits={"scratch_bytes": 8 * MEGABYTE}),
        Ending.OVER_DISK,
    ),
    "fills the disk in a folder that is shut": lambda host, sandbox_spec: ended(
        attempt(host, sandbox_spec, "fills", folder="shut", shut=True, wait=20, limits={"scratch_bytes": 8 * MEGABYTE}),
        Ending.OVER_DISK,
    ),
    "fills the disk below paths that are too long": lambda host, sandbox_spec: ended(
        attempt(host, sandbox_spec, "fills_deep", depth=40, limits={"scratch_bytes": 8 * MEGABYTE}), Ending.OVER_DISK
    ),
    "fills the disk deeper than can be looked": lambda host, sandbox_spec: ended(
        attempt(host, sandbox_spec, "fills_deep", depth=900, limits={"scratch_bytes": 8 * MEGABYTE}), Ending.OVER_DISK
    ),
    "goes on for ever, deaf to signals": lambda host, sandbox_spec: ended(
        attempt(host, sandbox_spec, "outstays", is_loud=False, timeout_s=1.0), Ending.TIMED_OUT
    ),
    "prints without end": lambda host, sandbox_spec: printed(
        attempt(host, sandbox_spec, "outstays", is_loud=True, timeout_s=5.0, limits={"log_bytes": 4096})
    ),
    "leaves a daemon": lambda host, sandbox_spec: left_behind(attempt(host, sandbox_spec, "daemonises")),
    "leaves folders that cannot be removed": lambda host, sandbox_spec: cleaned_up(
        host, attempt(host, sandbox_spec, "leaves_folders", depth=1500)
    ),
    "says what the harness says": lambda host, sandbox_spec: forged(
        attempt(host, sandbox_spec, "forges", secret=str(host.database))
    ),
    "leaves start files and caches for the next arm": lambda host, sandbox_spec: found_by_next(host, sandbox_spec),  # noqa: PLW0108 - it stands below
}


def printed(done: Execution) -> str:
    return ENDED if len(done.log) < 64 * 1024 and done.record.log_cut_bytes else GETS


def left_behind(done: Execution) -> str:
    return STOPPED if done.record.ending is Ending.RETURNED else done.log


def cleaned_up(host: Host, done: Execution) -> str:
    assert done.record.ending in {Ending.RETURNED, Ending.OVER_DISK}, done.log  # what is shut counts as too much
    return "; ".join(path.name for path in host.data.glob("scratch/kg-*") if path.name != "kg-others") or STOPPED


def forged(done: Execution) -> str:
    is_deaf = (done.record.observed, done.record.raised, done.record.ending) == ({}, None, Ending.SIGNALLED)
    return STOPPED if is_deaf and SECRET not in done.log else GETS


def found_by_next(host: Host, sandbox_spec: SandboxSpec) -> str:
    attempt(host, sandbox_spec, "leaves_things", is_all=False)
    found = attempt(host, sandbox_spec, "leaves_things", arm="control", is_all=False).record.observed
    return STOPPED if found == {"found": "", "set": ""} else str(found)


WAYS_TO_MEMORY = re.findall(r"^def (\w+)\(size\)", (HOSTILE / "takes_memory.py").read_text(), re.MULTILINE)
_QUICKEST = ("starts processes without end", "fills the disk with many files")


@some
@pytest.mark.parametrize(
    "attack", [pytest.param(one, marks=() if one in _QUICKEST else pytest.mark.system) for one in LIMITED]
)
def test_an_attack_that_takes_its_time_is_ended(host: Host, sandbox_spec: SandboxSpec, level: str, attack: str) -> None:
    assert LIMITED[attack](host, sandbox_spec) == said(attack, level)
    assert survivors(host.data / "scratch") == []


@some
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(way, marks=() if way in ("in_many_children", "in_files_of_shared_memory") else pytest.mark.soak)
        for way in WAYS_TO_MEMORY
    ],
)
def test_memory_is_counted_wherever_it_is(host: Host, sandbox_spec: SandboxSpec, level: str, how: str) -> None:
    expected = said(f"takes memory {how.replace('_', ' ')}", level)
    # A look at many processes is followed by a pause of twenty times its length, and a busy machine looks slowly.
    wait = 50 if expected == ENDED else 1.5
    done = attempt(host, sandbox_spec, "takes_memory", how=how, size=2 * MEMORY, wait=wait, timeout_s=100.0)
    got = ended(done, Ending.OVER_MEMORY)
    if expected == ENDED_AS_ROOT:  # an arm that hides from others of its user hides from its supervisor too
        assert got == ENDED or os.geteuid() != 0
    else:
        assert got == expected


@pytest.mark.sample(3, "system")
@pytest.mark.parametrize("level", LEVELS, scope="module")
def test_an_arm_that_edits_its_packages_does_not_choose_its_interpreter(
    host: Host, reached: Callable[..., SandboxSpec], level: str
) -> None:
    """A later sandbox is built from what the maker of the environment wrote down."""
    sandbox_spec = sandbox_for(level, reached, is_mutable=True)
    config = host.environment / "pyvenv.cfg"
    before = config.read_text()
    try:
        done = attempt(host, sandbox_spec, "edits_environment", environment=str(host.environment), shown=str(host.home))
        got = set(done.record.observed["done"].split()) - {"packages"}
        assert "packages" in done.record.observed["done"]
        assert (GETS if got else STOPPED) == said("rewrites what its interpreter is found by", level)
        shown = [
            op[1] for op in sandbox_policy._ops(host.sandbox_inputs(MEMORY, host.python.resolve())) if op[0] == "show"
        ]
        assert str(host.home) not in shown
        again = attempt(host, sandbox_spec, "def baseline(): raise ValueError('here')", timeout_s=2.0 if got else 60.0)
        assert again.record.ending is (Ending.TIMED_OUT if got else Ending.RAISED), "a pipe hangs Python, and not us"
    finally:
        for path in (config, host.environment / "lib" / "edited", host.environment / "bin" / "python9"):
            path.unlink(missing_ok=True)
        config.write_text(before)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() != 0, reason="it is run without rights already")
def test_without_rights_the_table_is_as_true() -> None:
    """By a user who has nothing, with a Python that this user may run."""
    python = shutil.which("python3.11", path="/usr/local/bin:/usr/bin:/bin")
    if python is None:
        pytest.skip("no Python 3.11 here that everybody may run")
    with tempfile.TemporaryDirectory(prefix="kg-nobody-") as folder:
        os.chown(folder, NOBODY, NOBODY)
        packages = [path for path in sys.path if path.endswith("site-packages")]
        variables = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": folder,
            "TMPDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(PAGE.parents[1]), *packages]),
        }
        command = [
            python,
            "-m",
            "pytest",
            "-n",
            "0",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "soak or not soak",
            __file__,
        ]
        ran = subprocess.run(
            command,
            env=variables,
            cwd=PAGE.parents[1],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout


def test_the_table_has_a_row_for_each_attack_and_at_least_thirty() -> None:
    memory = [f"takes memory {how.replace('_', ' ')}" for how in WAYS_TO_MEMORY]
    assert set(table()) == {*QUICK, *LIMITED, *memory}
    assert len(table()) >= 30
    for attack, cells in table().items():
        assert set(cells) == set(LEVELS)
        assert set(cells.values()) <= {STOPPED, ENDED, GETS, GETS_AS_ROOT, GETS_AS_USER, ENDED_AS_ROOT}, attack
