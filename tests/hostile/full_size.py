"""The cost of each hostile text at its full size, read by a process of its own.

`.venv/bin/python -m tests.hostile.full_size [NAME ...]` prints processor seconds, and megabytes on top of those of a
process that has the readers loaded.
"""

import resource
import subprocess
import sys
import time

from tests.hostile.shapes import CRITICAL, OTHERS

_MOST_S, _MOST_BYTES = 60, 6 << 30  # of a reader that never ends


def _measure(name: str) -> None:
    from tests.hostile.reading import read

    made = next(one for one in (*CRITICAL, *OTHERS) if one.__name__ == name)()
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_S, _MOST_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    read(("requirements.txt", b"torch==2.6.0"))
    held, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        told = read(made)
    except MemoryError:
        told = "out of memory"
    took = time.process_time() - began
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) >> 10
    sys.stdout.write(f"{name:24} {len(made[1]):>9,} B {took:8.2f} s {more:6,} MB  {told[:90]}\n")


def main(names: list[str]) -> None:
    for name in names or [one.__name__ for one in (*CRITICAL, *OTHERS)]:
        done = subprocess.run([sys.executable, "-m", __spec__.name, "--one", name], check=False)
        if done.returncode:
            sys.stdout.write(f"{name:24} did not end within {_MOST_S} s of a processor and {_MOST_BYTES >> 30} GB\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _measure(sys.argv[2])
    else:
        main(sys.argv[1:])
