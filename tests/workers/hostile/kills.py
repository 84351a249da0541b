"""Kills its parent, every process it can see, and then everybody.

Only where it is in processes of its own: were it not, this would end the machine that the tests run on.
"""

import os
import signal


def baseline():
    alone = os.getppid() == 0 and os.readlink("/proc/self") == str(os.getpid()) and os.getpid() < 10
    if not alone:
        raise RuntimeError("it sees other processes, and kills none")
    refused = []
    for process in [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(int(process), number)
            except OSError as problem:
                refused.append(problem.strerror)
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError as problem:
        refused.append(problem.strerror)
    left = [name for name in os.listdir("/proc") if name.isdigit()]
    return {"left": len(left), "refused": len(refused)}
