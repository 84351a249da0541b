"""Fills the disk below a path that is longer than any path may be."""

import os
import time


def baseline(depth):
    here = os.open(".", os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    for number in range(24):
        with open(os.open("part%d" % number, os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
            file.write(os.urandom(1 << 20))
    time.sleep(20)
    return {"written": "all"}
