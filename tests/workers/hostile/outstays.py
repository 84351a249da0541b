"""Goes on for ever, deaf to whoever asks it to end, and prints without an end."""

import os
import signal
import time


def baseline(is_loud):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        if is_loud:
            os.write(1, b"x" * (1 << 16))
        else:
            time.sleep(1)
