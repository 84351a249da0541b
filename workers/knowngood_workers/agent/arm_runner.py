"""Run one arm in a process of its own and bring back what was seen: a RunRecord and its log.

Here: the arm's folder, its environment variables, the talk with supervisor and harness, and the fork server. Not here:
which arms to run (agent), what may stay alive (supervisor), what an ending means (the domain).

What is fresh for every attempt, and why: Inductor's and Triton's caches, TMPDIR and HOME. A shared Inductor cache gave
a false pass (its key leaves the thread count out), and switched-off caches hide real bugs (both measured 2026-11); so
the caches stand at their defaults, in folders that no other attempt has seen.
"""

import contextlib
import fcntl
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, cast

from knowngood.domain.measuring.job import ArmSpec
from knowngood.domain.verdicts.outcome import (
    Ending,
    Raised,
    RunRecord,
    SeenPath,
    Trouble,
    TroubleCode,
)
from knowngood_workers.agent.sandbox_policy import MOUNT, SandboxSpec, programs_behind
from knowngood_workers.common.files import read_regular, remove_tree
from knowngood_workers.standalone import cgroup, supervisor
from knowngood_workers.standalone.sandbox import is_apart

_SUPERVISOR = Path(supervisor.__file__)
_HARNESS = _SUPERVISOR.with_name("harness.py")

HARNESS = 3
"""What its attempts are marked with: raised when it proves more than before. 0 is what marked nothing."""

# What an arm may know of the worker's own environment: where programs, libraries and compilers are. Everything else is
# left behind, tokens and addresses above all.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CC", "CXX", "CUDA_HOME", "CUDA_PATH")

# What every attempt has anew: the variable and its folder.
_FRESH = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "XDG_CACHE_HOME": "cache",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
}

_USER = "knowngood"  # torch asks for a name, and a container's user may have none

_FORK_SERVER_START_S = 180.0
_REPORT_S = 90.0  # what a supervisor is given beyond an arm's own time to stop, reap and report
_POLL_S = 0.1
_STALE_S = 60.0
_UNKNOWN_S = 1.0  # a host may have processes without any environment
_LOOK_AGAIN_S = 0.02

_OWN_END = frozenset({Ending.RETURNED, Ending.RAISED})
_TEARDOWN_BYTES = 16 * 1024  # of what a forked arm wrote while its interpreter was torn down (see harness)
_MOST = 1 << 53  # what every reader of JSON takes for a number

_FORKABLE = {"threads": 1, "children": 0, "gpu_devices": 0, "asked_cuda": 0}

CANCELLED = "cancelled"
_REASONS = {
    "timed_out": Ending.TIMED_OUT,
    "over_memory": Ending.OVER_MEMORY,
    "over_processes": Ending.OVER_PROCESSES,
    "over_disk": Ending.OVER_DISK,
}


@dataclass(frozen=True)
class Limits:
    """Resource limits of one attempt. `grace_s` lies between being asked to end and being killed."""

    memory_bytes: int
    processes: int = 512
    log_bytes: int = 512 * 1024
    file_bytes: int = 16 * 1024**3
    scratch_bytes: int = 32 * 1024**3
    grace_s: float = 2.0


@dataclass(frozen=True)
class RunLocation:
    """Where attempts run: the interpreter of the build, the packages to report on, the GPU (empty: none is shown), what
    shuts them off from the host, the interpreter that an environment of ours was made of, the control group below which
    each gets one of its own (empty: the kernel limits none), and the variables of their hardware class.
    """

    python: Path
    packages: tuple[str, ...]
    limits: Limits
    gpu: str = ""
    sandbox_spec: SandboxSpec = field(default_factory=SandboxSpec)
    interpreter: Path | None = None
    groups: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Execution:
    """`log` is what the process wrote: UTF-8, the middle cut where it was longer than the limit."""

    record: RunRecord
    log: str


@contextlib.contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A folder for one attempt with all that must be fresh in it, locked while in use and gone afterwards.

    Its name is short: sockets are made below it, and the path of one may have 107 characters.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="kg-", dir=root.resolve()))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in (*_FRESH.values(), MOUNT):
            (folder / name).mkdir()
        yield folder
    finally:
        remove_tree(folder)
        os.close(lock)


def sweep_scratch(root: Path) -> None:
    """Remove what was left by agents that were killed: folders whose lock nobody holds."""
    for folder in root.iterdir() if root.exists() else ():
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if abs(time.time() - os.fstat(lock).st_mtime) > _STALE_S:  # an arm may have set it to the future
                    remove_tree(folder)
            finally:
                os.close(lock)


def arm_environment(place: RunLocation, scratch: Path, own: Mapping[str, str]) -> dict[str, str]:
    """All variables of an arm: a few of the worker's, the fresh places, the GPU it may see, the arm's `own` last."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    path = [str(place.python.parent), passed.get("PATH", os.defpath)]
    return {
        **passed,
        "PATH": os.pathsep.join(path),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "USER": _USER,
        "LOGNAME": _USER,
        "PYTHONNOUSERSITE": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of NVML, by which the worker names GPUs
        "CUDA_VISIBLE_DEVICES": place.gpu,
        **{name: str(scratch / folder) for name, folder in _FRESH.items()},
        **place.env,
        **own,
    }


class ForkServer(contextlib.AbstractContextManager["ForkServer"]):
    """A process of the build that has imported torch and Inductor, and forks arms. It is waited for when first needed.

    Where it turns out unfit (a thread, a child, a GPU opened), it ends, `connect` says no and arms start fresh. It also
    ends when its channel closes, so with this process too.
    """

    def __init__(self, place: RunLocation, scratch: Path) -> None:
        self.scratch = scratch  # its own home, caches and temporary files, of which each arm takes a copy
        self._shows_gpu = bool(place.gpu)
        self._lock = threading.Lock()
        self._is_fit: bool | None = None
        self._files: set[str] = set()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [place.python, _HARNESS, "--fork-server", str(theirs.fileno()), _SUPERVISOR, scratch],
                env=arm_environment(place, scratch, {}),
                cwd=scratch,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.pid = self._process.pid

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def connect(self, theirs: socket.socket, is_cancelled: Callable[[], bool]) -> bool:
        """Have an arm forked that speaks through `theirs`; False where this fork server cannot be used."""
        with self._lock:
            if self._is_fit is None:
                self._is_fit = self._judge_fitness(self._read_fitness(is_cancelled))
                self._files = self._list_files()
            # An arm that left something in the fork server's own folders would share it with later ones: fork no more.
            self._is_fit = self._is_fit and self._list_files() == self._files
            if self._is_fit:
                try:
                    socket.send_fds(self._channel, [b"!"], [theirs.fileno()])
                except OSError:
                    self._is_fit = False
            return self._is_fit

    def _judge_fitness(self, fitness: Mapping[str, int] | None) -> bool:
        """Judge it, and end an unfit one: it may hold a GPU open. `asked_cuda` counts only where a GPU is shown."""
        asked_cuda = 0 if self._shows_gpu or fitness is None else fitness["asked_cuda"]
        is_fit = fitness == {**_FORKABLE, "asked_cuda": asked_cuda}
        if not is_fit:
            self._process.kill()
        return is_fit

    def _read_fitness(self, is_cancelled: Callable[[], bool]) -> Mapping[str, int] | None:
        """The fork server's own counts; None where it died, was too slow, or nobody waits for it any more."""
        until = time.monotonic() + _FORK_SERVER_START_S
        while time.monotonic() < until and not is_cancelled():
            if select.select([self._channel], [], [], _POLL_S)[0]:
                return cast("dict[str, int] | None", json.loads(self._channel.recv(4096) or b"null"))
        return None

    def _list_files(self) -> set[str]:
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.scratch) for name in names}  # noqa: PTH118


def execute(
    arm: ArmSpec,
    script: str,
    *,
    place: RunLocation,
    scratch: Path,
    fork_server: ForkServer | None,
    is_cancelled: Callable[[], bool],
) -> Execution:
    """Make one attempt in `scratch` and say how it ended. Whatever it started is dead when this returns.

    Arms with variables of their own never come from a fork server: torch reads some of them while it is imported.
    """
    path = scratch / "repro.py"
    path.write_text(script, encoding="utf-8")
    ours, theirs = socket.socketpair()
    with ours, cgroup.group_for_arm(place.groups, place.limits.memory_bytes, place.sandbox_spec.tasks) as group:
        order = {**_order(arm, path, place, scratch, fork_server), "group": group}
        with theirs:
            is_forked = fork_server is not None and not arm.env and fork_server.connect(theirs, is_cancelled)
            started = None if is_forked else _start_supervisor(theirs)
        report = _exchange(ours, order, arm, is_cancelled)
    if started is not None:
        if report is None:
            started.kill()
        started.wait()
    if report is None:
        _kill_by_environment(scratch)
        lost = f"the supervisor of this attempt ({arm.arm} of {arm.issue}) died before it could report; run it again"
        trouble = Trouble(TroubleCode.HARNESS, lost)
        return Execution(RunRecord(Ending.NOT_STARTED, trouble=trouble), log="")
    report = _without_host_paths(report, place, scratch)
    observations, foreign = _observations(report["observations"], order["nonce"])
    record, log = _record(report, observations, foreign), report["log"]
    if is_forked:
        record = replace(record, sandbox=(*record.sandbox, "forked"))
        log += "" if record.ending in _OWN_END else read_regular(scratch / "teardown.txt", _TEARDOWN_BYTES)
    return Execution(record, _storable(log))


def _order(
    arm: ArmSpec, script: Path, place: RunLocation, scratch: Path, fork_server: ForkServer | None
) -> dict[str, Any]:
    """The order for supervisor and harness, as JSON."""
    also = () if fork_server is None else (fork_server.scratch,)
    return {
        "nonce": secrets.token_hex(16),
        "argv": [str(place.python), str(_HARNESS), "--arm"],
        "env": arm_environment(place, scratch, arm.env),
        "cwd": str(scratch),
        "limits": {"timeout_s": arm.timeout_s, **asdict(place.limits)},
        "sandbox": place.sandbox_spec.around(scratch, also),
        "arm": {
            "script": str(script),
            "function": arm.arm,
            "params": dict(arm.params),
            "exercises": list(arm.exercises),
            "device": arm.device,
            "packages": list(place.packages),
            "dump_signal": int(supervisor.DUMP_SIGNAL),
            "is_private": not is_apart(place.sandbox_spec.steps),
        },
    }


def _start_supervisor(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """A supervisor of the worker's own Python, which knows nothing but what it is told."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _SUPERVISOR, str(theirs.fileno())],
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        cwd="/",
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def _exchange(
    supervisor_socket: socket.socket, order: Mapping[str, Any], arm: ArmSpec, is_cancelled: Callable[[], bool]
) -> dict[str, Any] | None:
    """Give the order, pass a cancellation on, take the report.

    None where there is none, or none that counts: a supervisor that lost its fork server stops its arm without being
    asked to.
    """
    received = bytearray()
    is_told = False
    until = time.monotonic() + arm.timeout_s + _REPORT_S
    try:
        supervisor_socket.sendall(json.dumps(order).encode() + b"\n")
        while time.monotonic() < until:
            if is_cancelled() and not is_told:
                supervisor_socket.sendall(b"cancel\n")
                is_told = True
            if select.select([supervisor_socket], [], [], _POLL_S)[0]:
                data = supervisor_socket.recv(1 << 20)
                if not data:
                    break
                received += data
    except OSError:
        return None
    try:
        report: dict[str, Any] = json.loads(received)
    except json.JSONDecodeError:
        return None
    return None if report["reason"] == CANCELLED and not is_told else report


def _kill_by_environment(scratch: Path) -> None:
    """Without its supervisor, what an arm left is known by its environment: every process of it has the folder's
    name. Until a look finds none: others may be started meanwhile, and while the kernel loads a program its process
    has no environment for a moment.
    """
    until = time.monotonic() + _UNKNOWN_S
    while _kill_marked(os.fsencode(scratch)) and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN_S)


def _kill_marked(mark: bytes) -> bool:
    """Kill every process with this mark. Returns whether there was one, or one whose mark cannot be read yet."""
    is_there = False
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes()
            if mark in environment:
                os.kill(int(folder.name), signal.SIGKILL)
            is_there = is_there or mark in environment or (not environment and bool((folder / "exe").readlink()))
    return is_there


# What each kind of observation holds. The arm's process can write to the pipe whatever it likes, as it can observe
# whatever it likes; what is no observation must not end the agent, which would take the other arms with it.
_OBSERVATION_FIELDS: Mapping[str, Mapping[str, type]] = {
    "imported": {"versions": dict, "threads": int},
    "started": {},
    "probe": {"name": str},
    "probes": {"counts": dict, "paths": list},
    "used": {"versions": dict},
    "returned": {"observed": dict},
    "raised": {"kind": str, "message": str, "text": str, "marked": str},
    "left": {"code": str},
    "unable": {"why": str},
}


_PATH_WORDS = ("kind", "name", "backend")
_PATH_COUNTS = tuple(path_field.name for path_field in fields(SeenPath) if path_field.name not in _PATH_WORDS)


def _observations(text: str, nonce: str) -> tuple[list[dict[str, Any]], int]:
    """Parse the observations, one a line. Returns them, and how many lines are not the harness's. The last line of a
    process that was killed may be cut off; an observation of no known shape is skipped.
    """
    observations, foreign = [], 0
    for line in text.split("\n")[:-1]:
        observation = _parsed(line)
        if not isinstance(observation, dict) or observation.get("nonce") != nonce:
            foreign += 1
        elif _is_observation(observation):
            observations.append(_storable(observation))
    return observations, foreign


def _parsed(line: str) -> object:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _is_observation(observation: Mapping[str, Any]) -> bool:
    if not isinstance(observation.get("at"), float) or not isfinite(observation["at"]):
        return False
    shape = _OBSERVATION_FIELDS.get(observation["saw"]) if isinstance(observation.get("saw"), str) else None
    if shape is None or not all(isinstance(observation.get(name), kind) for name, kind in shape.items()):
        return False
    paths = observation.get("paths", [])
    if not all(isinstance(path, dict) and path.keys() == {*_PATH_WORDS, *_PATH_COUNTS} for path in paths):
        return False
    texts = [*observation.get("versions", {}).values(), *observation.get("observed", {}).values()]
    texts += [path[word] for path in paths for word in _PATH_WORDS]
    numbers = [observation.get("threads", 0), *observation.get("counts", {}).values()]
    numbers += [path[count] for path in paths for count in _PATH_COUNTS]
    return all(isinstance(text, str) for text in texts) and all(
        type(number) is int and 0 <= number < _MOST for number in numbers
    )


def _storable(value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """The same without what no database and no JSON reader takes: NUL, and halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {_storable(name): _storable(inner) for name, inner in value.items()}
    return [_storable(inner) for inner in value] if isinstance(value, list) else value


def _without_host_paths(report: Mapping[str, Any], place: RunLocation, scratch: Path) -> dict[str, Any]:
    """The report with this host's own paths by name: evidence is shipped, and reads alike wherever it was made."""
    names = {  # the later one stands where two are the same: an interpreter of /usr has no home of its own
        str(_interpreter_home(place)): "$PYTHON",
        str(place.python.parents[1]): "$ENVIRONMENT",
        str(_HARNESS.parent): "$WORKER",
        str(scratch): "$SCRATCH",
    }

    def named(text: str) -> str:
        for path in sorted(names, key=len, reverse=True):
            text = text.replace(path, names[path])
        return text

    return {**report, "log": named(report["log"]), "observations": named(report["observations"])}


def _interpreter_home(place: RunLocation) -> Path:
    """Where the environment's interpreter is installed; of one that is not ours, as its pyvenv.cfg says. /usr tells
    nothing.
    """
    environment = place.python.parents[1]
    programs = programs_behind(place.python) if place.interpreter is None else place.interpreter.parent
    return environment if programs is None or programs.parent == Path("/usr") else programs.parent


def _record(report: Mapping[str, Any], observations: Sequence[Mapping[str, Any]], foreign: int) -> RunRecord:
    saw = {observation["saw"]: observation for observation in observations}
    imported, returned = saw.get("imported", {}), saw.get("returned", {})
    own_s = observations[-1]["at"] - imported["at"] if imported else 0.0
    first_seen = {observation["name"]: 1 for observation in observations if observation["saw"] == "probe"}
    return RunRecord(
        ending=_ending(report, saw),
        exit_code=report["exit_code"],
        signal=report["signal"],
        observed=returned.get("observed", {}),
        probes=saw["probes"]["counts"] if "probes" in saw else first_seen,
        raised=Raised(**{name: saw["raised"][name] for name in _OBSERVATION_FIELDS["raised"]})
        if "raised" in saw
        else None,
        trouble=_trouble(report, saw, foreign),
        imported={**imported.get("versions", {}), **saw.get("used", {}).get("versions", {})},
        wall_s=round(report["wall_s"], 3),
        own_s=round(own_s, 3),
        peak_bytes=report["peak_bytes"],
        threads=imported.get("threads", 0),
        sandbox=tuple(report["sandbox"]),
        log_cut_bytes=report["log_cut_bytes"],
        harness=HARNESS,
        seen=tuple(SeenPath(**path) for path in saw["probes"]["paths"]) if "probes" in saw else (),
    )


def _ending(report: Mapping[str, Any], saw: Mapping[str, Mapping[str, Any]]) -> Ending:
    """An exception that was seen is the arm's own end, whatever became of the process afterwards; a return is not: a
    process that dies or hangs on its way out has died or hung.
    """
    if report["reason"] == CANCELLED:
        return Ending.CANCELLED
    if "unable" in saw:
        return Ending.NOT_STARTED
    if "raised" in saw:
        return Ending.RAISED
    if report["reason"]:
        return _REASONS[report["reason"]]
    if report["signal"]:
        return Ending.SIGNALLED
    return Ending.RETURNED if "returned" in saw else Ending.EXITED


def _trouble(report: Mapping[str, Any], saw: Mapping[str, Mapping[str, Any]], foreign: int) -> Trouble | None:
    if foreign:
        return Trouble(
            TroubleCode.HARNESS,
            f"{foreign} {'line' if foreign == 1 else 'lines'} that the harness did not write stood among what it saw: "
            "the script, or something that it runs, writes to a descriptor that is not its own",
        )
    if "unable" in saw:
        return Trouble(TroubleCode.HARNESS, f"the arm's process could not be set up: {saw['unable']['why']}")
    if report["survivors"]:
        return Trouble(
            TroubleCode.HARNESS,
            f"{report['survivors']} processes of this attempt could not be killed; look at the machine (a lost GPU?)",
        )
    return None
