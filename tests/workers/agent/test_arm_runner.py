import os
import re
import shutil
import signal
import socket
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.issue import BASELINE, Issue
from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import Ending, TroubleCode
from knowngood_workers.agent.arm_runner import (
    Execution,
    ForkServer,
    Limits,
    RunLocation,
    arm_environment,
    execute,
    scratch_folder,
    sweep_scratch,
)
from knowngood_workers.agent.sandbox_policy import OPEN, SandboxInputs, SandboxSpec, probe_sandbox
from tests.waiting import PATIENCE_S, eventually
from tests.workers.toy_environment import make_toy_python, survivors

MODES = ("fresh", "forked")
MEGABYTE = 1 << 20
TOYS = Path(__file__).parents[2] / "mini_repros"

Attempt = Callable[..., Execution]

# Starting fresh takes five times as long: where both ways run the same lines, one of them is tried.
forked_alone = pytest.mark.parametrize("mode", ["forked"], indirect=True)


@pytest.fixture(scope="session")
def toy_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_python(tmp_path_factory.mktemp("toy"), "torch==0.0.1", "numpy", "mini_extra", "triton")


@pytest.fixture(scope="session")
def place(toy_python: Path, tmp_path_factory: pytest.TempPathFactory) -> RunLocation:
    """As shut off as this kernel allows, which is how arms run; test_isolation tries the levels below."""
    sandbox_inputs = SandboxInputs(toy_python, tmp_path_factory.mktemp("data"), memory_bytes=300 * MEGABYTE)
    sandbox_spec = probe_sandbox(sandbox_inputs, tmp_path_factory.mktemp("try"))
    return RunLocation(
        toy_python, ("mini-extra",), Limits(memory_bytes=300 * MEGABYTE, grace_s=PATIENCE_S), sandbox_spec=sandbox_spec
    )


@pytest.fixture(scope="session")
def fork_server(place: RunLocation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with scratch_folder(tmp_path_factory.mktemp("fork-server")) as folder, ForkServer(place, folder) as process:
        yield process


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def attempt(mode: str, place: RunLocation, fork_server: ForkServer, tmp_path: Path) -> Iterator[Attempt]:
    """Run a script's `baseline`, fresh or forked, and see that nothing of it lives on."""

    def run(body: str, **changes: Any) -> Execution:
        changes.setdefault("fork_server", fork_server if mode == "forked" else None)
        return run_body(body, tmp_path, changes.pop("place", place), **changes)

    yield run
    assert survivors(tmp_path) == []


def run_body(
    body: str,
    folder: Path,
    place: RunLocation,
    *,
    fork_server: ForkServer | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
    **of_arm: Any,
) -> Execution:
    arm = ArmSpec("a-1", "toy-1", BASELINE, "default", 1, "b", "s", {}, {}, (), timeout_s=20.0)
    with scratch_folder(folder / "scratch") as scratch:
        return execute(
            replace(arm, **of_arm),
            textwrap.dedent(body),
            place=place,
            scratch=scratch,
            fork_server=fork_server,
            is_cancelled=is_cancelled,
        )


def test_what_an_arm_returns_is_kept_as_text(attempt: Attempt) -> None:
    done = attempt("def baseline(size=1): return {'size': size, 'half': size / 2, 3: None}", params={"size": 5})
    assert done.record.ending is Ending.RETURNED
    assert done.record.observed == {"size": "5", "half": "2.5", "3": "None"}
    assert (done.record.exit_code, done.record.signal) == (0, "")


@forked_alone
@pytest.mark.parametrize("returned", ["None", "{}", "[('a', 1)]", "True"])
def test_what_is_no_mapping_says_nothing(attempt: Attempt, returned: str) -> None:
    record = attempt(f"def baseline(): return {returned}").record
    assert (record.ending, record.observed) == (Ending.RETURNED, {})


def test_versions_are_told_by_the_process_itself(attempt: Attempt) -> None:
    imported = attempt("def baseline(): return {'a': 1}").record.imported
    assert imported["torch"] == "0.0.1+mini"
    assert imported["cuda"] == ""
    assert imported["mini-extra"] == "1.0"
    assert imported["triton"] == "0.1.0"
    assert re.fullmatch(r"[0-9a-f]{40}", imported["git"])
    assert re.fullmatch(r"3\.\d+\.\d+", imported["python"])


@pytest.mark.parametrize(
    ("body", "ending", "exit_code", "number"),
    [
        pytest.param("def baseline(): raise ValueError('no')", Ending.RAISED, 1, "", id="raised in the arm"),
        pytest.param("import absent_module", Ending.RAISED, 1, "", id="raised while the script is imported"),
        pytest.param("def other(): return {}", Ending.RAISED, 1, "", id="has no such arm"),
        pytest.param("def baseline(): raise KeyboardInterrupt", Ending.RAISED, 1, "", id="raised what is no Exception"),
        pytest.param("raise SystemExit(0)", Ending.EXITED, 0, "", id="left with 0 while it was imported"),
        pytest.param("import sys\ndef baseline(): sys.exit(3)", Ending.EXITED, 3, "", id="left with 3"),
        pytest.param("import os\ndef baseline(): os._exit(0)", Ending.EXITED, 0, "", id="was gone with 0"),
        pytest.param("import os\ndef baseline(): os.abort()", Ending.SIGNALLED, None, "SIGABRT", id="aborted"),
        pytest.param(
            "import ctypes\ndef baseline(): ctypes.string_at(0)", Ending.SIGNALLED, None, "SIGSEGV", id="crashed"
        ),
        pytest.param(
            "import os\ndef baseline(): os.kill(os.getpid(), 9)", Ending.SIGNALLED, None, "SIGKILL", id="was killed"
        ),
    ],
)
@pytest.mark.parametrize("mode", [pytest.param("fresh", marks=pytest.mark.soak), "forked"], indirect=True)
def test_every_ending_is_told_apart(
    attempt: Attempt, body: str, ending: Ending, exit_code: int | None, number: str
) -> None:
    record = attempt(body).record
    assert (record.ending, record.exit_code, record.signal) == (ending, exit_code, number)
    assert record.trouble is None


def test_an_exception_keeps_its_kind_its_message_and_both_ends_of_its_traceback(attempt: Attempt) -> None:
    done = attempt("def baseline(): raise ArithmeticError('first ' + 'x' * 200000 + ' last')")
    raised = done.record.raised
    assert raised is not None
    assert (raised.kind, raised.marked) == ("ArithmeticError", "")
    assert raised.message.startswith("first x")
    assert raised.text.startswith("Traceback")
    assert raised.text.endswith("last\n")
    assert len(raised.text) < 66_000
    assert "ArithmeticError: first" in done.log


MARKED = """
    import fractions
    class WrongResult(Exception): pass
    class NotApplicable(Exception): pass
    class Closer(WrongResult): pass
    Foreign = type("WrongResult", (Exception,), {{"__module__": "elsewhere"}})
    def baseline(): raise {kind}("expected 3, got 4")
"""


@forked_alone
@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        pytest.param("WrongResult", "wrong_result", id="the script's own"),
        pytest.param("Closer", "wrong_result", id="a kind of it"),
        pytest.param("NotApplicable", "not_applicable", id="does not apply here"),
        pytest.param("Foreign", "", id="somebody else's of the same name"),
    ],
)
def test_only_the_scripts_own_classes_mark_what_they_say(attempt: Attempt, kind: str, mark: str) -> None:
    raised = attempt(MARKED.format(kind=kind)).record.raised
    assert raised is not None
    assert (raised.marked, raised.message) == (mark, "expected 3, got 4")


def test_what_was_seen_before_a_crash_remains(attempt: Attempt) -> None:
    record = attempt(
        """
        import os, torch
        from torch._ops import OpOverload
        def baseline():
            OpOverload("mini::double", lambda value: 2 * value)(1)
            os.abort()
        """,
        exercises=("operator:mini::double",),
    ).record
    assert record.imported["torch"] == "0.0.1+mini"
    assert record.probes == {"operator:mini::double": 1}


HANG = """
    import signal, threading, time
    def _waits_elsewhere():
        time.sleep(600)
    def _waits_here():
        time.sleep(600)
    def baseline():
        {first}
        threading.Thread(target=_waits_elsewhere, daemon=True).start()
        _waits_here()
"""


def timed_out(run: Callable[[float], Execution], has_come_so_far: Callable[[Execution], bool]) -> Execution:
    """With more time, where the host was too busy for the arm to do before the end what it was to do."""
    for limit_s in (2, 10):
        if has_come_so_far(done := run(limit_s)):
            return done
    return run(50)


def has_said_something(done: Execution) -> bool:
    return done.log.startswith("before")


def test_a_hang_leaves_the_stacks_of_all_its_threads(attempt: Attempt) -> None:
    body = HANG.format(first="print('before', flush=True)")
    done = timed_out(lambda limit_s: attempt(body, timeout_s=limit_s), has_said_something)
    assert done.record.ending is Ending.TIMED_OUT
    assert "in _waits_here" in done.log
    assert "in _waits_elsewhere" in done.log
    assert done.log.startswith("before")
    assert 2 < done.record.wall_s < PATIENCE_S


@forked_alone
def test_an_arm_that_ignores_being_asked_is_killed(attempt: Attempt, place: RunLocation) -> None:
    body = HANG.format(first="signal.signal(signal.SIGTERM, signal.SIG_IGN); print('before', flush=True)")
    hasty = replace(place, limits=replace(place.limits, grace_s=0.3))
    record = timed_out(lambda limit_s: attempt(body, place=hasty, timeout_s=limit_s), has_said_something).record
    assert (record.ending, record.signal) == (Ending.TIMED_OUT, "SIGKILL")


@forked_alone
def test_an_exception_counts_although_the_process_then_hangs(attempt: Attempt) -> None:
    body = """
        import threading, time
        def baseline():
            threading.Thread(target=time.sleep, args=(600,)).start()
            raise ValueError("the arm's own end")
    """
    record = timed_out(
        lambda limit_s: attempt(body, timeout_s=limit_s), lambda done: done.record.raised is not None
    ).record
    assert record.ending is Ending.RAISED
    assert record.signal == "SIGTERM"


def test_a_return_does_not_count_where_the_process_then_dies(attempt: Attempt) -> None:
    done = attempt(
        """
        import atexit, os
        def baseline():
            atexit.register(os.abort)
            return {"a": 1}
        """
    )
    assert (done.record.ending, done.record.signal) == (Ending.SIGNALLED, "SIGABRT")
    assert done.record.observed == {"a": "1"}


@pytest.mark.system
@forked_alone
def test_memory_is_limited_for_all_processes_of_an_arm_together(attempt: Attempt) -> None:
    record = attempt(
        """
        import os, time
        def baseline():
            for _ in range(4):
                if os.fork() == 0:
                    held = os.urandom(120 << 20)
                    time.sleep(600)
            time.sleep(600)
        """
    ).record
    assert record.ending is Ending.OVER_MEMORY
    assert record.peak_bytes > 300 * MEGABYTE


@forked_alone
def test_memory_that_forked_processes_share_is_counted_once(attempt: Attempt) -> None:
    record = attempt(
        """
        import os, time
        def baseline():
            held = b"x" * (120 << 20)
            pids = [os.fork() for _ in range(1)]
            while len(pids) < 5 and all(pids):
                pids.append(os.fork())
            time.sleep(1)
            if not all(pids):
                os._exit(0)
            for pid in pids:
                os.waitpid(pid, 0)
            return {"held": len(held)}
        """
    ).record
    assert record.ending is Ending.RETURNED
    assert 120 * MEGABYTE < record.peak_bytes < 300 * MEGABYTE


@forked_alone
def test_processes_are_limited(attempt: Attempt, place: RunLocation) -> None:
    few = replace(place, limits=replace(place.limits, processes=20))
    body = """
        import os, time
        def baseline():
            for _ in range(100):
                if os.fork() == 0:
                    time.sleep(600)
            time.sleep(600)
    """
    assert attempt(body, place=few).record.ending is Ending.OVER_PROCESSES


@forked_alone
def test_a_file_can_grow_only_so_far(attempt: Attempt, place: RunLocation) -> None:
    small = replace(place, limits=replace(place.limits, file_bytes=MEGABYTE))
    body = "def baseline():\n    open('large', 'wb').write(bytes(2 << 20))"
    record = attempt(body, place=small).record
    assert record.raised is not None
    assert record.raised.message.startswith("[Errno 27]")


@forked_alone
def test_a_flood_is_cut_in_its_middle_and_the_cut_is_counted(attempt: Attempt, place: RunLocation) -> None:
    body = """
        import sys
        def baseline():
            print("the first line")
            for number in range(20000):
                print(number, "x" * 100)
            print("the last line", file=sys.stderr)
            return {"a": 1}
    """
    done = attempt(body, place=replace(place, limits=replace(place.limits, log_bytes=10_000)))
    assert done.log.startswith("the first line\n0 xx")
    assert done.log.endswith("the last line\n")
    assert f"[... {done.record.log_cut_bytes} bytes cut ...]" in done.log
    assert done.record.log_cut_bytes > 2 * MEGABYTE
    assert len(done.log) < 10_100


@forked_alone
def test_a_log_that_is_no_text_is_kept_readable(attempt: Attempt) -> None:
    done = attempt("import os\ndef baseline():\n    os.write(1, b'\\xff\\xfe ok')\n    return {'a': 1}")
    assert done.log.endswith(" ok")


@forked_alone
def test_what_no_database_takes_is_replaced(attempt: Attempt) -> None:
    done = attempt("def baseline():\n    print('a\\0b')\n    return {'nul': 'a\\0b', 'half\\ud800': '\\udc80'}")
    assert done.log == "a\N{REPLACEMENT CHARACTER}b\n"
    assert done.record.observed == {"nul": "a\N{REPLACEMENT CHARACTER}b", "half?": "?"}


def test_processes_that_an_arm_spawns_find_its_functions(attempt: Attempt) -> None:
    body = """
        import multiprocessing
        def double(value):
            return 2 * value
        def baseline():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return {"doubled": pool.map(double, [1, 2])}
    """
    assert attempt(body).record.observed == {"doubled": "[2, 4]"}


def test_nothing_an_arm_starts_lives_on(attempt: Attempt, tmp_path: Path) -> None:
    """A daemon in a session of its own, a process that ignores every signal, and one that forks while it is killed."""
    body = """
        import os, signal, subprocess, sys, time
        def baseline():
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(600)
                os._exit(0)
            subprocess.Popen([sys.executable, "-c", "import signal, time\\n"
                "for n in range(1, 32):\\n"
                "    n in (9, 19) or signal.signal(n, signal.SIG_IGN)\\n"
                "time.sleep(600)"], start_new_session=True)
            subprocess.Popen([sys.executable, "-c", "import os, time\\n"
                "for _ in range(200):\\n"
                "    os.fork() or (time.sleep(600), os._exit(0))\\n"
                "    time.sleep(0.005)"], start_new_session=True)
            time.sleep(0.2)
            return {"a": 1}
    """
    done = attempt(body)
    assert done.record.ending is Ending.RETURNED
    assert survivors(tmp_path) == []


def test_an_attempt_whose_supervisor_is_killed_is_trouble_and_leaves_nothing(
    attempt: Attempt, place: RunLocation, tmp_path: Path
) -> None:
    """Where the kernel lets an arm see its supervisor at all."""
    body = """
        import os, signal, subprocess, time
        def baseline():
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
    """
    record = attempt(body, place=replace(place, sandbox_spec=SandboxSpec())).record
    assert record.ending is Ending.NOT_STARTED
    assert record.trouble is not None
    assert record.trouble.code is TroubleCode.HARNESS
    assert eventually(lambda: survivors(tmp_path) == [])


@forked_alone
def test_an_arm_that_is_cancelled_at_once_ends_too(attempt: Attempt) -> None:
    assert attempt(HANG.format(first=""), is_cancelled=lambda: True).record.ending is Ending.CANCELLED


def test_an_arm_that_is_cancelled_ends_soon(attempt: Attempt) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()
    record = attempt(HANG.format(first=""), is_cancelled=cancelled.is_set).record
    assert record.ending is Ending.CANCELLED
    assert time.monotonic() - began < PATIENCE_S


ENVIRONMENT = """
    import os, pathlib
    def baseline():
        for name, value in sorted(os.environ.items()):
            print(f"{name}={value}")
        try:
            parent = pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes().decode()
        except OSError:
            parent = ""
        return {"parent": parent.replace("\\0", " ")}
"""


def test_an_arm_sees_a_few_variables_and_no_secret(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KNOWNGOOD_DATABASE_URL", "HF_TOKEN", "UV_INDEX", "PIP_INDEX_URL", "PYTHONPATH", "AWS_SECRET_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.delenv("CXX", raising=False)
    done = attempt(ENVIRONMENT)
    names = {line.partition("=")[0] for line in done.log.splitlines()}
    own = {"HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR"}
    fixed = {"PATH", "LANG", "TZ", "USER", "LOGNAME", "PYTHONNOUSERSITE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}
    assert own | fixed <= names
    assert names <= own | fixed | {"LD_LIBRARY_PATH", "CC", "CUDA_HOME", "CUDA_PATH", "LC_CTYPE"}
    assert "hunter2" not in done.log
    assert "hunter2" not in done.record.observed["parent"]


def test_the_gpu_is_hidden_unless_one_is_given(place: RunLocation, tmp_path: Path) -> None:
    assert arm_environment(place, tmp_path, {})["CUDA_VISIBLE_DEVICES"] == ""
    assert arm_environment(replace(place, gpu="3"), tmp_path, {})["CUDA_VISIBLE_DEVICES"] == "3"


def test_the_builds_own_programs_come_first(place: RunLocation, tmp_path: Path) -> None:
    path = arm_environment(place, tmp_path, {})["PATH"].split(os.pathsep)
    assert path[0] == str(place.python.parent)


FOLDERS = """
    import os, pathlib, tempfile
    def baseline():
        found = {name: os.environ[name] for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        found["tmp"] = tempfile.gettempdir()
        found["here"] = os.getcwd()
        filled = [path for path in found.values() if "home" in path and os.listdir(path)]
        pathlib.Path(found["HOME"], "left").write_text("for the next one")
        # Backwards, because evidence names this host's own paths by what they are.
        return {**{name: path[::-1] for name, path in found.items()}, "filled": len(filled)}
"""


def test_every_attempt_has_fresh_folders_that_are_gone_afterwards(attempt: Attempt, tmp_path: Path) -> None:
    first, second = attempt(FOLDERS).record.observed, attempt(FOLDERS).record.observed
    assert first["filled"] == second["filled"] == "0"
    assert all(first[name] != second[name] for name in first if name != "filled")
    assert all(value[::-1].startswith(str(tmp_path)) for name, value in first.items() if name != "filled")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_an_arm_reads_nothing_from_standard_input(attempt: Attempt) -> None:
    assert (
        attempt("import sys\ndef baseline(): return {'read': repr(sys.stdin.read())}").record.observed["read"] == "''"
    )


def test_an_arm_has_a_working_loopback_and_no_other_network(attempt: Attempt) -> None:
    body = """
        import socket
        def baseline():
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname(), timeout=5).close()
            return {"interfaces": " ".join(name for _, name in socket.if_nameindex())}
    """
    record = attempt(body).record
    if "no-network" not in record.sandbox:
        pytest.skip("this kernel gives no network namespace to tests")
    assert record.observed["interfaces"] == "lo"


@forked_alone
def test_the_network_stays_where_it_is_wanted(attempt: Attempt, place: RunLocation) -> None:
    body = "import socket\ndef baseline(): return {'seen': len(socket.if_nameindex())}"
    record = attempt(body, place=replace(place, sandbox_spec=OPEN)).record
    assert "no-network" not in record.sandbox
    assert record.observed["seen"] == str(len(socket.if_nameindex()))


def test_the_sandbox_says_how_an_arm_was_started(attempt: Attempt, mode: str) -> None:
    assert ("forked" in attempt("def baseline(): return {'a': 1}").record.sandbox) == (mode == "forked")


def test_an_arm_with_variables_of_its_own_never_comes_from_a_fork_server(
    place: RunLocation, fork_server: ForkServer, tmp_path: Path
) -> None:
    body = "import sys\ndef baseline(): return {'fixed': not sys.flags.hash_randomization}"
    record = run_body(body, tmp_path, place, fork_server=fork_server, env={"PYTHONHASHSEED": "0"}).record
    assert record.observed == {"fixed": "True"}
    assert "forked" not in record.sandbox


def test_forked_arms_draw_chance_anew(place: RunLocation, fork_server: ForkServer, tmp_path: Path) -> None:
    body = "import random\ndef baseline(): return {'drawn': random.random()}"
    drawn = {run_body(body, tmp_path, place, fork_server=fork_server).record.observed["drawn"] for _ in range(3)}
    assert len(drawn) == 3


def test_a_fork_server_that_an_arm_wrote_to_is_not_used_again(place: RunLocation, tmp_path: Path) -> None:
    place = replace(place, sandbox_spec=SandboxSpec())
    body = "import pathlib\ndef baseline(to): pathlib.Path(to, 'cached').touch(); return {'a': 1}"
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(place, folder) as own:
        records = [
            run_body(body, tmp_path, place, fork_server=own, params={"to": str(folder / "inductor")}).record
            for _ in range(2)
        ]
    assert ["forked" in record.sandbox for record in records] == [True, False]


def with_torch_that_also(does: str, place: RunLocation, toy_python: Path, folder: Path) -> RunLocation:
    """The place with a copy of the toy environment whose torch does more while it is imported."""
    environment = folder / "changed"
    shutil.copytree(toy_python.parents[1], environment, symlinks=True)
    site = next(environment.glob("lib/*/site-packages"))
    with (site / "torch" / "__init__.py").open("a") as module:
        module.write(does)
    return replace(place, python=environment / "bin" / "python", sandbox_spec=SandboxSpec())


def test_an_arm_that_is_cancelled_while_it_is_forked_hears_of_it(
    place: RunLocation, tmp_path: Path, toy_python: Path
) -> None:
    """A child has its parent's handlers until it has its own, here for a while: the signal was lost in them."""
    slow = "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(0.3))\n"
    slow_place = with_torch_that_also(slow, place, toy_python, tmp_path)
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(slow_place, folder) as own:
        first = run_body("def baseline(): return {'a': 1}", tmp_path, slow_place, fork_server=own).record
        second = run_body(
            HANG.format(first=""), tmp_path, slow_place, fork_server=own, is_cancelled=lambda: True
        ).record
    assert (first.ending, second.ending) == (Ending.RETURNED, Ending.CANCELLED)
    assert (second.signal, "forked" in second.sandbox) == ("SIGTERM", True)


def test_a_fork_server_that_has_threads_is_not_forked(place: RunLocation, tmp_path: Path, toy_python: Path) -> None:
    busy = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    threaded = with_torch_that_also(busy, place, toy_python, tmp_path)
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(threaded, folder) as own:
        record = run_body("def baseline(): return {'a': 1}", tmp_path, threaded, fork_server=own).record
    assert record.ending is Ending.RETURNED
    assert "forked" not in record.sandbox


@pytest.mark.parametrize(("gpu", "is_forked"), [("", True), ("0", False)], ids=["no GPU is shown", "a GPU is shown"])
def test_arms_that_see_a_gpu_never_come_from_a_fork_server_that_asked_cuda(
    place: RunLocation, tmp_path: Path, toy_python: Path, gpu: str, *, is_forked: bool
) -> None:
    """As importing Inductor does since torch 2.7; torch then refuses CUDA to every fork."""
    told = "class _C:\n    _cuda_isInBadFork = staticmethod(lambda: True)\n"
    asked = replace(with_torch_that_also(told, place, toy_python, tmp_path), gpu=gpu)
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(asked, folder) as own:
        record = run_body("def baseline(): return {'a': 1}", tmp_path, asked, fork_server=own).record
        assert psutil.pid_exists(own.pid) is is_forked or psutil.Process(own.pid).status() == psutil.STATUS_ZOMBIE
    assert record.ending is Ending.RETURNED
    assert ("forked" in record.sandbox) is is_forked


def test_a_fork_server_that_dies_at_work_is_trouble_and_no_cancellation(place: RunLocation, tmp_path: Path) -> None:
    place = replace(place, sandbox_spec=SandboxSpec())
    body = "import os, time\ndef baseline(pid): os.kill(pid, 9); time.sleep(600)"
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(place, folder) as own:
        record = run_body(body, tmp_path, place, fork_server=own, params={"pid": own.pid}).record
    assert record.ending is Ending.NOT_STARTED
    assert record.trouble is not None
    assert record.trouble.code is TroubleCode.HARNESS
    assert eventually(lambda: survivors(tmp_path) == [])


def test_a_fork_server_that_dies_is_done_without(place: RunLocation, tmp_path: Path) -> None:
    body = "def baseline(): return {'a': 1}"
    with scratch_folder(tmp_path / "fork-server") as folder, ForkServer(place, folder) as own:
        first = run_body(body, tmp_path, place, fork_server=own).record
        os.kill(own.pid, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(own.pid)], timeout=PATIENCE_S)
        second = run_body(body, tmp_path, place, fork_server=own).record
    assert ["forked" in record.sandbox for record in (first, second)] == [True, False]


PROBES = {
    "nothing": ("pass", {"eager": 0, "dynamo_graph": 0}),
    "called": ("torch.add(1, 2); torch.total([1])", {"eager": 2, "dynamo_graph": 0}),
    "called and compiled": (
        "torch.add(1, 2); torch.compile(torch.total, mode='m')([1])",
        {"eager": 0, "dynamo_graph": 1},
    ),
    "operator called": ("OpOverload('mini::double', abs)(-1)", {"operator:mini::double": 1}),
    "packet called": ("OpOverloadPacket('mini::double', abs)(-1)", {"operator:mini::double": 1}),
    "other operator called": ("OpOverload('mini::triple', abs)(-1)", {"operator:mini::double": 0}),
    "only traced": ("OpOverload('mini::double', repr)(FakeTensor())", {"operator:mini::double": 0}),
    "traced in a list": ("OpOverload('mini::double', repr)([FakeTensor()])", {"operator:mini::double": 0}),
    "traced by name": ("OpOverload('mini::double', dict)(of=FakeTensor())", {"operator:mini::double": 0}),
    "launched": ("_jit().run(1, grid=(1,), warmup=False)", {"triton_launch": 1}),
    "only warmed up": ("_jit().run(1, grid=(1,), warmup=True)", {"triton_launch": 0}),
    "kernel compiled": ("_leave('TRITON_CACHE_DIR', 'triton_poi_fused_0.json')", {"inductor_triton": 1}),
    "group file": ("_leave('TRITON_CACHE_DIR', '__grp__triton_poi_fused_0.json')", {"inductor_triton": 0}),
    "own kernel compiled": ("_leave('TRITON_CACHE_DIR', 'my_kernel.json')", {"inductor_triton": 0}),
    "object loaded": ("_load('TORCHINDUCTOR_CACHE_DIR')", {"inductor_cpp": 1}),
    "object beside": ("_load('TORCH_EXTENSIONS_DIR')", {"inductor_cpp": 0}),
    "object not loaded": ("_leave('TORCHINDUCTOR_CACHE_DIR', 'isa.so')", {"inductor_cpp": 0}),
    "no XLA": ("pass", {"xla_compile": 0}),
}

PROBE_SCRIPT = """
    import ctypes, os, pathlib, shutil, sys
    import torch
    from torch._ops import OpOverload, OpOverloadPacket

    class FakeTensor:
        pass

    def _jit():
        from triton.runtime.jit import JITFunction
        return JITFunction()

    def _leave(variable, name):
        folder = pathlib.Path(os.environ[variable], "ab")
        folder.mkdir()
        folder.joinpath(name).touch()

    def _load(variable):
        # Any object will do; this one is there wherever Python is.
        import _ctypes
        copy = pathlib.Path(os.environ[variable], "kernel.so")
        shutil.copy(_ctypes.__file__, copy)
        ctypes.CDLL(str(copy))

    def baseline():
        {what}
        return {{"a": 1}}
"""


@forked_alone
@pytest.mark.parametrize("what", PROBES)
def test_probes_count_what_happened_and_nothing_else(attempt: Attempt, what: str) -> None:
    code, expected = PROBES[what]
    record = attempt(PROBE_SCRIPT.format(what=code), exercises=tuple(expected)).record
    assert record.ending is Ending.RETURNED
    assert record.probes == expected


@forked_alone
def test_a_probe_nobody_knows_counts_nothing(attempt: Attempt) -> None:
    assert attempt("def baseline(): return {'a': 1}", exercises=("quantum",)).record.probes == {"quantum": 0}


SLOW_OR_COUNTING = {"toy-hangs-1", "toy-flaky-1", "toy-eats-memory-1"}
ISSUES = [issue for issue in read_catalogue([TOYS]).issues if issue.id not in SLOW_OR_COUNTING]
ONE_OF_EACH_ENDING = {"toy-passes-1", "toy-fails-otherwise-1", "toy-crashes-1", "toy-exits-silently-1", "toy-tricks-1"}


@pytest.mark.parametrize(
    "issue",
    [
        pytest.param(issue, id=issue.id, marks=() if issue.id in ONE_OF_EACH_ENDING else pytest.mark.soak)
        for issue in ISSUES
    ],
)
def test_forked_and_fresh_arms_leave_the_same_evidence(
    issue: Issue, place: RunLocation, fork_server: ForkServer, tmp_path: Path
) -> None:
    arm = issue.arm(BASELINE)
    spec = ArmSpec("a", issue.id, arm.id, "default", 1, "b", "s", {}, arm.env, arm.exercises, issue.timeout_s)
    records = []
    for source in (None, fork_server):
        with scratch_folder(tmp_path / "scratch") as scratch:
            done = execute(
                spec, issue.script, place=place, scratch=scratch, fork_server=source, is_cancelled=lambda: False
            )
            records.append(done.record)
    fresh, forked = records
    assert ("forked" in fresh.sandbox, "forked" in forked.sandbox) == (False, True)
    for name in ("ending", "exit_code", "signal", "observed", "probes", "imported", "threads", "trouble"):
        assert getattr(fresh, name) == getattr(forked, name), name
    assert (fresh.raised and fresh.raised.kind) == (forked.raised and forked.raised.kind)
    assert (fresh.raised and fresh.raised.message) == (forked.raised and forked.raised.message)
    assert survivors(tmp_path) == []


def test_folders_that_nobody_holds_are_swept_away(tmp_path: Path) -> None:
    left, young = tmp_path / "kg-left", tmp_path / "kg-young"
    for folder in (left, young):
        folder.mkdir()
    with scratch_folder(tmp_path) as held:
        for folder in (left, held):
            os.utime(folder, (0, 0))
        sweep_scratch(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([held, young])
    sweep_scratch(tmp_path / "never made")
