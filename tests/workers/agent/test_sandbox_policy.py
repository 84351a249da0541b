"""Repros that mean harm, each at every level that is said to stop it: they get nothing and hurt nothing.

Levels that this kernel does not offer are skipped, with its reason. What a level is not said to stop (see
docs/threat-model.md) is not tried at it: on a machine that tests share it would be done.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.domain.issue import BASELINE
from knowngood.domain.measuring.isolation import Isolation, isolation_of
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import Ending, TroubleCode
from knowngood_workers.agent import sandbox_policy
from knowngood_workers.agent.arm_runner import Execution, ForkServer, Limits, RunLocation, execute, scratch_folder
from knowngood_workers.agent.sandbox_policy import (
    SandboxSpec,
    interpreter_places,
    probe_host_sandbox,
    probe_sandbox,
    sandbox_command,
)
from knowngood_workers.host.diagnostics import host_trouble
from knowngood_workers.standalone import sandbox
from tests.workers.toy_environment import SECRET, Host, make_host, survivors

HOSTILE = Path(__file__).parents[1] / "hostile"
MEGABYTE = 1 << 20
MEMORY = 300 * MEGABYTE


def from_level(least: Isolation) -> pytest.MarkDecorator:
    """Every level that is said to stop it. Those between are tried by `make soak`, and by test_hostile.py."""
    levels = [level for level in Isolation if level.rank >= max(least.rank, Isolation.PROCESS.rank)]
    ends = {Isolation.PROCESS, max(Isolation, key=lambda level: level.rank)}
    params = [pytest.param(level, marks=() if level in ends else pytest.mark.soak) for level in levels]
    return pytest.mark.parametrize("level", params, ids=str)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    more = ("home/.config/token", "data/bytecode/torch.pyc", "run/secrets/token")
    return make_host(tmp_path_factory.mktemp("host"), *more)


@pytest.fixture(scope="module")
def sandbox_specs(host: Host, tmp_path_factory: pytest.TempPathFactory) -> dict[Isolation, SandboxSpec]:
    """The sandbox that is possible here for each level."""
    return {
        level: probe_sandbox(host.sandbox_inputs(MEMORY), tmp_path_factory.mktemp("try"), level) for level in Isolation
    }


@pytest.fixture
def sandbox_spec(level: Isolation, sandbox_specs: dict[Isolation, SandboxSpec]) -> SandboxSpec:
    reached = sandbox_specs[level]
    if reached.level is not level:
        pytest.skip(f"this kernel offers '{reached.level}' at most: {reached.why_not}")
    return reached


@pytest.fixture(scope="module")
def fork_server(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    place = RunLocation(host.python, (), Limits(MEMORY))
    with scratch_folder(tmp_path_factory.mktemp("fork-server")) as folder, ForkServer(place, folder) as process:
        yield process


Attempt = Callable[..., Execution]


@pytest.fixture
def attempt(host: Host, sandbox_spec: SandboxSpec) -> Iterator[Attempt]:
    """Run one hostile script as an arm, and see that nothing of it lives on and that the decoys are as they were."""

    def run(name: str, arm: str = BASELINE, *, fork_server: ForkServer | None = None, **changes: Any) -> Execution:
        limits = Limits(memory_bytes=MEMORY, grace_s=0.3, **changes.pop("limits", {}))
        place = RunLocation(host.python, (), limits, sandbox_spec=changes.pop("sandbox_spec", sandbox_spec))
        spec = ArmSpec("a-1", "toy-1", arm, "default", 1, "b", "s", changes, {}, (), timeout_s=60.0)
        script = (HOSTILE / f"{name}.py").read_text(encoding="utf-8")
        with scratch_folder(host.data / "scratch") as scratch:
            return execute(
                spec, script, place=place, scratch=scratch, fork_server=fork_server, is_cancelled=lambda: False
            )

    yield run
    assert survivors(host.data / "scratch") == []
    assert host.database.read_text() == SECRET
    assert host.kernel.read_text() == SECRET


def told(done: Execution) -> str:
    return f"{done.log} {done.record}"


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the worker's user that knows a secret."""
    with subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "TOKEN": SECRET}) as process:
        yield process
        process.kill()


@from_level(Isolation.NETWORK)
@pytest.mark.usefixtures("victim")
def test_variables_of_other_processes_cannot_be_read(attempt: Attempt) -> None:
    done = attempt("reads_environments")
    assert done.record.ending is Ending.RETURNED
    assert "PATH=" in done.log
    assert SECRET not in told(done)


@from_level(Isolation.NAMESPACES)
def test_other_processes_are_not_even_seen(attempt: Attempt) -> None:
    assert int(attempt("reads_environments").record.observed["processes"]) <= 2


@from_level(Isolation.NAMESPACES)
def test_home_database_tokens_locks_and_other_runs_cannot_be_read(attempt: Attempt, host: Host) -> None:
    known = [host.home, host.data, host.database, host.others, host.folder / "run", host.environment]
    places = ":".join(map(str, known))
    done = attempt("reads_files", places=places, home=str(host.home), word="hunter2")
    observed = done.record.observed
    assert done.record.ending is Ending.RETURNED, told(done)
    assert int(observed["looked"]) > 500
    assert observed["found"] == ""


@dataclass
class Service:
    """A service as the dashboard, PostgreSQL and Ray are to an arm: something that listens, and counts who came."""

    callers: int = 0

    def listen(self, server: socket.socket) -> None:
        server.listen()
        threading.Thread(target=self._count, args=(server,), daemon=True).start()

    def _count(self, server: socket.socket) -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return
            self.callers += 1


@from_level(Isolation.NETWORK)
def test_nothing_that_listens_can_be_reached(attempt: Attempt, level: Isolation, tmp_path: Path) -> None:
    service, path, abstract = Service(), str(tmp_path / "socket"), f"kg-{os.getpid()}-{level}"
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))  # noqa: S104 - to be tried from the outside
        service.listen(tcp)
        for address in (path, "\0" + abstract) if level.rank >= Isolation.NAMESPACES.rank else ("\0" + abstract,):
            server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            server.bind(address)
            service.listen(server)
        port = tcp.getsockname()[1]
        done = attempt("connects", port=port, path=path, abstract=abstract, outside=own_address())
    assert done.record.observed["reached"] == ""
    assert service.callers == 0


def own_address() -> str:
    """The host as others reach it; empty where it has a loopback alone."""
    found = [
        one.address for addresses in psutil.net_if_addrs().values() for one in addresses if one.family == socket.AF_INET
    ]
    return next((address for address in found if not address.startswith("127.")), "")


@pytest.mark.system
@from_level(Isolation.PROCESS)
def test_a_fork_bomb_is_ended_whole(attempt: Attempt) -> None:
    assert attempt("forks", limits={"processes": 64}).record.ending is Ending.OVER_PROCESSES


@from_level(Isolation.PROCESS)
def test_a_disk_is_not_filled_by_many_small_files(attempt: Attempt) -> None:
    record = attempt("fills", folder="", wait=60, limits={"scratch_bytes": 8 * MEGABYTE}).record
    assert record.ending is Ending.OVER_DISK


@from_level(Isolation.NAMESPACES)
@pytest.mark.parametrize(
    "folder",
    ["/tmp", *(pytest.param(one, marks=pytest.mark.soak) for one in ("/var/tmp", "/dev/shm"))],  # noqa: S108 - the arm's
)
def test_memory_is_not_filled_by_files(attempt: Attempt, sandbox_spec: SandboxSpec, folder: str) -> None:
    small = tuple(("room", op[1], 4 * MEGABYTE) if op[0] == "room" else op for op in sandbox_spec.ops)
    observed = attempt("fills", sandbox_spec=replace(sandbox_spec, ops=small), folder=folder, wait=0).record.observed
    assert (int(observed["written"]) < 8, observed["refused"]) == (True, "No space left on device")
    assert not list(Path(folder).glob("part[0-9]*"))


@from_level(Isolation.NAMESPACES)
def test_it_kills_nobody_but_itself(attempt: Attempt, victim: subprocess.Popen[bytes]) -> None:
    done = attempt("kills")
    assert done.record.ending is Ending.RETURNED, done.log
    assert int(done.record.observed["left"]) <= 2  # its init, and itself
    assert victim.poll() is None


@from_level(Isolation.NAMESPACES)
def test_it_writes_nowhere_but_into_its_own_folders(attempt: Attempt, host: Host) -> None:
    module = host.site / "torch" / "__init__.py"
    before = (module.read_bytes(), module.stat().st_mode, module.stat().st_mtime_ns)
    folders: list[Path] = [host.site, host.site / "torch", host.environment, host.data, host.others, host.home]
    system = ["/", "/etc", "/usr", "/usr/lib", "/opt", "/root", "/run", "/var", "/sys"]
    files = [module, host.database, host.kernel, host.stored]
    done = attempt("writes", folders=":".join([*map(str, folders), *system]), files=":".join(map(str, files)))
    # Below /tmp it may write: that is its own, in memory. What is shown there of the host is not.
    done_to = [Path(path) for path in done.record.observed["done"].split()]
    assert [path for path in done_to if path.parts[1] != "tmp" or path.is_relative_to(host.environment)] == []
    assert [path for folder in (*map(str, folders), *system) for path in Path(folder).glob("knowngood-wrote-*")] == []
    assert before == (module.read_bytes(), module.stat().st_mode, module.stat().st_mtime_ns)


@from_level(Isolation.NETWORK)
@pytest.mark.parametrize("is_forked", [True, False], ids=["forked", "fresh"])
def test_the_next_arm_finds_nothing_of_what_one_left(
    attempt: Attempt, level: Isolation, fork_server: ForkServer, *, is_forked: bool
) -> None:
    if level is Isolation.NETWORK:
        pytest.skip("it would leave files among the host's own temporary ones at this level")
    source = fork_server if is_forked else None
    assert attempt("leaves_things", fork_server=source).record.observed == {"left": "all"}
    assert attempt("leaves_things", "control", fork_server=source).record.observed == {"found": "", "set": ""}


@from_level(Isolation.PROCESS)
def test_a_daemon_that_is_deaf_to_signals_ends_with_its_arm(attempt: Attempt) -> None:
    assert attempt("daemonises").record.ending is Ending.RETURNED


@from_level(Isolation.PROCESS)
@pytest.mark.parametrize("is_forked", [True, False], ids=["forked", "fresh"])
def test_forged_words_count_for_nothing_and_end_nothing(
    attempt: Attempt, host: Host, fork_server: ForkServer, *, is_forked: bool
) -> None:
    """Nor is a link of the arm's followed when its folder is read afterwards."""
    source = fork_server if is_forked else None
    done = attempt("forges", fork_server=source, secret=str(host.database))
    assert done.record.ending is Ending.SIGNALLED
    assert (done.record.observed, done.record.raised, done.record.imported["torch"]) == ({}, None, "0.0.1+mini")
    assert SECRET not in told(done)


@from_level(Isolation.PROCESS)
@pytest.mark.parametrize("is_forked", [True, False], ids=["forked", "fresh"])
def test_no_folder_and_no_socket_is_left_open_for_an_arm(
    attempt: Attempt, fork_server: ForkServer, *, is_forked: bool
) -> None:
    observed = attempt("looks_at_descriptors", fork_server=fork_server if is_forked else None).record.observed
    assert set(observed["kinds"].split()) == {"other"}
    assert observed["climbed"] == "0"


@from_level(Isolation.NAMESPACES)
@pytest.mark.parametrize("is_forked", [True, False], ids=["forked", "fresh"])
def test_the_known_ways_out_are_shut(
    attempt: Attempt, level: Isolation, sandbox_spec: SandboxSpec, fork_server: ForkServer, *, is_forked: bool
) -> None:
    done = attempt(
        "breaks_out", sandbox_spec=replace(sandbox_spec, tasks=4000), fork_server=fork_server if is_forked else None
    )
    assert done.record.ending is Ending.RETURNED, done.log
    observed = dict(done.record.observed)
    assert observed["open"] == ""
    if level is Isolation.FILTERED and sandbox.SECCOMP in sandbox_spec.steps:
        refused = {
            "user namespace": "refused",
            "keyctl": "EPERM",
            "io_uring": "ENOSYS",
            "bpf": "EPERM",
            "perf": "EPERM",
        }
        assert {name: observed[name] for name in refused} == refused
    assert isolation_of(done.record.sandbox) is level


@from_level(Isolation.NAMESPACES)
def test_the_kernel_counts_tasks_where_it_can(attempt: Attempt, sandbox_spec: SandboxSpec) -> None:
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14):
        pytest.skip(
            "pid_max is counted by namespace from Linux 6.14 on; the supervisor's look at processes is the limit"
        )
    mine = Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")
    assert attempt("breaks_out", sandbox_spec=replace(sandbox_spec, tasks=4000)).record.observed["tasks"] == "4000"
    assert Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii") == mine


CHOSEN = """#!/bin/sh
echo "$0" > {place}
exit 1
"""


def test_what_an_arm_chose_as_its_compiler_is_asked_from_inside(
    host: Host, sandbox_specs: dict[Isolation, SandboxSpec], tmp_path: Path
) -> None:
    """After a failure the worker asks whether the host has a compiler: by the arm's own variables."""
    sandbox_spec, place = sandbox_specs[Isolation.FILTERED], tmp_path / "written-by-the-arm"
    if sandbox_spec.level.rank < Isolation.NAMESPACES.rank:
        pytest.skip(f"this kernel offers '{sandbox_spec.level}' at most: {sandbox_specs[Isolation.FILTERED].why_not}")
    with scratch_folder(host.data / "scratch") as scratch:
        compiler = scratch / "cxx"
        compiler.write_text(CHOSEN.format(place=place))
        compiler.chmod(0o755)
        environ = {"PATH": os.environ["PATH"], "CXX": str(compiler), "LD_PRELOAD": str(scratch / "evil.so")}
        within = sandbox_command(sandbox_spec.around(scratch))
        found = host_trouble(None, scratch, ("inductor_cpp",), environ, within)
        assert not place.exists()
        assert found is not None
        assert found.code is TroubleCode.NO_COMPILER
        host_trouble(None, scratch, ("inductor_cpp",), environ)
        assert place.exists()  # without the inside it is run here


def test_a_compiler_and_headers_are_found_inside(host: Host, sandbox_specs: dict[Isolation, SandboxSpec]) -> None:
    sandbox_spec = sandbox_specs[Isolation.FILTERED]
    with scratch_folder(host.data / "scratch") as scratch:
        environ = {"PATH": os.environ["PATH"], "HOME": str(scratch)}
        assert (
            host_trouble(None, scratch, ("inductor_cpp",), environ, sandbox_command(sandbox_spec.around(scratch)))
            is None
        )


@pytest.mark.parametrize("level", Isolation, ids=str)
def test_no_more_is_done_than_is_allowed(level: Isolation, sandbox_specs: dict[Isolation, SandboxSpec]) -> None:
    """A cap is for hosts whose driver does not work inside."""
    assert sandbox_specs[level].level.rank <= max(level.rank, Isolation.PROCESS.rank)


def test_what_is_not_as_it_should_be_inside_is_a_level_less_with_its_reason(host: Host, tmp_path: Path) -> None:
    """An interpreter that cannot be shown without showing the data folder too."""
    inner = host.data / "python3"
    inner.unlink(missing_ok=True)
    inner.symlink_to(Path(sys.executable).resolve())
    sandbox_inputs = replace(host.sandbox_inputs(MEMORY), python=inner)
    reached = probe_sandbox(sandbox_inputs, tmp_path)
    assert reached.level.rank < Isolation.NAMESPACES.rank
    assert reached.why_not


@pytest.mark.parametrize(
    ("step", "number", "part"),
    [
        ("a /proc of its own", 1, "systempaths=unconfined"),
        ("user namespace", 28, "user namespaces are"),
        ("pivot_root", 22, "the kernel refuses pivot_root (Invalid argument)"),
        ("looking around", 0, "an arm would not be as it should: x"),
    ],
)
def test_a_refusal_is_told_in_words(step: str, number: int, part: str) -> None:
    assert part in sandbox_policy._explain_refusal(step, number, "x")


def test_links_on_the_way_to_an_interpreter_are_all_shown(tmp_path: Path) -> None:
    """As uv and pyenv lay them: a venv's python leads over a versionless name to the installation."""
    real = tmp_path / "pythons" / "cpython-3.11.9" / "bin" / "python3.11"
    real.parent.mkdir(parents=True)
    real.touch()
    (tmp_path / "pythons" / "cpython-3.11").symlink_to("cpython-3.11.9")
    venv = tmp_path / "venv" / "bin" / "python"
    venv.parent.mkdir(parents=True)
    venv.symlink_to(tmp_path / "pythons" / "cpython-3.11" / "bin" / "python3.11")
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path}/pythons/cpython-3.11/bin\n")
    assert interpreter_places(venv) == [tmp_path / "pythons" / "cpython-3.11", tmp_path / "pythons" / "cpython-3.11.9"]


def test_of_a_prefix_that_is_shared_with_everything_only_pythons_parts_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`~/.local/bin/python3.11`: its prefix holds tokens and histories too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    real = tmp_path / ".local" / "bin" / "python3.11"
    library = tmp_path / ".local" / "lib" / "python3.11"
    for folder in (real.parent, library):
        folder.mkdir(parents=True)
    real.touch()
    venv = tmp_path / "venv" / "bin" / "python"
    venv.parent.mkdir(parents=True)
    venv.symlink_to(real)
    assert set(interpreter_places(venv)) == {real, library}


CUDA = """
int cuInit(unsigned flags) { return %d; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
"""


@pytest.mark.parametrize("fault", [0, 999], ids=["a driver that works sandbox_command", "a driver that does not"])
def test_where_the_driver_does_not_work_inside_arms_stay_outside(
    host: Host, sandbox_specs: dict[Isolation, SandboxSpec], tmp_path: Path, fault: int
) -> None:
    """Whatever a driver needs that is not shown: its arms must not fail for it."""
    libraries = host.home / "driver"
    libraries.mkdir(exist_ok=True)
    (tmp_path / "cuda.c").write_text(CUDA % fault)
    built = ["gcc", "-shared", "-o", str(libraries / "libcuda.so.1"), str(tmp_path / "cuda.c")]
    subprocess.run(built, check=True)
    sandbox_inputs = host.sandbox_inputs(MEMORY)
    environ = {**sandbox_inputs.environ, "LD_LIBRARY_PATH": str(libraries)}
    reached = probe_sandbox(replace(sandbox_inputs, environ=environ, sees_gpu=True), tmp_path)
    expected = sandbox_specs[Isolation.NETWORK] if fault else sandbox_specs[Isolation.FILTERED]
    assert reached.level is expected.level, reached.why_not
    assert ("CUDA finds no GPU" in reached.why_not) == bool(fault)


def test_a_kernel_that_lets_others_make_namespaces_lets_us(
    sandbox_specs: dict[Isolation, SandboxSpec],
) -> None:
    """Else a fault of ours would read as a kernel that offers nothing, and every test above would be skipped."""
    others = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--mount-proc", "true"]
    if subprocess.run(others, capture_output=True, check=False).returncode:
        pytest.skip("util-linux cannot make them either, or is not here")
    assert sandbox_specs[Isolation.NAMESPACES].level is Isolation.NAMESPACES, sandbox_specs[
        Isolation.NAMESPACES
    ].why_not
    if sandbox.is_filter_known():
        assert sandbox.SECCOMP in sandbox_specs[Isolation.FILTERED].steps, sandbox_specs[Isolation.FILTERED].why_not


def test_the_host_says_what_it_can(tmp_path: Path) -> None:
    reached = probe_host_sandbox(tmp_path)
    assert reached.level.rank >= Isolation.PROCESS.rank
    assert (reached.level is Isolation.FILTERED) == (not reached.why_not and len(reached.steps) > 3)


def test_a_command_inside_ends_as_it_would_outside(sandbox_specs: dict[Isolation, SandboxSpec], tmp_path: Path) -> None:
    """The host's probes read how it ended."""
    (tmp_path / sandbox_policy.MOUNT).mkdir()
    within = sandbox_command(sandbox_specs[Isolation.FILTERED].around(tmp_path))
    ends = [
        subprocess.run([*within, "sh", "-c", f"{act}"], check=False).returncode for act in ("exit 7", "kill -SEGV $$")
    ]
    assert ends == [7, -signal.SIGSEGV]
