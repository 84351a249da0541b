"""A stand-in for the agent that speaks its protocol and provisions nothing: `python toy_agent.py`.

What an arm does stands in its variant's parameters: `does` is one of pass, match, die (SIGKILL to itself), exit, hang,
babble (a line that is no event), leave (the job ends with the arm undone), deaf (it does not hear SIGTERM); `takes_s`
is how long it takes, `until` a file without which it does not end. Each arm runs a child in a session of its own, as
the real one does; the child dies with its parent. Every arm that is begun is appended to `worker_config["ledger"]`, a
file, with the numbers of the processes.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmSpec,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobSpec,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.verdicts.outcome import Ending, Outcome
from knowngood.serialization import codec
from tests.make import make_record

MACHINE = Machine("Toy", "none", 1, 1 << 30, "none", "none", "none", "")
PR_SET_PDEATHSIG = 1

cancelled = threading.Event()


def say(event: Event) -> None:
    sys.stdout.buffer.write(codec.dump_event(event) + b"\n")
    sys.stdout.buffer.flush()


def die_with(parent: int) -> None:
    """In a child: end with its parent, also where that one has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def leave_when_alone() -> None:
    """The dispatcher holds the other end of our standard input; its end is the dispatcher's."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


def run(spec: JobSpec, worker_config: dict[str, Any]) -> None:
    say(JobStarted(spec.job, spec.try_no, MACHINE))
    for phase in ("resolve", "sync"):
        say(Provisioning(spec.job, spec.try_no, phase))
        time.sleep(worker_config.get("provision_s", 0.0) / 2)
    lock = f"lock of {spec.build.id}"
    say(EnvironmentReady(spec.job, spec.try_no, lock, "e" * 32, {"torch": spec.build.torch}, {}, 0.1))
    for arm in spec.arms:
        if cancelled.is_set():
            say(JobEnded(spec.job, spec.try_no, "cancelled"))
            return
        if arm.params.get("does") == "leave":
            break
        attempt(spec, arm, worker_config)
    say(JobEnded(spec.job, spec.try_no))


def attempt(spec: JobSpec, arm: ArmSpec, worker_config: dict[str, Any]) -> None:
    started_at = datetime.now(UTC)
    say(ArmStarted(spec.job, spec.try_no, arm.attempt, started_at))
    child = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)", *sys.argv[1:]],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(die_with, os.getpid()),  # noqa: PLW1509 - no other thread of a toy holds a lock
    )
    try:
        with Path(worker_config["ledger"]).open("a") as ledger:
            ledger.write(f"{arm.attempt} {os.getpid()} {child.pid}\n")
        outcome = perform(arm)
    finally:
        child.kill()
        child.wait()
    record = make_record(Outcome.CANCELLED if cancelled.is_set() else outcome, spec.build, wall_s=0.1)
    if cancelled.is_set():
        assert record.ending is Ending.CANCELLED
    log = f"{arm.arm} of {arm.issue}\n"
    end = datetime.now(UTC)
    say(ArmFinished(spec.job, spec.try_no, arm.attempt, record, log, "e" * 32, MACHINE.digest, started_at, end))


def perform(arm: ArmSpec) -> Outcome:
    match arm.params.get("does", "pass"):
        case "die":
            os.write(2, b"about to die\n")
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os.write(2, b"no more room\n")
            os._exit(7)
        case "babble":
            os.write(1, b"Segmentation fault\n")
        case "hang":
            cancelled.wait(600)
        case "deaf":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            time.sleep(600)
        case other:
            cancelled.wait(float(arm.params.get("takes_s", 0.0)))
            while (until := arm.params.get("until")) and not Path(str(until)).exists():
                cancelled.wait(0.02)
            return Outcome.MATCH if other == "match" and arm.arm == "baseline" else Outcome.PASS
    return Outcome.PASS


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: cancelled.set())
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=leave_when_alone, daemon=True).start()
    run(codec.load_spec(order["spec"]), order["worker_config"])


if __name__ == "__main__":
    main()
