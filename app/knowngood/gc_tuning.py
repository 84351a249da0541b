"""Tuning that keeps a process's memory small: how often it looks for garbage in cycles (what is in none goes at once,
as always), and what it gives back to the system.
"""

import ctypes
import gc
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # as malloc.h numbers them


def collect_seldom() -> None:
    """Look after 50,000 new objects instead of 700: for whoever runs a process, when it begins.

    A large matrix makes 20,000 objects that are gone with it, and decoded cells stay. As Python does it unasked, every
    eighth of such pages waited up to 100 ms for all of them to be looked through (100 issues x 40 builds, 2026-11-21).
    Of a command that is soon over, a seventh was looking through what it had just imported (`matrix`: 2.3 s of a busy
    processor instead of 2.7; 2026-11-21).
    """
    gc.set_threshold(50_000, 20, 50)


def leave_quickly() -> None:
    """Look through nothing any more: when Python ends it would look through all that is left, before it frees it. That
    was a quarter of a question to the gate (310 ms of a busy processor instead of 230; 2026-11-23).
    """
    gc.freeze()


def give_back_large_blocks() -> None:
    """Give what a body of megabytes took back to the system with the answer; for a server, before it has threads.

    Left alone, glibc takes a freed block for the size of those to come, keeps as much in each of its arenas, and makes
    eight of them for each processor: 80 MB after thirty bodies of 8 MB, for good (2026-11-27).
    """
    with suppress(OSError, AttributeError):  # another C library, which has other habits
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 1 << 18)
        mallopt(_TRIM_THRESHOLD, 1 << 20)


def keep_what_is_here() -> None:
    """Leave what a server has loaded out of later collections: it stays, once it has begun. A look of 190,000 objects
    took 0.2 s of a busy machine, during which nothing is answered (2026-11-27).
    """
    gc.collect()
    gc.freeze()
