"""Lists what was left open for it, and tries to climb out of every folder among them."""

import os
import stat


def baseline():
    kinds, climbed = [], []
    for fd in range(256):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue
        kinds.append("folder" if stat.S_ISDIR(mode) else "socket" if stat.S_ISSOCK(mode) else "other")
        try:
            climbed += os.listdir(os.open("../../../../..", os.O_RDONLY, dir_fd=fd))
        except OSError:
            pass
    return {"kinds": " ".join(kinds), "climbed": len(climbed)}
