"""The ways out of containers that a call or a file has been, opened and not gone through."""

import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)
NEWUSER = 0x10000000
KEYCTL, IO_URING_SETUP, BPF, PERF = 250, 425, 321, 298


def _opens(path, flags=os.O_WRONLY):
    try:
        os.close(os.open(path, flags))
        return path
    except OSError:
        return ""


def _enters(path, kind):
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    return path if libc.setns(fd, kind) == 0 else ""


def _refused(result):
    return errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else "allowed"


def baseline():
    written = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
               "/proc/1/mem", "/sys/power/state", "/etc/ld.so.preload", "/dev/mem", "/dev/vda", "/dev/sda"]  # fmt: skip
    read = ["/proc/1/root/etc", "/proc/1/cwd", "/proc/1/environ", "/proc/1/fd/0", "/proc/kcore", "/etc/shadow"]
    open_ = [_opens(path) for path in written if path != "/etc/shadow"] + [
        _opens(path, os.O_RDONLY) for path in read[:-1]
    ]
    try:
        open_.append("/etc/shadow" if open(read[-1]).read() else "")
    except OSError:
        pass
    for name, kind in (("mnt", 0x20000), ("net", 0x40000000), ("pid", 0x20000000), ("user", NEWUSER)):
        open_.append(_enters("/proc/1/ns/" + name, kind))
    try:
        os.mknod("disk", 0o60600, os.makedev(8, 0))
        open_.append("mknod")
    except OSError:
        pass
    open_.append("ptrace" if libc.ptrace(16, 1, 0, 0) == 0 else "")
    told = {"open": " ".join(filter(None, open_)), "tasks": open("/proc/sys/kernel/pid_max").read().strip()}
    if os.fork() == 0:
        os._exit(libc.unshare(NEWUSER) == 0)
    told["user namespace"] = "allowed" if os.wait()[1] else "refused"
    for name, number in (("keyctl", KEYCTL), ("io_uring", IO_URING_SETUP), ("bpf", BPF), ("perf", PERF)):
        told[name] = _refused(libc.syscall(number, 0, 0, 0, 0, 0))
    return told
