"""Takes more memory than it may, each way in which none of it is to be seen in its own size."""

import ctypes
import mmap
import os
import socket
import tempfile
import time

libc = ctypes.CDLL(None, use_errno=True)
PIECE = 1 << 20


def _fill(fd, size):
    for _ in range(size // PIECE):
        os.write(fd, bytes(PIECE))


def plainly(size):
    return b"x" * size


def in_a_file_of_no_folder(size):
    fd = os.memfd_create("hidden")
    _fill(fd, size)
    return fd


def in_a_mapped_file_that_is_closed(size):
    fd = os.memfd_create("hidden")
    _fill(fd, size)
    mapped = mmap.mmap(fd, size)
    os.close(fd)
    return mapped


def in_pages_that_a_dead_child_touched(size):
    shared = mmap.mmap(-1, size)
    pid = os.fork()
    if pid == 0:
        shared.write(bytes(size))
        os._exit(0)
    os.waitpid(pid, 0)
    return shared


def in_a_segment_that_nobody_has_attached(size):
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(0, ctypes.c_size_t(size), 0o1600)
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, size)
    libc.shmdt(ctypes.c_void_p(place))
    return segment


def in_files_of_shared_memory(size):
    fd, path = tempfile.mkstemp(dir="/dev/shm")
    os.unlink(path)
    _fill(fd, size)
    return fd


def in_many_children(size):
    have_taken, says = os.pipe()
    for _ in range(8):
        if os.fork() == 0:
            taken = b"x" * (size // 8)
            os.write(says, b"x")
            time.sleep(60)
            os._exit(len(taken) == 0)
    told = [os.read(have_taken, 1) for _ in range(8)]
    return told


def on_its_way_through_a_socket(size):
    ours, theirs = socket.socketpair()
    for _ in range(8):
        fd = os.memfd_create("hidden")
        _fill(fd, size // 8)
        socket.send_fds(ours, [b"x"], [fd])
        os.close(fd)
    return (ours, theirs)


def baseline(how, size, wait):
    try:
        kept = globals()[how](size)
    except OSError:
        return {"kept": "nothing"}
    time.sleep(wait)
    return {"kept": bool(kept) or "it"}
