# ruff: noqa: PTH110, PTH116, PTH120, PTH123, PTH208
# Looked at ten times a second, /proc is read by plain calls: pathlib's share would show in the timings.
"""Supervise one arm: limits while it runs, evidence of how it ended, and nothing of it left alive afterwards.

Standard library only, Python 3.9 and newer: it runs either as its own process of the worker's Python (`supervisor.py
FD`) or inside a child that a fork server forked with the Python of the build under test. Not here: what the evidence
means.

Its starter speaks to it over one connected socket: the order comes in as one line of JSON, a line `cancel` may follow,
the report goes out as one JSON document, then the socket closes. End of file on it means that the starter is gone.

Why a process of its own for each arm (measured 2026-11): compile pools start grandchildren in sessions of their own,
which outlive both their parent and a killed worker. The supervisor is the reaper of everything below it, so that what
remains can be found and killed, whatever it did to its session, its process group or its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import resource
import selectors
import signal
import socket
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from knowngood_workers.standalone import cgroup, sandbox
else:  # by their place: there is no package where the supervisor runs in the build under test
    for _name in ("cgroup", "sandbox"):
        _spec = importlib.util.spec_from_file_location(f"knowngood_{_name}", f"{os.path.dirname(__file__)}/{_name}.py")
        globals()[_name] = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(globals()[_name])

# Free for applications, and neither used by torch nor by Python: the arm answers with the stacks of all its threads.
DUMP_SIGNAL = signal.SIGRTMIN + 7

_ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_SAMPLE_S = 0.1  # how often memory and processes are looked at, as long as a look is cheap
_SAMPLE_SHARE = 20  # a look may take a twentieth of the time at most
_DUMP_S = 0.7  # what a hung process is given to write its stacks, once it has heard that it is to
_DUMP_MOST_S = 10.0  # until it has: on a busy host it waits for a processor, and in the kernel's hands it never hears
_SCRATCH_SHARE = 50  # walking through the scratch folder may take a fiftieth
_SPARE_BYTES = 512 << 20  # what must stay free on its disk, for the worker to say what happened
_DRAIN_S = 5.0  # what is left in the pipes after everything is dead
_REAP_S = 30.0  # a process in the kernel's hands (a lost GPU) may never die: give up, and say so
_OBSERVATIONS_BYTES = 1 << 20
_OPEN_FILES = 65536
_SPARE_FILES = 10000  # and so many more must be possible
_SHARED_BYTES = 16 << 20  # growth of the host's shared memory from which on it is asked whose it is
_PATH_CHARS = 2048
_STEPS = 64
_UNCOUNTABLE = 1 << 62
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IPC_RMID = 0

_page = resource.getpagesize()
_libc = ctypes.CDLL(None, use_errno=True)


def supervise(control: socket.socket, begin: Callable[[dict[str, Any], int], NoReturn]) -> None:
    """Read an order from `control`, run it to its end, and report. Returns once nothing of the arm is alive.

    `begin(order, observations)` is called in the arm's own process and becomes the arm; it may leave by an exception
    that is no `Exception` (a forked arm unwinds to its fork server's outermost frame that way).
    """
    inherited = _plain_files(besides=control.fileno())
    line, is_cancelled = _read_order(control)
    if not line:
        return
    order = json.loads(line)
    adopt_orphans()
    with contextlib.suppress(PermissionError):  # it leads its group already
        os.setsid()
    try:
        reached = ("process", *sandbox.leave(order["sandbox"]))
    except sandbox.Refused as refused:
        _report(control, _refusal(refused, order["nonce"]))
        return
    sandbox.be_private()
    arm = _SupervisedArm(order, control, inherited)
    arm.start(begin)
    if is_cancelled:
        arm.cancel()
    group = (cgroup.CGROUP,) if order["group"] else ()
    _report(control, {**arm.watch(), "sandbox": [*reached, *group]})


def _report(control: socket.socket, report: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(report).encode())
    control.close()


def _refusal(refused: sandbox.Refused, nonce: str) -> dict[str, Any]:
    """The report of an arm that was never started."""
    saw = {"saw": "unable", "at": time.monotonic(), "nonce": nonce, "why": str(refused)}
    return {
        "reason": "",
        **_describe_end(None),
        "wall_s": 0.0,
        "peak_bytes": 0,
        "observations": json.dumps(saw) + "\n",
        "log": "",
        "log_cut_bytes": 0,
        "survivors": 0,
        "sandbox": [],
    }


def _plain_files(besides: int) -> frozenset[int]:
    """Files that a fork server's libraries hold open and its forks need; no folder (a way out) and no socket
    (another's).
    """
    plain = set()
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            mode = os.fstat(fd).st_mode
            if fd != besides and not (stat.S_ISDIR(mode) or stat.S_ISSOCK(mode)):
                plain.add(fd)
    return frozenset(plain)


def _read_order(control: socket.socket) -> tuple[bytes, bool]:
    """The first line, and whether more stood behind it; no line where the starter went away before it was whole."""
    heard = bytearray()
    while b"\n" not in heard:
        data = control.recv(1 << 16)
        if not data:
            return b"", False
        heard += data
    line, _, rest = bytes(heard).partition(b"\n")
    return line, bool(rest)


def adopt_orphans() -> None:
    """From now on what loses its parent below this process becomes its child."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: int, parent: int) -> None:
    """Have the kernel send signal `number` to this process when `parent` dies; end at once where it already has."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class _Log:
    """Log of an arm: the first and the last half of `limit` bytes are kept."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]

    @property
    def cut_bytes(self) -> int:
        return max(self._total - 2 * self._half, 0)

    @property
    def text(self) -> str:
        mark = f"\n[... {self.cut_bytes} bytes cut ...]\n".encode() if self.cut_bytes else b""
        return (bytes(self._head) + mark + bytes(self._tail[-self._half :])).decode("utf-8", "replace")


class _SupervisedArm:
    """One arm, from fork to the death of its last descendant."""

    def __init__(self, order: dict[str, Any], control: socket.socket, inherited: frozenset[int]) -> None:
        self._order = order
        self._inherited = inherited
        self._init = 0  # process 1 of the arm's own namespace, where it has one
        self._limits = order["limits"]
        self._group: str = order["group"]  # where the kernel limits it, or empty
        self._control = control
        self._log = _Log(self._limits["log_bytes"])
        self._observations = bytearray()
        self._log_read, self._log_write = os.pipe()
        self._observed_read, self._observed_write = os.pipe()
        self._wake_read, self._wake_write = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._pid = 0
        self._status: int | None = None
        self._reason = ""
        self._steps: list[tuple[float, Callable[[], None]]] = []
        self._peak_bytes = 0
        self._killed_at: float | None = None
        self._dump_until = 0.0
        self._least_shared = _proc_bytes("meminfo", "Shmem")
        self._known: set[int] = set()
        self._began = int(time.time())
        self._walk_at = time.monotonic() + 10 * _SAMPLE_S
        disk = os.statvfs(order["cwd"])
        self._free_at_start = disk.f_bavail * disk.f_frsize // 2
        self._files_at_start = disk.f_favail // 2

    def start(self, begin: Callable[[dict[str, Any], int], NoReturn]) -> None:
        supervisor = os.getpid()
        self._listen()
        self._started = time.monotonic()
        self._steps.append((self._started + self._limits["timeout_s"], self._time_out))
        spec = self._order["sandbox"]
        # A child answers a signal with this process's handlers until it has its own: one would be lost there.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED_TO_END)
        if sandbox.NAMESPACES in spec["steps"]:
            self._init, _ = sandbox.start_init(spec["mount"])
        self._pid = os.fork()
        if self._pid == 0:
            self._become(begin, supervisor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED_TO_END)
        os.close(self._log_write)
        os.close(self._observed_write)

    def _listen(self) -> None:
        self._wake_write.setblocking(False)  # noqa: FBT003
        for number in (signal.SIGCHLD, *_ASKED_TO_END):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        for fd in (self._log_read, self._observed_read):
            os.set_blocking(fd, False)
        self._selector.register(self._log_read, selectors.EVENT_READ, self._read_log)
        self._selector.register(self._observed_read, selectors.EVENT_READ, self._read_observation)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._read_signals)
        self._selector.register(self._control, selectors.EVENT_READ, self._read_control)
        die_with_parent(signal.SIGTERM, os.getppid())

    def _become(self, begin: Callable[[dict[str, Any], int], NoReturn], supervisor: int) -> NoReturn:
        """In the child: a session of its own, its limits, its pipes; then be the arm."""
        try:
            sandbox.be_private(is_private=False)  # it may else not say who is to go first
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(DUMP_SIGNAL, signal.SIG_IGN)  # until the harness answers it, it must not kill
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED_TO_END)
            os.setsid()
            if not self._init:  # else the kernel ends it with its init, and its parent has no number here
                die_with_parent(signal.SIGKILL, supervisor)
            if self._group:
                cgroup.enter(self._group)
            _limit("RLIMIT_CORE", 0)
            _limit("RLIMIT_NOFILE", _OPEN_FILES)
            _limit("RLIMIT_FSIZE", self._limits["file_bytes"])
            _prefer_for_oom()
            self._wire()
            sandbox.enter(self._order["sandbox"])
            os.chdir(self._order["cwd"])
            begin(self._order, self._observed_write)
        except Exception as failure:  # noqa: BLE001 - the last frame of this process
            traceback.print_exc()
            why = str(failure) if isinstance(failure, sandbox.Refused) else f"{type(failure).__name__}: {failure}"
            line = json.dumps({"saw": "unable", "at": time.monotonic(), "nonce": self._order["nonce"], "why": why})
            os.write(self._observed_write, line.encode() + b"\n")
            os._exit(127)

    def _wire(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (self._log_write, 1), (self._log_write, 2)):
            os.dup2(source, target)
        self._selector.close()
        for end in (
            self._wake_read,
            self._wake_write,
            self._control,
        ):  # as objects, else they close others' numbers later
            end.close()
        needed = self._inherited | {0, 1, 2, self._observed_write}
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd not in needed:
                with contextlib.suppress(OSError):  # the folder that was listed
                    os.close(fd)

    def watch(self) -> dict[str, Any]:
        sample_at = self._started
        while self._status is None and not self._is_lost():
            now = time.monotonic()
            if now >= sample_at:
                self._sample()
                took = time.monotonic() - now
                sample_at = now + max(_SAMPLE_S, _SAMPLE_SHARE * took)
            self._take_steps(now)
            self._hear(min([sample_at, *(due for due, _ in self._steps)]) - now)
        ended = time.monotonic()
        self._ask_the_kernel()
        self._end_group()
        survivors = destroy()
        for segment, _ in self._segments():  # else they outlive everybody
            _libc.shmctl(segment, _IPC_RMID, None)
        self._drain()
        return {
            "reason": self._reason,
            **_describe_end(self._status),
            "wall_s": ended - self._started,
            "peak_bytes": self._peak_bytes,
            "observations": self._observations.decode("utf-8", "replace"),
            "log": self._log.text,
            "log_cut_bytes": self._log.cut_bytes,
            "survivors": survivors,
        }

    def _ask_the_kernel(self) -> None:
        """Whether it was the kernel that ended the arm, between two looks or for what only the kernel sees."""
        most = cgroup.over_bytes(self._group) if self._group else 0
        if most:
            self._reason = self._reason or "over_memory"
            self._peak_bytes = max(self._peak_bytes, most)

    def _end_group(self) -> None:
        if self._group:
            cgroup.end(self._group)

    def _is_lost(self) -> bool:
        """True where the arm was killed long ago and is still there: it hangs inside the kernel."""
        return self._killed_at is not None and time.monotonic() > self._killed_at + _REAP_S

    def _hear(self, wait_s: float) -> None:
        for key, _ in self._selector.select(max(wait_s, 0)):
            key.data()

    def _take_steps(self, now: float) -> None:
        due = [step for step in self._steps if step[0] <= now]
        self._steps = [step for step in self._steps if step[0] > now]
        for _, act in due:
            act()

    def _read_log(self) -> None:
        self._log.add(self._take(self._log_read))

    def _read_observation(self) -> None:
        data = self._take(self._observed_read)
        if len(self._observations) < _OBSERVATIONS_BYTES:
            self._observations += data

    def _take(self, fd: int) -> bytes:
        """Bytes that are in the pipe now; an ended pipe is no longer listened to."""
        try:
            data = os.read(fd, 1 << 18)
        except BlockingIOError:
            return b""
        if not data:
            self._selector.unregister(fd)
        return data

    def _read_signals(self) -> None:
        if set(self._wake_read.recv(4096)) - {signal.SIGCHLD}:
            self._stop("cancelled", self._kill_now)
        self._reap()

    def _read_control(self) -> None:
        if self._control.recv(4096):
            self.cancel()
        else:
            self._selector.unregister(self._control)
            self._stop("cancelled", self._kill_now)

    def cancel(self) -> None:
        self._stop("cancelled", self._ask_to_end)

    def _reap(self) -> None:
        for pid, status, usage in _ended_children():
            if pid == self._pid:
                self._status = status
                self._peak_bytes = max(self._peak_bytes, usage.ru_maxrss * 1024)

    def _stop(self, reason: str, how: Callable[[], None]) -> None:
        self._reason = self._reason or reason
        self._steps.clear()
        how()

    def _time_out(self) -> None:
        """A hang is told by its stacks: ask for them, let them be written, then end it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, DUMP_SIGNAL)
        self._reason = "timed_out"
        self._dump_until = time.monotonic() + _DUMP_MOST_S
        self._await_stacks()

    def _await_stacks(self) -> None:
        now = time.monotonic()
        if now < self._dump_until and _is_pending(self._pid, DUMP_SIGNAL):
            self._steps.append((now + _SAMPLE_S, self._await_stacks))
        else:
            self._steps.append((now + _DUMP_S, self._ask_to_end))

    def _ask_to_end(self) -> None:
        _signal_all(signal.SIGTERM)
        self._steps.append((time.monotonic() + self._limits["grace_s"], self._kill_now))

    def _kill_now(self) -> None:
        """Once more and again until the arm is reaped: a process may have been forked behind our back."""
        self._killed_at = self._killed_at or time.monotonic()
        self._end_group()
        _signal_all(signal.SIGKILL)
        self._steps.append((time.monotonic() + _SAMPLE_S, self._kill_now))

    def _sample(self) -> None:
        if self._reason:
            return
        tree = [pid for pid in descendants() if pid != self._init]
        limit = self._limits["memory_bytes"]
        used = sum(_memory_bytes(pid) for pid in tree)
        is_shared_once = len(tree) > 1 and used > min(limit, self._peak_bytes)
        if is_shared_once:
            used = _memory_shared_once(tree)
        used += self._unmapped_bytes(tree, shared_once=is_shared_once)
        if self._group:
            used = max(used, cgroup.used_bytes(self._group))
        self._peak_bytes = max(self._peak_bytes, used)
        if used > limit:
            self._stop("over_memory", self._kill_now)
        elif len(tree) > self._limits["processes"]:
            self._stop("over_processes", self._kill_now)
        elif self._is_over_disk():
            self._stop("over_disk", self._kill_now)

    def _unmapped_bytes(self, tree: list[int], *, shared_once: bool) -> int:
        """Memory of the arm in files and segments that it has not mapped; the mapped part is counted already.

        Looked for where the host's shared memory has grown since it was at its least, and never more than by that.
        """
        self._known.update(tree)
        now = _proc_bytes("meminfo", "Shmem")
        self._least_shared = min(self._least_shared, now)
        grown = now - self._least_shared
        if grown < _SHARED_BYTES:
            return 0
        spec = self._order["sandbox"]
        rooms = [op[1] for op in spec["ops"] if op[0] == "room"] if sandbox.NAMESPACES in spec["steps"] else []
        held = _bytes_in_files(tree) + _bytes_in_rooms(tree, rooms) + sum(size for _, size in self._segments())
        mapped = sum(_shared_bytes(pid, shared_once=shared_once) for pid in tree)
        return max(min(held, grown) - mapped, 0)

    def _segments(self) -> Iterator[tuple[int, int]]:
        """Number and bytes of each segment of System V that the arm made."""
        is_alone = sandbox.NAMESPACES in self._order["sandbox"]["steps"]
        for line in cgroup.read("/proc/sysvipc/shm").splitlines()[1:]:
            fields = line.split()
            if is_alone or (int(fields[4]) in self._known and int(fields[13]) >= self._began):
                yield int(fields[1]), int(fields[14])

    def _is_over_disk(self) -> bool:
        """Whether the disk is nearly full, or the scratch folder too large. The disk is looked at each time, the folder
        as often as it is cheap.
        """
        disk = os.statvfs(self._order["cwd"])
        if disk.f_bavail * disk.f_frsize < min(_SPARE_BYTES, self._free_at_start):
            return True
        if disk.f_files and disk.f_favail < min(_SPARE_FILES, self._files_at_start):
            return True
        now = time.monotonic()
        if now < self._walk_at:
            return False
        used = _disk_bytes(self._order["cwd"])
        took = time.monotonic() - now
        self._walk_at = now + max(10 * _SAMPLE_S, _SCRATCH_SHARE * took)
        return bool(used > self._limits["scratch_bytes"])

    def _drain(self) -> None:
        """Everything that could write is dead, so the pipes end."""
        for end in (self._wake_read, self._control):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(end)
        until = time.monotonic() + _DRAIN_S
        while self._selector.get_map() and time.monotonic() < until:
            self._hear(until - time.monotonic())


def _disk_bytes(folder: str) -> int:
    """Disk space of the files below a folder, holes not counted. Files come and go while it looks.

    A folder too deep for one path is looked at from an open one on the way to it. What is deeper than `_STEPS` of them,
    or closed to us, cannot be counted, which is more than may be: no program makes such a thing by mistake.
    """
    used = 0
    unread: list[tuple[_OpenFolder | None, str]] = [(None, folder)]
    while unread:
        base, path = unread.pop()
        try:
            if base is None or len(path) > _PATH_CHARS:
                base, path = _OpenFolder(base, path), "."
            if base.steps > _STEPS:
                return _UNCOUNTABLE
            descriptor = os.open(path, _FOLDER, dir_fd=base.descriptor)
        except PermissionError:
            return _UNCOUNTABLE
        except OSError:
            continue
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    try:
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
                    except PermissionError:  # a folder may be listed, and what lies in it not be looked at
                        return _UNCOUNTABLE
                    except OSError:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        unread.append((base, f"{path}/{entry.name}"))
        finally:
            os.close(descriptor)
    return used


class _OpenFolder:
    """An open folder, for as long as something below it is still to be looked at."""

    def __init__(self, above: _OpenFolder | None, path: str) -> None:
        self.steps: int = 0 if above is None else above.steps + 1
        self.descriptor: int = os.open(path, _FOLDER, dir_fd=None if above is None else above.descriptor)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self.descriptor)


def _bytes_in_files(tree: list[int]) -> int:
    """Of all files in memory that these processes hold open, and the length of what they have mapped of others."""
    device = _device_of_memory()
    if device is None:
        return 0
    devices = {device}
    with contextlib.suppress(OSError):
        devices.add(os.stat("/dev/shm").st_dev)  # noqa: S108 - asked about, not written to
    opened: dict[tuple[int, int], int] = {}
    mapped: dict[tuple[int, int], int] = {}
    for pid in tree:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{fd}")
                    if status.st_dev in devices:
                        opened[status.st_dev, status.st_ino] = status.st_blocks * 512
        mapped.update(_mapped_of(pid, device))
    return sum({**mapped, **opened}.values())


def _mapped_of(pid: int, device: int) -> dict[tuple[int, int], int]:
    number = f"{os.major(device):02x}:{os.minor(device):02x}"
    mapped: dict[tuple[int, int], int] = {}
    for line in cgroup.read(f"/proc/{pid}/maps").splitlines():
        place, _, _, on, inode, *name = line.split(maxsplit=5)
        if on == number and not (name and name[0].startswith("/SYSV")):
            first, _, last = place.partition("-")
            key = (device, int(inode))
            mapped[key] = mapped.get(key, 0) + int(last, 16) - int(first, 16)
    return mapped


def _device_of_memory() -> int | None:
    """The device number under which the kernel keeps memory that is a file of no folder."""
    try:
        descriptor = os.memfd_create("knowngood")
    except (AttributeError, OSError):
        return None
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _bytes_in_rooms(tree: list[int], rooms: list[str]) -> int:
    """Bytes in the arm's own file systems in memory, seen through the first process that still has them."""
    for pid in tree:
        with contextlib.suppress(OSError):
            file_systems = [os.statvfs(f"/proc/{pid}/root{room}") for room in rooms]
            return sum(
                (file_system.f_blocks - file_system.f_bfree) * file_system.f_frsize for file_system in file_systems
            )
    return 0


def _shared_bytes(pid: int, *, shared_once: bool) -> int:
    """Of the memory that is counted for a process, what is shared memory."""
    share = _proc_bytes(f"{pid}/smaps_rollup", "Pss_Shmem") if shared_once else 0
    return share or _proc_bytes(f"{pid}/status", "RssShmem")


def _limit(name: str, wanted: int) -> None:
    _, hard = resource.getrlimit(getattr(resource, name))
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(getattr(resource, name), (wanted, wanted if name == "RLIMIT_CORE" else hard))


def _prefer_for_oom() -> None:
    """Where the kernel must free memory, let it take the arm and not what watches over it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("900")


def _is_pending(pid: int, number: int) -> bool:
    """Whether a process has not taken a signal yet that was sent to it."""
    status = cgroup.read(f"/proc/{pid}/status")  # empty where it is gone, or hidden
    masks = [int(line.split()[1], 16) for line in status.split("\n") if line.startswith("ShdPnd:")]
    return any(mask >> (number - 1) & 1 for mask in masks)


def _describe_end(status: int | None) -> dict[str, Any]:
    """`exit_code` or the name of the `signal`; neither for a process that would not die."""
    if status is None or os.WIFEXITED(status):
        return {"exit_code": None if status is None else os.WEXITSTATUS(status), "signal": ""}
    number = os.WTERMSIG(status)
    try:
        return {"exit_code": None, "signal": signal.Signals(number).name}
    except ValueError:
        return {"exit_code": None, "signal": f"SIG{number}"}


def _ended_children() -> Iterator[tuple[int, int, resource.struct_rusage]]:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status, usage


def _signal_all(number: int) -> None:
    for pid in descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def destroy() -> int:
    """Kill and reap all descendants of this process; tell how many outlived it.

    This process must be their reaper (`adopt_orphans`): then they are gone, every one, once it has no child left.
    """
    until = time.monotonic() + _REAP_S
    while _has_children():
        _signal_all(signal.SIGKILL)
        if time.monotonic() > until:
            return max(len(descendants()), 1)
        time.sleep(0.002)
    return 0


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants() -> list[int]:
    """Everything below this process, dead but unreaped processes included."""
    pids: list[int] = []
    unread = [os.getpid()]
    while unread:
        below = _children(unread.pop())
        pids += below
        unread += below
    return pids


def _children(pid: int) -> list[int]:
    """The children of all its threads. Kernels without `children` files (CONFIG_PROC_CHILDREN) are scanned whole."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    children: list[int] = []
    for thread in threads:
        path = f"/proc/{pid}/task/{thread}/children"
        if thread == str(pid) and not os.path.exists(path) and os.path.exists(f"/proc/{pid}/stat"):
            return _children_by_scan(pid)
        children += [int(child) for child in cgroup.read(path).split()]
    return children


def _children_by_scan(parent: int) -> list[int]:
    children = []
    for name in os.listdir("/proc"):
        text = cgroup.read(f"/proc/{name}/stat") if name.isdigit() else ""
        # The command stands in parentheses and may itself hold some: state and parent follow the last one.
        if text and text.rpartition(")")[2].split()[1] == str(parent):
            children.append(int(name))
    return children


def _memory_bytes(pid: int) -> int:
    """Resident memory, all that it shares included."""
    statm = cgroup.read(f"/proc/{pid}/statm").split()
    return int(statm[1]) * _page if statm else 0


def _memory_shared_once(tree: list[int]) -> int:
    """Resident memory of all of them: forked pools share most of theirs.

    The shares of a process that hides (see sandbox.be_private) are not told. Of its files, which are the same libraries
    in all of them, those of one process are counted; what it shares else is counted for each, which is too much.
    """
    used, files = 0, 0
    for pid in tree:
        share = _proc_bytes(f"{pid}/smaps_rollup", "Pss")
        used += share or _proc_bytes(f"{pid}/status", "RssAnon") + _proc_bytes(f"{pid}/status", "RssShmem")
        files = max(files, 0 if share else _proc_bytes(f"{pid}/status", "RssFile"))
    return used + files


def _proc_bytes(file: str, name: str) -> int:
    """The number behind a name in a file of /proc, which counts in KiB."""
    for line in cgroup.read(f"/proc/{file}").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _execute(order: dict[str, Any], observations: int) -> NoReturn:
    """Be the arm in a fresh interpreter of the build under test."""
    os.set_inheritable(observations, True)  # noqa: FBT003
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    nonce_read, nonce_write = os.pipe()  # arguments and variables can be read by whatever the arm runs
    os.write(nonce_write, order["nonce"].encode())
    os.close(nonce_write)
    os.set_inheritable(nonce_read, True)  # noqa: FBT003
    argv = [*order["argv"], str(observations), str(nonce_read), json.dumps(order["arm"])]
    os.execve(argv[0], argv, order["env"])  # noqa: S606


if __name__ == "__main__":
    supervise(socket.socket(fileno=int(sys.argv[1])), _execute)
