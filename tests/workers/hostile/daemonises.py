"""A daemon by the book, deaf to every signal that can be ignored."""

import os
import signal
import time


def baseline():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            for fd in range(64):
                try:
                    os.close(fd)
                except OSError:
                    pass
            time.sleep(600)
        os._exit(0)
    time.sleep(0.3)
    return {"started": 1}
