"""Each attack that takes no time, one after the other; tells of each what it got, and leaves others as they were.

What could harm the host that tests run on is done to decoys alone, or opened and not written to.
"""

import ctypes
import errno
import os
import signal
import socket

libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, NEWNS = 0x10000000, 0x20000
PTRACE_SEIZE, PIDFD_OPEN, PIDFD_GETFD, WRITEV = 0x4206, 434, 438, 311


def _opens(path, flags):
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return ""
    return path


def _first(tries):
    return next((got for got in tries if got), "")


def _writes(path):
    return _opens(path, os.O_WRONLY)


def _makes(folder):
    path = os.path.join(folder, "knowngood-wrote-here")
    got = _opens(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    if got:
        os.unlink(path)
    return got


def _reads(paths, word):
    for path in paths:
        try:
            with open(path, "rb") as file:
                if word in file.read(1 << 16):
                    return path
        except OSError:
            pass
    return ""


def _connects(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(2)
            one.connect(address)
    except OSError:
        return ""
    return str(address)


def _in_child(act):
    """The act's result, from a process of its own that may break."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(theirs, (act() or "").encode()[:512])
        finally:
            os._exit(0)
    os.close(theirs)
    got = os.read(ours, 512).decode()
    os.close(ours)
    os.waitpid(pid, 0)
    return got


def _numbers():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _variables_of(pids, word):
    return _reads(["/proc/%d/environ" % pid for pid in pids if pid != os.getpid()], word)


def _looks_into(pid):
    """Everything by which one process gets at another's memory and descriptors, none of it gone through with."""
    if libc.ptrace(PTRACE_SEIZE, pid, 0, 0) == 0:
        return "ptrace"
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    if pidfd >= 0 and any(libc.syscall(PIDFD_GETFD, pidfd, fd, 0) >= 0 for fd in range(3, 16)):
        return "pidfd_getfd"
    return _opens("/proc/%d/mem" % pid, os.O_RDWR) or _first(
        _opens("/proc/%d/%s" % (pid, name), os.O_RDONLY) for name in ("environ", "maps", "root/etc/passwd")
    )


def _writes_through(pids):
    """Into pipes alone, as a word of the harness goes; nothing is written."""
    for pid in pids:
        for fd in range(64):
            place = "/proc/%d/fd/%d" % (pid, fd)
            try:
                if os.readlink(place).startswith("pipe:") and _writes(place):
                    return place
            except OSError:
                pass
    return ""


def _links(source, folder):
    """Another name for a file, to write to it by."""
    target = os.path.join(folder, "another-name")
    try:
        os.link(source, target)
    except OSError:
        return ""
    got = _writes(target)
    os.unlink(target)
    return got


def _mounts_as_root_inside():
    uid = os.getuid()
    if libc.unshare(NEWUSER | NEWNS) != 0:
        return ""
    try:
        with open("/proc/self/uid_map", "w") as file:
            file.write("0 %d 1" % uid)
    except OSError:
        pass
    return "tmpfs" if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=1g") == 0 else ""


def _mounts():
    """Over a folder of its own, and gone with this process."""
    os.mkdir("mounted")
    if libc.mount(b"tmpfs", b"mounted", b"tmpfs", 0, None) != 0:
        return ""
    libc.umount2(b"mounted", 2)
    return "tmpfs"


def _enters(kinds):
    for name, kind in kinds:
        try:
            fd = os.open("/proc/1/ns/" + name, os.O_RDONLY)
        except OSError:
            continue
        if libc.setns(fd, kind) == 0:
            return name
    return ""


def _makes_a_device():
    try:
        os.mknod("disk", 0o60600, os.makedev(8, 0))
    except OSError:
        return ""
    return _opens("disk", os.O_RDONLY) or "node"


def _gains_rights():
    """Whether a program with its own rights would be given them."""
    return "" if libc.prctl(39, 0, 0, 0, 0) == 1 else "su"


def _kills(pid):
    try:
        os.kill(pid, signal.SIGCONT)  # which the decoy does not even notice
    except OSError:
        return ""
    return str(pid)


def _calls(number):
    return "" if libc.syscall(number, 0, 0, 0, 0, 0) < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS) else "it"


def _sets_name():
    """Of the host, to what it is already."""
    name = socket.gethostname().encode()
    return "name" if libc.sethostname(name, len(name)) == 0 else ""


def _climbs():
    for fd in range(256):
        try:
            if os.listdir(os.open("../../../../..", os.O_RDONLY, dir_fd=fd)):
                return str(fd)
        except OSError:
            pass
    return ""


def baseline(told):
    word, others, programs = told["word"].encode(), told["arm"], told["programs"]
    doors = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
             "/sys/power/state", "/etc/ld.so.preload", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1"]  # fmt: skip
    kinds = (("mnt", NEWNS), ("net", 0x40000000), ("pid", 0x20000000), ("user", NEWUSER))
    got = {
        "reads the variables of other processes": _variables_of([told["victim"]], word),
        "sees other processes": "%d" % told["victim"] if told["victim"] in _numbers() else "",
        "reads home, tokens, the database and other runs": _reads(told["secrets"], word),
        "reads files of /etc that are not for everybody": _reads(["/etc/shadow"], b":"),
        "connects to what listens on this host": _connects(socket.AF_INET, ("127.0.0.1", told["port"])),
        "connects to an abstract socket": _connects(socket.AF_UNIX, "\0" + told["abstract"]),
        "connects to a socket that is a file": _connects(socket.AF_UNIX, told["path"]),
        "signals a process of the worker's user": _kills(told["victim"]),
        "writes through the descriptors of another arm": _in_child(lambda: _writes_through(others)),
        "writes through those of a program that another arm started": _in_child(lambda: _writes_through(programs)),
        "looks into another arm": _in_child(lambda: _first(map(_looks_into, others[:1]))),
        "looks into another arm's supervisor": _in_child(lambda: _first(map(_looks_into, others[1:]))),
        "writes into another arm's folder": _first((_makes(told["folder"]), _writes(told["folder"] + "/repro.py"))),
        "writes into the database and others' caches": _first(map(_writes, told["files"])),
        "writes into its packages": _first((_makes(told["site"]), _writes(told["module"]))),
        "rewrites bytecode that a store shares": _writes(told["bytecode"]),
        "gives a file of a store another name": _links(told["stored"], os.getcwd()),
        "writes into home, /etc and /usr": _first(map(_makes, told["folders"])),
        "rewrites what its interpreter is found by": _first((_writes(told["config"]), _makes(told["bin"]))),
        "leaves files in /tmp for the next arm": told["shared"] if os.path.exists(told["shared"]) else "",
        "opens the kernel's doors for writing": _first(_writes(path) for path in doors),
        "mounts": _in_child(_mounts),
        "mounts as root of a namespace inside": _in_child(_mounts_as_root_inside),
        "enters the host's namespaces": _in_child(lambda: _enters(kinds)),
        "makes a device": _makes_a_device(),
        "sets the host's name": _sets_name(),
        "gains rights by a program that has them": _gains_rights(),
        "climbs out of a descriptor that was left open": _climbs(),
        "asks for the keys of others (keyctl)": _in_child(lambda: _calls(250)),
        "gets by filters (io_uring)": _in_child(lambda: _calls(425)),
        "loads programs into the kernel (bpf)": _in_child(lambda: _calls(321)),
        "listens to the kernel (perf)": _in_child(lambda: _calls(298)),
    }  # fmt: skip
    return got


def control(told):
    """Leaves a file where the next arm may find it."""
    try:
        with open(told["shared"], "x"):
            return {"left": "it"}
    except OSError as refused:
        return {"left": refused.strerror}
