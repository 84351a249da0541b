# ruff: noqa: PTH103, PTH110, PTH112, PTH113, PTH116, PTH120, PTH123, PTH211
# Between fork and exec of every arm: plain calls, because each import and each object is time of the arm.
"""Shut one process off from its host by the kernel's own means: namespaces, mounts, capabilities, seccomp, Landlock.

Standard library only, Python 3.9 and newer, and Linux. Two ways in:

    leave(spec), then for the child enter(spec)      the supervisor, which is loaded beside this file
    sandbox.py SPEC COMMAND..                         run one command inside (probes, and what asks the host)

`sandbox_spec` is JSON: `steps` names the means; `ops` says what is to be seen, in the order of mounting, parents first:
("show", path) read-only, ("open", path) writable, ("hide", path) an empty place, ("room", path, bytes) a writable one
in memory, ("link", path, text), ("terminals", path). Without namespaces everything is seen, and ("open", path) and
("use", path), where nothing may be made, are what Landlock lets an arm write. `mount` is an empty folder to build the
new root on, `cwd` where the process then stands, `tasks` the most threads and processes, where the kernel counts them
by namespace (Linux 6.14 and newer; 0: not limited).

Why not bubblewrap: an arm is most often forked from a process that has imported torch, and bwrap can only start
programs. What it does is done here in the same order.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import signal
import socket
import stat
import struct
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

NO_NETWORK = "no-network"
NAMESPACES = "namespaces"
SECCOMP = "seccomp"
LANDLOCK = "landlock"

REFUSED = 125  # the exit status of this program where the kernel refused a step; the last line of stderr is JSON

_NEWNS, _NEWUTS, _NEWIPC = 0x00020000, 0x04000000, 0x08000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_ALL_NAMESPACES = 0x7E020000  # with those of cgroups

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_KEPT_FLAGS = {
    "nosuid": _MS_NOSUID,
    "nodev": _MS_NODEV,
    "noexec": _MS_NOEXEC,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 24, 38, 47
_PR_SET_PDEATHSIG = 1
_LAST_CAP = 63
# What root keeps without namespaces of its own: files it owns are its own. Everything that could undo a step goes.
_CAPS_ABOUT_FILES = (0, 1, 2, 3, 4, 5, 6, 7)  # CHOWN .. SETUID

_SYS_MOUNT_SETATTR, _SYS_LANDLOCK = 442, (444, 445, 446)
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41

# Of the new /proc: what would change the host where the worker is root, whom a sysctl asks for no capability.
_PROC_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The kernel refused `step`. Nothing of the arm has run."""

    def __init__(self, step: str, number: int) -> None:
        super().__init__(f"{step}: {os.strerror(number)}")
        self.step = step
        self.number = number


def _must(step: str, result: int) -> int:
    if result < 0:
        raise Refused(step, ctypes.get_errno())
    return result


def leave(sandbox_spec: dict[str, Any]) -> tuple[str, ...]:
    """In the supervisor: leave the host's network and, at the level of namespaces, let later children be elsewhere.

    The supervisor itself stays in the host's mounts and processes, so that it sees all of the arm. Says what was
    reached; the network alone may be refused silently, as everywhere before, and is then missing from what is said.
    Raises Refused for anything else. The first child after this is the init of the others: see `start_init`.
    """
    if NAMESPACES in sandbox_spec["steps"]:
        flags = _NEWNET | _NEWPID | _NEWIPC | _NEWUTS
        if not _unshare_as_owner(_NEWUSER | flags) and _libc.unshare(flags) != 0:
            raise Refused("user namespace", ctypes.get_errno())
        _raise_loopback()
        return tuple(step for step in sandbox_spec["steps"] if step != "process")
    filters = tuple(step for step in sandbox_spec["steps"] if step == LANDLOCK)
    if NO_NETWORK in sandbox_spec["steps"] and (_libc.unshare(_NEWNET) == 0 or _unshare_as_owner(_NEWUSER | _NEWNET)):
        _raise_loopback()
        return (NO_NETWORK, *filters)
    return filters


def _unshare_as_owner(flags: int) -> bool:
    """Into a user namespace in which we stay who we were: getpass and the owners of files must not change."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(flags) != 0:
        return False
    be_private(is_private=False)  # else these files belong to root
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        except OSError as failure:
            raise Refused("ids in a user namespace", failure.errno or 0) from None
    try:
        with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
            file.write("0")  # of this one: no way into another, in which an arm would be root and could mount
    except OSError:
        pass
    return True


def be_private(*, is_private: bool = True) -> None:
    """Let no process but root's look into this one, or write through its descriptors, until it becomes a program."""
    _libc.prctl(_PR_SET_DUMPABLE, int(not is_private), 0, 0, 0)


def is_apart(steps: Sequence[str]) -> bool:
    """Whether the kernel keeps an arm from looking into others. Where it does not, the others must hide."""
    return NAMESPACES in steps or LANDLOCK in steps


def _raise_loopback() -> None:
    """The new network has nothing but its loopback, which is brought up: torch.distributed and compile servers on one
    machine speak over it, and find "network unreachable" otherwise.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP_RUNNING))
    except OSError:
        pass


def start_init(mount: str) -> tuple[int, int]:
    """Fork process 1 of the new namespace: it adopts orphans, and when it dies the kernel kills all the others.

    Gives its number and a descriptor that holds it: once the last copy is closed, as when the supervisor dies, it
    ends. It holds no file of the supervisor, its memory can be read by nobody inside, and its root is an empty folder.
    """
    ours, theirs = os.pipe()[::-1]
    pid = os.fork()
    if pid:
        os.close(theirs)
        return pid, ours
    try:
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        os.dup2(theirs, 0)
        os.closerange(1, 65536)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # which for process 1 means that the kernel drops them
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.chroot(mount)
        os.chdir("/")
        while os.read(0, 1):
            pass
    finally:
        os._exit(0)


def enter(sandbox_spec: dict[str, Any]) -> None:
    """In the arm's process, last of all before it becomes the arm. Raises Refused, OSError."""
    steps = sandbox_spec["steps"]
    if NAMESPACES in steps:
        _must("mount namespace", _libc.unshare(_NEWNS))
        _build_root(sandbox_spec)
        _drop_capabilities(())
    else:
        _drop_capabilities(_CAPS_ABOUT_FILES)
    be_private(is_private=not is_apart(steps))
    if LANDLOCK in steps:
        own = ["/dev", "/proc"] if NAMESPACES in steps else ["/proc/self"]
        rooms = [op[1] for op in sandbox_spec["ops"] if op[0] in ("open", "room")]
        _restrict_writing(rooms, [*(op[1] for op in sandbox_spec["ops"] if op[0] == "use"), *own])
    if SECCOMP in steps:
        _filter_calls()


def _build_root(sandbox_spec: dict[str, Any]) -> None:
    """A new root of what the specification shows; the old one is let go."""
    root = sandbox_spec["mount"]
    _mount("the host's mounts", None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("new root", "tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    covers = [root]
    for kind, path, *rest in sandbox_spec["ops"]:
        target = root + path
        if kind == "link":
            _make_parents(target)
            os.symlink(rest[0], target)
        elif kind in ("show", "open"):
            _bind(path, target, is_open=kind == "open")
        elif kind == "terminals":
            os.makedirs(target)
            _mount("terminals", "devpts", target, "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666")
        elif kind == "hide" and os.path.isfile(target):
            _mount(f"hiding {path}", "/dev/null", target, None, _MS_BIND)
        else:
            os.makedirs(target, exist_ok=True)
            size = rest[0] if rest else 1 << 20
            _mount("room in memory", "tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,size={size}")
            if kind == "hide":
                covers.append(target)
    _mount_proc(root, sandbox_spec["tasks"])
    for cover in reversed(covers):  # the mount points in them are all made
        _mount("read-only cover", None, cover, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    os.chdir(root)
    _must("pivot_root", _libc.pivot_root(b".", b"."))  # the old root lies on the new one, until it is let go
    _must("letting the old root go", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")


def _bind(path: str, target: str, *, is_open: bool) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return  # gone since it was listed, as devices and sockets go
    if stat.S_ISDIR(mode):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        _make_parents(target)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    _mount(f"showing {path}", path, target, None, _MS_BIND | (0 if is_open else _MS_REC))
    if not is_open:
        _make_read_only(target)


def _make_parents(target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)


def _make_read_only(target: str) -> None:
    """With all that is mounted below it: in one call since Linux 5.12, one by one before."""
    attributes = struct.pack("QQQQ", _MS_RDONLY | _MS_NOSUID, 0, 0, 0)
    recursive = 0x8000
    if _libc.syscall(_SYS_MOUNT_SETATTR, -100, os.fsencode(target), recursive, attributes, len(attributes)) == 0:
        return
    if ctypes.get_errno() not in (
        errno.ENOSYS,
        errno.EPERM,
    ):  # seccomp of containers says EPERM to what it never heard of
        raise Refused(f"read-only {target}", ctypes.get_errno())
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.split() for line in file]
    for fields in lines:
        path = fields[4].encode().decode("unicode_escape")
        if path == target or path.startswith(target + "/"):
            kept_flags = sum(_KEPT_FLAGS.get(option, 0) for option in fields[5].split(","))
            flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | kept_flags
            _mount(f"read-only {path}", None, path, None, flags)


def _mount_proc(root: str, tasks: int) -> None:
    """Of the new processes alone. Containers that cover parts of their /proc are refused one by the kernel."""
    proc = root + "/proc"
    os.makedirs(proc)
    _mount("a /proc of its own", "proc", proc, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    if tasks:
        try:
            with open(f"{proc}/sys/kernel/pid_max", "w", encoding="ascii") as file:
                file.write(str(tasks))
        except OSError:
            pass  # counted for the whole host: the supervisor's look at the processes is what limits them
    for name in _PROC_READ_ONLY:
        path = f"{proc}/{name}"
        if os.path.exists(path):
            _mount(f"read-only /proc/{name}", path, path, None, _MS_BIND | _MS_REC)
            flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
            _mount(f"read-only /proc/{name}", None, path, None, flags)


def _mount(step: str, source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [text if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _must(step, _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]))


def _drop_capabilities(capabilities: Sequence[int]) -> None:
    """For good: neither an exec nor a program with its own privileges brings one back."""
    _must("no new privileges", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)
    for capability in range(_LAST_CAP + 1):
        if capability not in capabilities:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused where we hold none, which is as good
    header = struct.pack("Ii", 0x20080522, 0)
    held = ctypes.create_string_buffer(24)
    _must("reading capabilities", _libc.capget(header, held))
    effective, permitted = struct.unpack_from("2I", held)
    mask = sum(1 << capability for capability in capabilities)
    left = struct.pack("6I", effective & mask, permitted & mask, 0, 0, 0, 0)
    _must("dropping capabilities", _libc.capset(header, left))


# Landlock: in namespaces a second lock on the same door, without them the only one. Writing is allowed below what is
# open, whatever a mount may have left. Whoever is restricted by it can look into nobody outside, and from version 6 on
# neither signal them nor speak to them by abstract sockets: each arm has its own.
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_CHANGES = sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))  # remove and make all but devices
_MAKE_DEVICES = 1 << 6 | 1 << 11
_KNOWS_TRUNCATE, _KNOWS_SCOPES = 3, 6
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2


def landlock_version() -> int:
    """0 where the kernel has none. Version 1 allows no rename from folder to folder, which compilers' caches need."""
    return max(int(_libc.syscall(_SYS_LANDLOCK[0], None, 0, 1)), 0)


def _restrict_writing(rooms: Sequence[str], used: Sequence[str]) -> None:
    """Anything may be made in `rooms`; what is there already may be written to in `used`."""
    version = landlock_version()
    truncate = _TRUNCATE if version >= _KNOWS_TRUNCATE else 0
    handled = struct.pack("Q", _WRITE_FILE | _CHANGES | _REFER | _MAKE_DEVICES | truncate)
    if version >= _KNOWS_SCOPES:
        handled += struct.pack("QQ", 0, _ABSTRACT_SOCKETS | _SIGNALS)
    ruleset = _must("Landlock", _libc.syscall(_SYS_LANDLOCK[0], handled, len(handled), 0))
    everything = _WRITE_FILE | _CHANGES | _REFER | truncate
    of_files = _WRITE_FILE | truncate
    for place, rights in (*((room, everything) for room in rooms), *((path, of_files) for path in used)):
        try:
            fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rule = struct.pack("=Qi", rights if os.path.isdir(place) else rights & of_files, fd)
        _must("Landlock", _libc.syscall(_SYS_LANDLOCK[1], ruleset, 1, rule, 0))
        os.close(fd)
    _must("Landlock", _libc.syscall(_SYS_LANDLOCK[2], ruleset, 0))
    os.close(ruleset)


# seccomp: calls that administer a machine, or have been the way out of containers, and that no repro of the catalogue
# makes. Names with their numbers on x86-64 and ARM64 (-1: not there).
_DENIED = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "chroot": (161, 51), "clock_settime": (227, 112),
    "delete_module": (176, 106), "finit_module": (313, 273), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105), "ioperm": (173, -1), "iopl": (172, -1),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "perf_event_open": (298, 241), "pivot_root": (155, 41), "quotactl": (179, 60), "reboot": (169, 142),
    "request_key": (249, 218), "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268),
    "settimeofday": (164, 170), "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116),
    "umount2": (166, 39), "userfaultfd": (323, 282), "vhangup": (153, 58),
}  # fmt: skip
# Said to be unknown, so that libraries take their other way: glibc then calls clone, whose flags can be looked at.
_UNKNOWN = {
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
_BY_FLAGS = {"clone": (56, 220), "unshare": (272, 97)}
_IOCTL, _TIOCSTI = (16, 29), 0x5412
_SECCOMP_CALL = (317, 277)
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_LD_W, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def is_filter_known() -> bool:
    """Whether the numbers of this machine's calls are known here."""
    return platform.machine() in _ARCHITECTURES and sys.maxsize > 1 << 32


def _filter_calls() -> None:
    """Install it for this process and all it starts. Without the mitigation for speculative stores, which kernels
    before 5.16 turn on for whoever is filtered, and which slows down what is measured.
    """
    audit, column = _ARCHITECTURES[platform.machine()]
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _filter_program(audit, column))
    buffer = ctypes.create_string_buffer(program, len(program))
    count = len(program) // 8
    described = struct.pack("HxxxxxxP", count, ctypes.addressof(buffer))
    spec_allow = 4
    _must("seccomp", _libc.syscall(_SECCOMP_CALL[column], 1, spec_allow, described))


def _filter_program(audit: int, column: int) -> list[tuple[int, int, int, int]]:
    """Classic BPF over struct seccomp_data: number at 0, architecture at 4, arguments from 16 on, low halves first."""
    eperm, enosys = (_RET, 0, 0, _ERRNO | errno.EPERM), (_RET, 0, 0, _ERRNO | errno.ENOSYS)
    program = [(_LD_W, 0, 0, 4), (_JEQ, 1, 0, audit), enosys, (_LD_W, 0, 0, 0)]
    if column == 0:
        program += [(_JGE, 0, 1, 0x40000000), enosys]  # x32 calls of the same kernel
    for numbers in _UNKNOWN.values():
        program += [(_JEQ, 0, 1, numbers[column]), enosys]
    for numbers in _DENIED.values():
        if numbers[column] >= 0:
            program += [(_JEQ, 0, 1, numbers[column]), eperm]
    for numbers in _BY_FLAGS.values():
        looked_at = [(_LD_W, 0, 0, 16), (_JSET, 0, 1, _ALL_NAMESPACES), eperm, (_RET, 0, 0, _ALLOW)]
        program += [(_JEQ, 0, len(looked_at), numbers[column]), *looked_at]
    typed = [(_LD_W, 0, 0, 24), (_JEQ, 0, 1, _TIOCSTI), eperm, (_RET, 0, 0, _ALLOW)]
    program += [(_JEQ, 0, len(typed), _IOCTL[column]), *typed, (_RET, 0, 0, _ALLOW)]
    return program


def main(sandbox_spec: dict[str, Any], command: Sequence[str]) -> NoReturn:
    """Run `command` inside and end as it ends; status 125 where the kernel refused to make the inside."""
    try:
        leave(sandbox_spec)
        inside = NAMESPACES in sandbox_spec["steps"]
        init, _ = start_init(sandbox_spec["mount"]) if inside else (0, -1)
        pid = os.fork()
        if pid == 0:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            enter(sandbox_spec)
            os.chdir(sandbox_spec["cwd"])
            os.execvp(command[0], list(command))  # noqa: S606
    except Refused as refused:
        _end_refused(refused.step, refused.number)
    except OSError as failure:
        _end_refused(f"starting {command[0]}", failure.errno or 0)
    _, status = os.waitpid(pid, 0)
    if init:
        os.kill(init, signal.SIGKILL)
        os.waitpid(init, 0)
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _end_refused(step: str, number: int) -> NoReturn:
    os.write(2, json.dumps({"step": step, "errno": number}).encode() + b"\n")
    os._exit(REFUSED)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
