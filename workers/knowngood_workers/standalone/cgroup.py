# ruff: noqa: PTH102, PTH103, PTH106, PTH112, PTH119, PTH120, PTH123, PTH208
# As in supervisor: plain calls, between two looks at an arm.
"""Give each arm a control group (cgroup v2) of its own, where this host has delegated one to us.

Guaranteed of an arm that has one: with all that it starts it holds at most `memory_bytes`, whoever maps them and
wherever they lie (files of no folder, sockets, the kernel's own buffers), none in swap; over that the kernel ends it
whole; it has at most `tasks` threads and processes; what is left of it ends at one word. Not guaranteed where an arm
may write to the host's files, below namespaces and without Landlock: there it can leave its group.

Nothing is taken: a group is divided only if it was given to us, and no process but our own is moved. Standard library
only and Python 3.9, because supervisors load it too. Not here: what is counted besides (supervisor).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterator

CGROUP = "cgroup"
LEAF = "knowngood"
_MARK = "kg-"
_MANAGER = "/run/systemd/system"  # is there where systemd has the host
_CONTROLLERS = ("memory", "pids")
_ADVICE = "`systemd-run --user --scope -p Delegate=yes COMMAND`, or Delegate=yes in a unit, gives it one of its own"
_MOVES = 10  # for processes that start others while they are moved
_END_S = 10.0


def own_group(groups: str = "/proc/self/cgroup", mounts: str = "/proc/self/mountinfo") -> str:
    """The folder of the group that this process is in; empty where none is to be seen."""
    path = next((line[3:] for line in read(groups).splitlines() if line.startswith("0::")), "..")
    for line in read(mounts).splitlines():
        root, place = line.split()[3:5]
        above = root.rstrip("/")
        if " - cgroup2 " in line and ".." not in path and f"{path}/".startswith(f"{above}/"):
            return os.path.normpath(place + path[len(above) :])
    return ""


def settle(own: str, ours: Collection[int]) -> None:
    """Let groups be made and limited below the one that we are in, where it was delegated and is ours alone.

    For the process that starts agents, before it does; `ours` is it and those that it has started. A group with
    processes in it limits none below it, so that they go into a leaf first.
    """
    home = _divisible(own)
    with contextlib.suppress(OSError):
        try:
            _enable(home)
        except OSError as refused:
            if refused.errno != errno.EBUSY:
                raise
            _move(home, ours)
            _enable(home)


def find_home(own: str) -> tuple[str, str]:
    """The group below which arms can have theirs; empty where there is none, and in words why."""
    home = _divisible(own)
    if not own:
        return "", "no control groups (v2) are to be seen here"
    if not home:
        return "", f"the control group of this process was not delegated to it; {_ADVICE}"
    if "memory" not in read(f"{home}/cgroup.controllers").split():
        return "", "the control groups (v2) of this host limit no memory"
    if "memory" not in read(f"{home}/cgroup.subtree_control").split():
        return "", f"others run in the control group of this process; {_ADVICE}"
    return home, ""


def _divisible(own: str) -> str:
    """Our group, or of a leaf the one above it; empty where it is not ours to divide.

    systemd marks what it delegates. Where it manages the host, root may write everywhere and leaves alone what has no
    mark; others may write only what somebody gave them.
    """
    home = os.path.dirname(own) if os.path.basename(own) == LEAF else own
    is_managed = os.geteuid() == 0 and os.path.isdir(_MANAGER)
    if not home or (is_managed and not _is_marked(home)):
        return ""
    wanted = (home, f"{home}/cgroup.procs", f"{home}/cgroup.subtree_control")
    return home if all(os.access(path, os.W_OK) for path in wanted) else ""


def _is_marked(group: str) -> bool:
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _enable(home: str) -> None:
    there = read(f"{home}/cgroup.controllers").split()
    if "memory" in there:
        _write(f"{home}/cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS if name in there))


def _move(home: str, ours: Collection[int]) -> None:
    for _ in range(_MOVES):
        pids = [int(pid) for pid in read(f"{home}/cgroup.procs").split()]
        if not pids or set(pids) - set(ours):
            return
        os.makedirs(f"{home}/{LEAF}", exist_ok=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                _write(f"{home}/{LEAF}/cgroup.procs", str(pid))


@contextlib.contextmanager
def group_for_arm(home: str, memory_bytes: int, tasks: int) -> Iterator[str]:
    """A new group below `home`, locked while in use and gone afterwards with all that is in it; empty where it cannot
    be made or limited, and where `home` is.
    """
    lock, group, is_limited = -1, "", False
    with contextlib.suppress(OSError):
        if home:
            group = f"{home}/{_MARK}{os.urandom(4).hex()}"
            os.mkdir(group)
            lock = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _limit(group, memory_bytes, tasks)
            is_limited = True
    try:
        yield group if is_limited else ""
    finally:
        if group:
            remove(group)
        if lock >= 0:
            os.close(lock)


def _limit(group: str, memory_bytes: int, tasks: int) -> None:
    _write(f"{group}/memory.max", str(memory_bytes))
    _write(f"{group}/memory.oom.group", "1")
    for name, number in (("memory.swap.max", 0), ("cgroup.max.descendants", 0), ("pids.max", tasks)):
        with contextlib.suppress(FileNotFoundError):  # the kernel has no swap, or that controller is kept from us
            _write(f"{group}/{name}", str(number))


def sweep(home: str) -> None:
    """Remove the groups that killed agents left: those whose lock nobody holds. It waits for no lock, because arms can
    take one of any folder that they see.
    """
    for name in os.listdir(home) if os.path.isdir(home) else ():
        with contextlib.suppress(OSError):
            if name.startswith(_MARK):
                lock = os.open(f"{home}/{name}", os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(f"{home}/{name}")
                finally:
                    os.close(lock)


def remove(group: str) -> bool:
    """End what is in it, and it. False where something would not die: a later sweep looks again."""
    end(group)
    until = time.monotonic() + _END_S
    while "populated 1" in read(f"{group}/cgroup.events") and time.monotonic() < until:
        time.sleep(0.002)
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.isdir(group)


def enter(group: str) -> None:
    """In the arm's own process, before it has anything. Raises OSError."""
    _write(f"{group}/cgroup.procs", "0")


def held_bytes(group: str) -> int:
    """All that is charged to it, which the limit is for."""
    return int(read(f"{group}/memory.current") or 0)


def used_bytes(group: str) -> int:
    """Memory of the group alone: neither what it shares with the process that it was forked from, nor what the
    kernel keeps of its files as long as there is room.
    """
    memory = _table(f"{group}/memory.stat")
    return memory.get("anon", 0) + memory.get("shmem", 0)


def over_bytes(group: str) -> int:
    """The most that it had, if the kernel ended it for that; 0 if not, or if it was the host that lacked memory."""
    events = _table(f"{group}/memory.events")
    is_over = events.get("oom", 0) and events.get("oom_kill", 0)
    return int(read(f"{group}/memory.peak") or read(f"{group}/memory.max")) if is_over else 0


def end(group: str) -> None:
    """Kill all that is in it at once (Linux 5.14 and newer)."""
    with contextlib.suppress(OSError):
        _write(f"{group}/cgroup.kill", "1")


def _table(path: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (line.partition(" ") for line in read(path).splitlines())}


def read(path: str | os.PathLike[str]) -> str:
    """A text of the machine's own; empty where it is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    """In one piece, and only to what is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
