"""A project's tests run in its environments, isolated and limited as arms are, and what came of it kept beside all
stores: what was run for the same files, packages and command is not run again.
"""

import base64
import json
import shlex
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import IndexUnusable, StoreUnusable
from knowngood.domain.grouping import gathered
from knowngood.domain.issue import digest
from knowngood.domain.measuring.job import ArmFinished, EnvironmentReady, JobEnded, JobStarted
from knowngood.domain.measuring.planning import CONFIRMING
from knowngood.domain.verdicts.outcome import Ending, TroubleCode
from knowngood.measure.here import build_in
from knowngood.measure.jobs import Work
from knowngood.measure.projects.environments import Checkout, Locker, make_environment, versions_in
from knowngood.measure.projects.rules import (
    MOST_REPEATED,
    Comparison,
    Outcome,
    Side,
    SuiteRun,
    is_short,
    problem_of,
)
from knowngood.measure.scripts.rules import Run, read_run
from knowngood.measure.scripts.runner import Script, events_of, host_in_words
from knowngood_workers.common.files import read_json, write_whole
from knowngood_workers.provision.adopted_env import AdoptedEnvironment
from knowngood_workers.provision.resolver import ProvisionFailure
from knowngood_workers.provision.uv_cli import Fault, InstallerFailed

_RUNS = TypeAdapter(tuple[SuiteRun, ...])
ENVIRONMENTS = "environments"
_MARK = "@suite "
_OF_BOTH_SIDES = {TroubleCode.NO_COMPILER, TroubleCode.NO_SETUPTOOLS}
"""Told of an environment as it was locked, or of this machine: what tests then fail, fail on both sides."""

# Ids come from junit's dotted names by what files there are. `tb` is as Python prints it, which is what a known failure
# is recognised by; a file that cannot be collected must not keep the others from being run.
_LAUNCHER = """\
import base64, json, os, shlex, shutil, signal, subprocess, sys, zlib
from xml.etree import ElementTree

command, report = {command!r}, os.path.join(os.getcwd(), "junit.xml")
shutil.copytree(os.path.join(sys.prefix, "project"), "project", symlinks=True)
os.chdir("project")
os.environ["PYTEST_ADDOPTS"] = "--continue-on-collection-errors --maxfail=0 --tb=native --junitxml=" + report
code = subprocess.call(command.replace("{{junit}}", shlex.quote(report)), shell=True)


def name_of(case):
    parts = (case.get("classname") or case.get("name")).split(".")
    for at in range(len(parts), 0, -1):
        file = "/".join(parts[:at]) + ".py"
        if os.path.isfile(file):
            return "::".join([file, *parts[at:], *([case.get("name")] if case.get("classname") else [])])
    return "::".join(filter(None, [case.get("classname"), case.get("name")]))


def end_of(text):  # a traceback is told from what stands below it by its head
    head = "Traceback (most recent call last):\\n  ...\\n"
    return text if len(text) <= 6000 else head + text[-6000:].partition("\\n")[2]


found = []
if os.path.isfile(report):
    for case in ElementTree.parse(report).iter("testcase"):
        bad = [part for part in case if part.tag in ("failure", "error")]
        said = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
        words = "\\n".join(end_of(part.text or part.get("message") or "") for part in bad)
        found.append([name_of(case), said, words if sum(map(len, (each[2] for each in found))) < 600000 else ""])
    print("\\n" + {mark!r} + base64.b85encode(zlib.compress(json.dumps(found).encode())).decode(), flush=True)
number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
if number:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
sys.exit(code)
"""


@dataclass(frozen=True)
class Suite:
    """How a project's tests are run; `tests` are files or ids of pytest (none: all)."""

    command: str
    tests: tuple[str, ...]
    hardware: str
    timeout_s: float
    network: bool

    @property
    def is_pytest(self) -> bool:
        return "pytest" in self.command

    @cached_property
    def key(self) -> str:
        return digest(json.dumps([self.command, self.tests, self.hardware, self.timeout_s, self.network]))

    def script(self, only: Sequence[str]) -> Script:
        chosen = only or self.tests if self.is_pytest else ()
        text = _LAUNCHER.format(command=" ".join([self.command, *map(shlex.quote, chosen)]), mark=_MARK)
        return Script("tests.py", text, (), self.hardware, self.timeout_s)


@dataclass
class Bench:
    """The environments of one project and the runs in each, by its lock. `host` is the machine as it told of itself."""

    work: Work
    checkout: Checkout
    locker: Locker
    suite: Suite
    builds: Sequence[Build]
    place: Path
    stop: Callable[[], bool]
    tell: Callable[[str], None]
    host: str = ""
    made: dict[str, AdoptedEnvironment] = field(default_factory=dict)
    lost: dict[str, Side] = field(default_factory=dict)

    def known(self, lock: str, *, forget: bool = False) -> Side:
        if forget:
            self._file(lock).unlink(missing_ok=True)
        kept = read_json(self._file(lock))
        self.host = kept["host"] if kept else self.host
        return _RUNS.validate_python(kept["runs"]) if kept else ()

    def compared(self, base: str, target: str) -> Comparison:
        """The suite on both sides, and then again what differs; less where it is stopped."""
        for lock in (base, target):
            if not self.known(lock) and not self.stop():
                self._run(lock, (), 1)
        found = Comparison(self._side(base), self._side(target))
        for by_id in (self.suite.is_pytest, False):  # then the whole suite: not every name of junit's is found again
            ids = found.to_repeat
            for lock, side in ((base, found.base), (target, found.target)):
                short = tuple(id_ for id_ in ids if is_short(side, id_))
                if short and not self.stop():
                    self._run(lock, short if by_id and len(ids) <= MOST_REPEATED else (), CONFIRMING)
            found = Comparison(self._side(base), self._side(target))
        return found

    def _side(self, lock: str) -> Side:
        return self.lost.get(lock) or self.known(lock)

    def _run(self, lock: str, only: tuple[str, ...], count: int) -> None:
        try:
            environment = self._environment(lock)
        except (InstallerFailed, ProvisionFailure) as failed:
            if isinstance(failed, InstallerFailed) and failed.fault is Fault.UNREACHABLE:
                raise IndexUnusable(str(failed)) from None
            self.lost[lock] = (_lost(f"its environment cannot be made: {failed}"),)
            return
        build, script = build_in(environment, self.builds), self.suite.script(only)
        if self.suite.hardware.startswith("cuda-") and build.cuda is None:  # its tests of GPUs would all be skipped
            self.lost[lock] = (_lost(f"--gpu asks for CUDA, and torch {build.torch} is built without it"),)
            return
        work = replace(self.work, adopted={build.id: environment.python})
        for event in events_of(work, script.job(build, count), self.stop):
            match event:
                case JobStarted(machine=machine):
                    self.host = f"Python {environment.imported['python']}, {host_in_words(machine)}"
                case EnvironmentReady():
                    self.tell("running the tests")
                case ArmFinished(record=record) if record.trouble and record.trouble.code not in _OF_BOTH_SIDES:
                    self.lost[lock] = (_lost(record.trouble.sentence),)
                case ArmFinished():
                    self._keep(lock, self._read(event, script, build, only))
                case JobEnded() if event.problem and not self.stop():
                    self.lost[lock] = (_lost(event.problem),)

    def _environment(self, lock: str) -> AdoptedEnvironment:
        if lock not in self.made:
            self.tell(f"making the environment with torch {versions_in(lock)['torch']}")
            folder = self.place / ENVIRONMENTS / digest(lock)[:16]
            self.made[lock] = make_environment(self.checkout, folder, self.locker, lock)
        return self.made[lock]

    def _read(self, event: ArmFinished, script: Script, build: Build, only: tuple[str, ...]) -> SuiteRun:
        log, _, packed = event.log.rpartition(_MARK)
        cases: list[tuple[str, str, str]] = []
        with suppress(ValueError, zlib.error):  # the tests wrote what looks like ours, or so much that ours was cut
            cases = json.loads(zlib.decompress(base64.b85decode(packed.strip())))
        end = read_run(event.record, log or event.log, script.text, build)
        said = gathered((id_, Outcome(outcome)) for id_, outcome, _ in cases)
        outcomes = {id_: max(each, key=list(Outcome).index) for id_, each in said.items()}
        texts = {id_: words for id_, _, words in cases if words}
        if not cases and not self.suite.is_pytest and end.ending is Ending.EXITED:
            outcomes[self.suite.command] = Outcome.FAILED if end.fails else Outcome.PASSED
        return SuiteRun(end, outcomes, texts, only, problem_of(end, outcomes, is_pytest=self.suite.is_pytest))

    def _keep(self, lock: str, run: SuiteRun) -> None:
        kept = {"host": self.host, "runs": _RUNS.dump_python((*self.known(lock), run), mode="json")}
        try:
            write_whole(self._file(lock), json.dumps(kept))
        except OSError as error:
            raise StoreUnusable(f"the run cannot be kept: {error.strerror}; {self._file(lock)}") from None

    def _file(self, lock: str) -> Path:
        return self.place / f"{digest(lock + self.suite.key)}.json"


def _lost(problem: str) -> SuiteRun:
    """Nothing was run. It is not kept: the next time may go better."""
    return SuiteRun(Run(Ending.NOT_STARTED, None, "", "", "", 0.0), problem=problem)
