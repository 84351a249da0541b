"""Leaves what is hard to remove: depth, closed folders, undecodable names, pipes, sockets, links, times to come."""

import fcntl
import os
import socket
import struct
import time


def _deep(depth):
    here = os.open(".", os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with open(os.open("last", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("here")
    os.close(here)


def _closed():
    os.makedirs("closed/inner/innermost")
    with open("closed/inner/innermost/file", "w") as file:
        file.write("here")
    for path in ("closed/inner/innermost", "closed/inner", "closed"):
        os.chmod(path, 0)


def _immutable():
    """Where it may: as root without namespaces."""
    with open("immutable", "w") as file:
        try:
            fcntl.ioctl(file, 0x40086602, struct.pack("L", 0x10))
        except OSError as refused:
            return refused.strerror
    return "made"


def baseline(depth):
    _deep(depth)
    _closed()
    os.mkdir(b"\xff\xfe\n\x01")
    os.mkfifo("teardown.txt")
    os.mkdir("home/" + "n" * 255)
    os.symlink("/", "root-of-all")
    os.symlink("loop", "loop")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    told = _immutable()
    later = time.time() + 1e9
    os.utime(".", (later, later))
    os.chmod(".", 0)
    return {"immutable": told}
