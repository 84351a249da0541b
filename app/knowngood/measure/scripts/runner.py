"""A script run on builds, isolated and limited as arms are, and what came of it kept beside all stores.

Whatever it does it says nothing about an issue of the catalogue: no store ever sees it. What was run for the same text,
packages and time limit is not run again.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Event as ThreadEvent
from threading import Thread

from pydantic import TypeAdapter

from knowngood.cli.context import root
from knowngood.cli.signals import wait
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest, StoreUnusable
from knowngood.domain.issue import BASELINE, EnvironmentRequest, digest
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmSpec,
    EnvironmentReady,
    Event,
    JobEnded,
    JobSpec,
    JobStarted,
    PlannedArm,
    Provisioning,
)
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.measuring.planning import PlannedJob
from knowngood.domain.verdicts.outcome import Trouble, TroubleCode
from knowngood.domain.vocabulary import many
from knowngood.measure.jobs import Work, transport
from knowngood.measure.scripts.rules import Run, Tried, load_trouble, read_run
from knowngood_workers.common.files import read_json, write_whole
from knowngood_workers.dispatch.local_transport import AgentLost

MOST_BYTES = 1 << 20
_RUNS = TypeAdapter(tuple[Run, ...])

# The harness has checked the build by then; what follows is the script as `python bug.py` runs it, in the same process.
# In a folder of its own, because beside an arm stand folders with names of packages.
_LAUNCHER = """\
import os, sys
os.mkdir("script")
path = os.path.join("script", {name!r})
with open(path, "w", encoding="utf-8", newline="") as file:
    file.write({text!r})
os.execv(sys.executable, [sys.executable, "-u", "-X", "faulthandler", path])
"""


@dataclass(frozen=True)
class Script:
    """A script with all that decides what a run of it does."""

    name: str
    text: str
    packages: tuple[str, ...]
    hardware: str
    timeout_s: float

    @cached_property
    def key(self) -> str:
        return digest(json.dumps([self.text, self.packages, self.hardware, self.timeout_s]))

    def planned(self, build: Build) -> PlannedJob:
        """One run, as what is priced."""
        arm = PlannedArm(self.name, BASELINE, "default", 1, self.key)
        return PlannedJob(build, self.hardware, EnvironmentRequest(build.id, self.packages, (), mutates=False), (arm,))

    def job(self, build: Build, count: int) -> JobSpec:
        launcher = _LAUNCHER.format(name=self.name, text=self.text)
        arms = (
            ArmSpec(str(at), self.name, BASELINE, "default", at, self.key, self.key, {}, {}, (), self.timeout_s)
            for at in range(count)
        )
        request = self.planned(build).request
        return JobSpec(self.key, 1, build, self.hardware, request, {self.key: launcher}, tuple(arms))


def events_of(work: Work, job: JobSpec, stop: Callable[[], bool]) -> Iterator[Event]:
    """Have a job done here, outside of any store; it ends soon after it is to `stop`."""
    handle, over = transport(work).start(job), ThreadEvent()

    def listen() -> None:
        wait(lambda: stop() or over.is_set())
        handle.cancel()

    Thread(target=listen, daemon=True).start()
    try:
        yield from handle.events()
    except AgentLost:  # told to stop before it had learned to listen
        if not stop():
            raise
    finally:
        over.set()


def host_in_words(machine: Machine) -> str:
    return f"{machine.in_words(many(machine.cores, 'core'))}, isolation {machine.isolation}"


def read_script(path: Path) -> str:
    """Raises BadRequest where it is no script that can be sent to a worker."""
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES or not raw.strip() or b"\0" in raw:
        wrong = "is larger than 1 MiB" if len(raw) > MOST_BYTES else "holds a NUL byte" if raw.strip() else "is empty"
        raise BadRequest(f"{path} {wrong}; name a Python script, cut down to what fails")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is no UTF-8 text (byte {error.start}); save it as UTF-8") from None


@dataclass(frozen=True)
class Runner:
    """Runs one script here. Each result is kept before the next run begins, so that Ctrl-C loses nothing."""

    work: Work
    script: Script
    stop: Callable[[], bool]
    tell: Callable[[str], None]

    def known(self, build: Build, *, forget: bool) -> Tried:
        if forget:
            self._file(build).unlink(missing_ok=True)
        kept = read_json(self._file(build))
        return Tried(build, _RUNS.validate_python(kept["runs"]), kept["imported"]) if kept else Tried(build)

    def run(self, tried: Tried, count: int) -> Tried:
        """So many more runs; fewer where it is stopped or the environment cannot be made."""
        host = ""
        for event in events_of(self.work, self.script.job(tried.build, count), self.stop):
            match event:
                case JobStarted(machine=machine):
                    host = host_in_words(machine)
                case Provisioning():
                    self.tell(f"{event.phase} {event.detail}")
                case EnvironmentReady():
                    tried = Tried(tried.build, tried.runs, {**event.imported, "host": host})
                    self.tell("running")
                case ArmFinished():
                    tried = self._with(tried, event)
                case JobEnded() if event.problem and not self.stop():
                    tried = Tried(tried.build, tried.runs, tried.imported, Trouble(TroubleCode.HARNESS, event.problem))
        return tried

    def _with(self, tried: Tried, event: ArmFinished) -> Tried:
        record = event.record
        trouble = record.trouble or load_trouble(record.ending, os.getloadavg()[0], os.cpu_count() or 1)
        if trouble:
            return Tried(tried.build, tried.runs, tried.imported, trouble)
        run = read_run(record, event.log, self.script.text, tried.build)
        tried = Tried(tried.build, (*tried.runs, run), tried.imported, tried.trouble)
        kept = {
            "script": self.script.name,
            "imported": tried.imported,
            "runs": _RUNS.dump_python(tried.runs, mode="json"),
        }
        try:
            write_whole(self._file(tried.build), json.dumps(kept))
        except OSError as error:
            raise StoreUnusable(f"the run cannot be kept: {error.strerror}; {self._file(tried.build)}") from None
        return tried

    def _file(self, build: Build) -> Path:
        return root(self.work.settings) / "try" / self.script.key / f"{build.id}.json"
