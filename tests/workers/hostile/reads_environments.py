"""Reads its own variables and those of every process it can see."""

import os
import pathlib


def baseline():
    seen = ["{}={}".format(*item) for item in os.environ.items()]
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    for process in processes:
        try:
            seen.append(pathlib.Path("/proc", process, "environ").read_bytes().decode(errors="replace"))
        except OSError:
            pass
    print(*seen, sep="\n")
    return {"processes": len(processes)}
