"""Writes small files without an end (well, 64 MB), or into one folder until it is refused; `shut` opens the folder for
each file alone.
"""

import os
import time


def baseline(folder, wait, shut=False):
    written = 0
    if shut:
        os.mkdir(folder)
    try:
        for number in range(64):
            if shut:
                os.chmod(folder, 0o700)
            with open(os.path.join(folder or ".", "part%d" % number), "wb") as file:
                file.write(os.urandom(1 << 20))
            if shut:
                os.chmod(folder, 0)
            written += 1
    except OSError as refused:
        return {"written": written, "refused": refused.strerror}
    time.sleep(wait)
    return {"written": written}
