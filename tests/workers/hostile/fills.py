"""Writes small files without an end (well, 64 MB), or into one folder until it is refused."""

import os
import time


def baseline(folder, wait):
    written = 0
    try:
        for number in range(64):
            with open(os.path.join(folder or ".", "part%d" % number), "wb") as file:
                file.write(os.urandom(1 << 20))
            written += 1
    except OSError as refused:
        return {"written": written, "refused": refused.strerror}
    time.sleep(wait)
    return {"written": written}
