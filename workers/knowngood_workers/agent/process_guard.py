"""A program that leaves nothing behind: two processes, each of which clears up after the other.

The guard is the process that was started; it waits and passes SIGTERM on. The other one, in a session of its own, does
the work and is the reaper of all that it starts. Kill the guard and the kernel tells the other (SIGHUP); kill the other
and its children fall to the guard. Whoever started the program holds its standard input: the end of it is the end.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from knowngood_workers.standalone import cgroup
from knowngood_workers.standalone.supervisor import adopt_orphans, descendants, destroy, die_with_parent


def run_guarded(work: Callable[[], None]) -> NoReturn:
    """Do `work` in the second process; nothing it started is alive after it."""
    guard = os.getpid()
    worker = os.fork()
    if worker:
        _guard(worker)
    os.setsid()
    adopt_orphans()
    signal.signal(signal.SIGHUP, lambda *_: end_with_everything())
    die_with_parent(signal.SIGHUP, guard)
    try:
        work()
    except SystemExit as wanted:
        if isinstance(wanted.code, str):  # Python itself would say it, and comes to it no more
            sys.stderr.write(f"{wanted.code}\n")
        destroy()
        sys.stderr.flush()
        os._exit(wanted.code if isinstance(wanted.code, int) else 1)
    destroy()
    os._exit(0)  # a thread may still read standard input


def settle() -> None:
    """Before agents are started: where the control group of this process was delegated to it and holds nobody else, let
    arms have theirs below it.
    """
    cgroup.settle(cgroup.own_group(), {os.getpid(), *descendants()})


def _guard(worker: int) -> NoReturn:
    adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(worker, signal.SIGTERM))
    _, status = os.waitpid(worker, 0)
    destroy()
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def end_with_everything() -> NoReturn:
    destroy()
    os._exit(1)


def take_stdout() -> int:
    """Keep standard output for what is meant for the starter: what anything else prints goes to standard error."""
    words = os.dup(1)
    os.dup2(2, 1)
    return words


def write_all(words: int, line: bytes) -> None:
    while line:
        line = line[os.write(words, line) :]


def watch_stdin(is_finished: Callable[[], bool]) -> None:
    """The end of standard input before the work is finished means that nobody wants it any more."""
    while os.read(0, 4096):
        pass
    if not is_finished():
        os.kill(os.getpid(), signal.SIGHUP)
