"""Control groups: what is ours to divide, over folders that look like some; and what the kernel then does, for real.

The real ones need a group of version 2 that was delegated to the tests and holds nobody else, else they are skipped:

    systemd-run --user --scope -p Delegate=yes .venv/bin/python -m pytest -n 0 -m cgroup
"""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.domain.issue import BASELINE
from knowngood.domain.measuring.isolation import Isolation, isolation_of
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import Ending
from knowngood_workers.agent.arm_runner import Execution, ForkServer, Limits, RunLocation, execute, scratch_folder
from knowngood_workers.agent.doctor import State, check_limits
from knowngood_workers.agent.process_guard import settle
from knowngood_workers.agent.sandbox_policy import SandboxSpec, probe_cgroups, probe_sandbox
from knowngood_workers.standalone import cgroup
from knowngood_workers.standalone.sandbox import is_apart
from tests.waiting import eventually
from tests.workers.toy_environment import Host, make_host, survivors

HOSTILE = Path(__file__).parents[1] / "hostile"
MEGABYTE = 1 << 20
MEMORY = 200 * MEGABYTE
WAYS = re.findall(r"^def (\w+)\(size\)", (HOSTILE / "takes_memory.py").read_text(), re.MULTILINE)
WORKERS = Path(cgroup.__file__).parent

MOUNTS = "25 1 0:22 / /proc rw - proc proc rw\n29 23 0:26 {root} /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("groups", "root", "found"),
    [
        pytest.param("0::/a.slice/b.service\n", "/", "/sys/fs/cgroup/a.slice/b.service", id="of a host"),
        pytest.param("0::/\n", "/", "/sys/fs/cgroup", id="of a container with a view of its own"),
        pytest.param("9:pids:/x\n4:memory:/y\n0::/z\n", "/", "/sys/fs/cgroup/z", id="beside groups of version 1"),
        pytest.param("0::/outer/inner\n", "/outer", "/sys/fs/cgroup/inner", id="of a container with the host's view"),
        pytest.param("0::/outermost\n", "/outer", "", id="elsewhere than what is mounted"),
        pytest.param("0::/../above\n", "/", "", id="above what is seen"),
        pytest.param("4:memory:/y\n", "/", "", id="of version 1 alone"),
    ],
)
def test_the_own_group_is_where_the_kernel_says(tmp_path: Path, groups: str, root: str, found: str) -> None:
    (tmp_path / "cgroup").write_text(groups)
    (tmp_path / "mountinfo").write_text(MOUNTS.format(root=root))
    assert cgroup.own_group(str(tmp_path / "cgroup"), str(tmp_path / "mountinfo")) == found


def make_group(folder: Path, controllers: str = "cpu memory pids", below: str = "") -> Path:
    folder.mkdir(parents=True)
    for name, text in (("procs", ""), ("controllers", controllers), ("subtree_control", below)):
        (folder / f"cgroup.{name}").write_text(text + "\n")
    return folder


def test_who_is_in_our_leaf_has_groups_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_MANAGER", str(tmp_path / "none"))
    home = make_group(tmp_path / "home", below="memory pids")
    leaf = make_group(home / cgroup.LEAF)
    assert cgroup.find_home(str(leaf)) == (str(home), "")


@pytest.mark.parametrize(
    ("controllers", "why_not"),
    [("cpu pids", "limit no memory"), ("", "limit no memory"), ("memory", "others run in")],
)
def test_what_keeps_a_group_from_being_divided_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controllers: str, why_not: str
) -> None:
    monkeypatch.setattr(cgroup, "_MANAGER", str(tmp_path / "none"))
    home, told = cgroup.find_home(str(make_group(tmp_path / "home", controllers)))
    assert (home, why_not in told) == ("", True)


def test_no_group_is_no_home() -> None:
    assert cgroup.find_home("") == ("", "no control groups (v2) are to be seen here")


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody but root may write where nothing was given to them")
def test_where_a_manager_has_the_host_root_divides_nothing_that_is_not_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_MANAGER", str(tmp_path))
    home, told = cgroup.find_home(str(make_group(tmp_path / "unit.service", below="memory")))
    assert home == ""
    assert told.startswith("the control group of this process was not delegated to it; `systemd-run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_group_that_may_not_be_written_was_not_given(tmp_path: Path) -> None:
    group = make_group(tmp_path / "unit.service", below="memory")
    (group / "cgroup.procs").chmod(0o444)
    assert cgroup.find_home(str(group))[0] == ""


def test_the_host_says_who_limits_memory() -> None:
    told = check_limits()
    home, why_not = probe_cgroups()
    assert told.state is State.OK
    assert ("the kernel limits the memory" if home else why_not) in told.sentence


# For real, from here on.

Attempt = Callable[..., Execution]
real = pytest.mark.cgroup


@pytest.fixture(scope="module")
def home() -> str:
    settle()
    home, why_not = probe_cgroups()
    if not home:
        pytest.skip(why_not)
    return home


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, home: str) -> Host:
    return make_host(tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module", params=["process", "highest"])
def sandbox_spec(request: pytest.FixtureRequest, host: Host, tmp_path_factory: pytest.TempPathFactory) -> SandboxSpec:
    level = Isolation.PROCESS if request.param == "process" else Isolation.FILTERED
    return probe_sandbox(host.sandbox_inputs(MEMORY, host.python.resolve()), tmp_path_factory.mktemp("try"), level)


@pytest.fixture(scope="module")
def fork_server(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with (
        scratch_folder(tmp_path_factory.mktemp("fork-server")) as folder,
        ForkServer(RunLocation(host.python, (), Limits(MEMORY)), folder) as process,
    ):
        yield process


@pytest.fixture
def attempt(host: Host, sandbox_spec: SandboxSpec, home: str) -> Iterator[Attempt]:
    """Run a hostile script or these lines in a group, and see that nothing is left of either."""

    def run(script: str, *, fork_server: ForkServer | None = None, groups: str = home, **params: Any) -> Execution:
        limits = Limits(MEMORY, grace_s=0.3)
        tasks = params.pop("tasks", sandbox_spec.tasks)
        place = RunLocation(host.python, (), limits, sandbox_spec=replace(sandbox_spec, tasks=tasks), groups=groups)
        path = HOSTILE / f"{script}.py"
        text = path.read_text(encoding="utf-8") if "\n" not in script else script
        spec = ArmSpec("a-1", "toy-1", BASELINE, "default", 1, "b", "s", params, {}, (), timeout_s=120.0)
        with scratch_folder(host.data / "scratch") as scratch:
            return execute(
                spec, text, place=place, scratch=scratch, fork_server=fork_server, is_cancelled=lambda: False
            )

    yield run
    assert survivors(host.data / "scratch") == []
    assert groups_in(home) == []


def groups_in(home: str) -> list[str]:
    return [path.name for path in Path(home).glob("kg-*")]


@real
@pytest.mark.parametrize("is_forked", [True, False], ids=["forked", "fresh"])
@pytest.mark.parametrize("how", WAYS)
def test_memory_is_limited_however_it_is_held(
    attempt: Attempt, fork_server: ForkServer, sandbox_spec: SandboxSpec, how: str, *, is_forked: bool
) -> None:
    done = attempt("takes_memory", fork_server=fork_server if is_forked else None, how=how, size=2 * MEMORY)
    if how == "in_files_of_shared_memory" and sandbox_spec.level.rank >= Isolation.NAMESPACES.rank:
        assert done.record.observed == {"kept": "nothing"}, "its own /dev/shm is half as large as the memory"
        return
    assert done.record.ending is Ending.OVER_MEMORY, done.log
    assert cgroup.CGROUP in done.record.sandbox
    assert done.record.peak_bytes >= MEMORY // 2
    assert done.record.trouble is None


@real
def test_what_the_kernel_keeps_of_files_is_not_held_against_an_arm(attempt: Attempt, host: Host) -> None:
    kind = subprocess.run(["stat", "-f", "-c", "%T", host.data], capture_output=True, text=True, check=True).stdout
    if kind.strip() == "tmpfs":
        pytest.skip("its files are memory here")
    script = f"""
import os

def baseline():
    with open("large", "wb") as file:
        for _ in range(400):
            file.write(os.urandom({MEGABYTE}))
    with open("large", "rb") as file:
        while file.read({MEGABYTE}):
            pass
    return {{"a": 1}}
"""
    record = attempt(script).record
    assert (record.ending, record.observed) == (Ending.RETURNED, {"a": "1"})
    assert record.peak_bytes < MEMORY // 2
    assert isolation_of(record.sandbox) is isolation_of(set(record.sandbox) - {cgroup.CGROUP})


@real
def test_the_kernel_counts_threads_and_processes(attempt: Attempt) -> None:
    script = """
import threading, time

def baseline():
    for number in range(100):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return {"a": 1}
"""
    record = attempt(script, tasks=50).record
    assert record.raised is not None
    assert "thread" in record.raised.message


@real
def test_an_arm_that_is_apart_stays_in_its_group_and_below_its_limit(
    attempt: Attempt, sandbox_spec: SandboxSpec
) -> None:
    if not is_apart(sandbox_spec.steps):
        pytest.skip("without Landlock nothing keeps an arm of this level from what its user may write")
    script = """
def baseline():
    group = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().partition("0::")[2].strip()
    done = []
    for name, text in (("memory.max", "max"), ("pids.max", "max"), ("../knowngood/cgroup.procs", "0")):
        try:
            with open(group + "/" + name, "w") as file:
                file.write(text)
            done.append(name)
        except OSError as failure:
            print(failure)
    return {"group": group.rpartition("/")[2][:3], "done": ", ".join(done)}
"""
    done = attempt(script)
    assert done.record.observed == {"group": "kg-", "done": ""}
    assert done.log.count("Read-only file system") + done.log.count("Permission denied") == 3


@real
def test_where_the_host_lacks_memory_the_arm_is_not_to_blame(attempt: Attempt, home: str) -> None:
    """The limit of a group further up is met by whoever is in it."""
    with group(home, memory=MEMORY // 2) as above:
        record = attempt("takes_memory", groups=str(above), how="plainly", size=MEMORY * 3 // 4).record
    assert (record.ending, record.signal) == (Ending.SIGNALLED, "SIGKILL")


@real
def test_what_a_killed_worker_left_is_removed_and_what_is_in_use_is_not(home: str) -> None:
    left = Path(home) / "kg-left"
    left.mkdir()
    with cgroup.group_for_arm(home, MEMORY, 64) as used, subprocess.Popen(["sleep", "600"]) as one:
        (left / "cgroup.procs").write_text(str(one.pid))
        cgroup.sweep(home)
        assert one.wait() == -9
        assert groups_in(home) == [Path(used).name]
    assert groups_in(home) == []


@real
def test_a_group_that_holds_others_is_left_as_it_is(home: str) -> None:
    with group(home) as folder, subprocess.Popen(["sleep", "600"]) as other:
        (folder / "cgroup.procs").write_text(str(other.pid))
        assert settled_in(folder).startswith("others run in the control group of this process; `systemd-run")
        assert (folder / "cgroup.procs").read_text().split() == [str(other.pid)]
        assert not (folder / cgroup.LEAF).exists()
        other.kill()


@real
def test_who_is_alone_in_a_group_goes_into_a_leaf_with_all_that_it_started(home: str) -> None:
    with group(home) as folder:
        assert settled_in(folder) == f"{folder} 2"


def settled_in(folder: Path) -> str:
    """The fate of a process there that has started another: how many are in the leaf, or why there is none."""
    script = (
        "import os, subprocess, sys; from knowngood_workers.standalone import cgroup\n"
        "from knowngood_workers.agent.process_guard import settle\n"
        "open(sys.argv[1] + '/cgroup.procs', 'w').write('0')\n"
        "one = subprocess.Popen(['sleep', '600']); settle(); home, why_not = cgroup.find_home(cgroup.own_group())\n"
        "print(home and home + ' %d' % len(open(home + '/knowngood/cgroup.procs').readlines()), why_not); one.kill()\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=WORKERS.parent).stdout.strip()


@contextmanager
def group(home: str, memory: int | None = None) -> Iterator[Path]:
    """One that is not an arm's, in which others can be made."""
    folder = Path(home) / f"test-{os.getpid()}"
    folder.mkdir()
    try:
        if memory is not None:
            (folder / "memory.max").write_text(str(memory))
            (folder / "cgroup.subtree_control").write_text("+memory +pids")
        yield folder
    finally:
        for one in (folder / cgroup.LEAF, folder):
            assert eventually(partial(is_empty, one), 10)
            if one.exists():
                one.rmdir()


def is_empty(group: Path) -> bool:
    return not group.exists() or not (group / "cgroup.procs").read_text()


@real
def test_the_group_of_an_arm_whose_supervisor_was_killed_is_gone_with_all_in_it(attempt: Attempt, home: str) -> None:
    done: list[Execution] = []
    script = "import time\ndef baseline(): time.sleep(600)\n"
    thread = threading.Thread(target=lambda: done.append(attempt(script)))
    thread.start()
    try:
        assert eventually(lambda: any(members(home, name) for name in groups_in(home)), 60)
        (arm,) = (pid for name in groups_in(home) for pid in members(home, name))
        psutil.Process(arm).parent().kill()  # type: ignore[union-attr]
    finally:
        thread.join()
    assert done[0].record.ending is Ending.NOT_STARTED
    assert groups_in(home) == []


def members(home: str, name: str) -> list[int]:
    return [int(pid) for pid in (Path(home) / name / "cgroup.procs").read_text().split()]
