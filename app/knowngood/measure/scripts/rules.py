"""The rules for the runs of one script: the same failure or another, where it begins, and what to run again to be sure.

A script that exits with 0 runs, whatever it prints; anything else fails. What is said is compared in cleaned form, and
always with what the newest release says: the failures of old ones are often of another kind.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import combinations, pairwise, takewhile

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import AS_A_RULE
from knowngood.domain.measuring.planning import CONFIRMING, SETTLING
from knowngood.domain.message import Message
from knowngood.domain.observations import is_alike
from knowngood.domain.verdicts.failure_text import without_source
from knowngood.domain.verdicts.outcome import Ending, RunRecord, Trouble, TroubleCode
from knowngood.domain.verdicts.verdict import Cell, Verdict
from knowngood.domain.vocabulary import many
from knowngood.environments.log_cleaning import read_paste
from knowngood.measure.bisection.search import Point, Search

LINE_CHARACTERS, OUTPUT_CHARACTERS, _ALIKE = 400, 20_000, 0.9
_MOST_OF_ITS_OWN = 3  # processes that want a core, for each core

_NOISE = re.compile(r"\S+:\d+: \w*Warning: |[IWE]\d{4} \d\d:\d\d:\d\d|\[W\d+[- ]")
_WRAPPER = re.compile(
    r"(?:[\w.]+\.)?(?:BackendCompilerFailed|InductorError|LoweringException|TorchRuntimeError|InternalTorchDynamoError"
    r"|TorchDynamoException)(?:: backend='[^']*' raised)?:\s+(?=\S)"
)
_MODULES = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")
_VARYING = ((re.compile(r"(?:\$\w+|~)?(?:/[\w.+-]+)+"), "/"), (re.compile(r"0x[0-9a-f]+|\d[\d.]*(?:e[-+]?\d+)?"), "0"))
_ADDRESS = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """One run of the script: how its process ended, and what it said. `line` is the error's own line of a failure and
    the last one of any other output; `output` is that output without warnings, addresses and the version of torch.
    """

    ending: Ending
    exit_code: int | None
    signal: str
    line: str
    output: str
    seconds: float

    @property
    def fails(self) -> bool:
        return self.ending is not Ending.EXITED or self.exit_code != 0

    @property
    def how(self) -> str:
        """`exit 1`, `SIGSEGV`, `timed out`."""
        return self.signal or (f"exit {self.exit_code}" if self.ending is Ending.EXITED else _ENDINGS[self.ending])


_ENDINGS = {
    Ending.TIMED_OUT: "timed out",
    Ending.OVER_MEMORY: "over the memory limit",
    Ending.OVER_PROCESSES: "over the limit of processes",
    Ending.OVER_DISK: "over the disk limit",
}


@dataclass(frozen=True)
class Tried:
    """A build and all runs of the script on it. `imported` is what a process in the environment reported, and `host`
    in it is the machine; `trouble` is what kept the script from being run there, as far as it was (None: nothing).
    """

    build: Build
    runs: tuple[Run, ...] = ()
    imported: Mapping[str, str] = field(default_factory=dict)
    trouble: Trouble | None = None

    @property
    def revision(self) -> str:
        """Of the wheel, by its own word."""
        return self.imported.get("git") or self.build.git

    @property
    def failures(self) -> int:
        return sum(run.fails for run in self.runs)


class Result(StrEnum):
    FAILS = "fails"
    COMES_AND_GOES = "comes and goes"
    FAILS_OTHERWISE = "fails otherwise"
    OTHER_OUTPUT = "other output"
    RUNS = "runs"
    NOT_RUN = "not run"


Row = tuple[Tried, Result]


def read_run(record: RunRecord, log: str, script: str, build: Build) -> Run:
    """The end and the words of a process, in the form that is compared."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip() and not _NOISE.search(line)]
    fails = record.ending is not Ending.EXITED or record.exit_code != 0
    line = error_line(read_paste(without_source(log, script)).lines) if fails else "".join(lines[-1:])
    output = _ADDRESS.sub("0x", "\n".join(lines)).replace(build.torch, "").replace(build.requirement, "")
    return Run(
        record.ending,
        record.exit_code,
        record.signal if record.ending is Ending.SIGNALLED else "",
        "".join(sign if sign.isprintable() else " " for sign in line.strip()[:LINE_CHARACTERS]),
        output[-OUTPUT_CHARACTERS:],
        round(record.wall_s, 1),
    )


def error_line(lines: Sequence[str]) -> str:
    """The line of the last exception that was printed, with the one after it where that is its cause; else the last
    line of all. Hints of torch stand below it, and the stacks of a crash: the last line is not always the error's.
    """
    lines = list(takewhile(lambda line: not line.startswith("Fatal Python error"), lines)) or lines[:1]
    at = max((at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line), default=-1)
    own = [line for line in lines[at + 1 :] if line.strip() and not line[0].isspace()] if at >= 0 else []
    if not own:
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return " ".join(own[:2]) if own[0].endswith(("raised:", "Error:")) else own[0]


def likeness(line: str, masks: Iterable[tuple[re.Pattern[str], str]] = _VARYING) -> str:
    """An error's line without what differs between releases and hosts though the failure is the same: the wrapping
    exceptions, modules, and with `masks` paths and numbers.
    """
    while (bare := _WRAPPER.sub("", line, count=1)) != line:
        line = bare
    line = _MODULES.sub("", line)
    for pattern, mark in masks:
        line = pattern.sub(mark, line)
    return " ".join(line.split())


def is_same_failure(run: Run, other: Run) -> bool:
    """Processes that were killed are alike by what killed them, others by the error's cleaned line: the same exception,
    and all but one word in ten. A long message tells of the state too, such as whether something was left on or off.
    """
    if Ending.EXITED not in {run.ending, other.ending}:
        return (run.ending, run.signal) == (other.ending, other.signal)
    (kind, *words), (other_kind, *others) = (likeness(each.line).split() or [""] for each in (run, other))
    return (run.ending, kind) == (other.ending, other_kind) and SequenceMatcher(None, words, others).ratio() >= _ALIKE


def load_trouble(ending: Ending, load: float, cores: int) -> Trouble | None:
    """Say that a time limit was reached because others used the machine: the script alone, with the compilers that it
    starts, asks for no more than two or three times the cores.
    """
    if ending is not Ending.TIMED_OUT or load <= _MOST_OF_ITS_OWN * cores:
        return None
    return Trouble(
        TroubleCode.HARNESS,
        f"timed out while {load:.0f} processes shared {many(cores, 'core')}, which says nothing of the script; "
        "run it again when the machine is quieter, or with a longer --timeout",
    )


def is_same_output(run: Run, other: Run) -> bool:
    """By words, and by numbers within a thousandth."""
    return is_alike(AS_A_RULE, run.output, other.output)


def results_of(tried: Sequence[Tried]) -> list[Result]:
    """The result of each build, oldest first. An output that differs between two runs on one build is compared with
    none.
    """
    failures = [run for each in tried for run in each.runs if run.fails]
    steady = [each.runs for each in tried if each.runs and not each.failures]
    compares = all(is_same_output(*pair) for runs in steady for pair in combinations(runs, 2))

    def result(each: Tried) -> Result:
        if not each.runs:
            return Result.NOT_RUN
        if not each.failures:
            is_other = compares and not is_same_output(each.runs[-1], steady[-1][-1])
            return Result.OTHER_OUTPUT if is_other else Result.RUNS
        if not any(run.fails and is_same_failure(run, failures[-1]) for run in each.runs):
            return Result.FAILS_OTHERWISE
        return Result.FAILS if each.failures == len(each.runs) else Result.COMES_AND_GOES

    return [result(each) for each in tried]


def sides_of(results: Iterable[Result]) -> Mapping[Result, bool]:
    """Whether a build with that result has what the script shows; what is missing tells neither. That is the newest
    failure, and where nothing fails the older output. Another failure tells only where all builds fail.
    """
    every = {*results} - {Result.NOT_RUN}
    sides = {Result.FAILS: True, Result.COMES_AND_GOES: True, Result.RUNS: False}
    sides[Result.OTHER_OUTPUT] = every == {Result.RUNS, Result.OTHER_OUTPUT}
    return sides if every & {Result.RUNS, Result.OTHER_OUTPUT} else {**sides, Result.FAILS_OTHERWISE: False}


def missing_runs(rows: Sequence[Row]) -> dict[str, int]:
    """By build: the runs still to make. One is enough where all builds agree; three on both sides of a difference, and
    ten where the script fails only now and then.
    """
    wanted = {each.build.id: SETTLING if result is Result.COMES_AND_GOES else 1 for each, result in rows}
    for (before, was), (after, is_now) in pairwise((each, result) for each, result in rows if each.runs):
        if was is not is_now:
            wanted |= {side.build.id: max(wanted[side.build.id], CONFIRMING) for side in (before, after)}
    missing = {each.build.id: wanted[each.build.id] - len(each.runs) for each, _ in rows if not each.trouble}
    return {id_: count for id_, count in missing.items() if count > 0}


def search_in(tried: Sequence[Tried], jobs: int = 0) -> Search:
    """The line of builds as `bisect` searches it; open are those that were neither run nor kept from it by a trouble.

    Another failure tells nothing there, and is stepped around.
    """
    results = results_of(tried)
    sides = sides_of(results)

    def point(each: Tried, result: Result) -> Point:
        silent = Verdict.DIFFERENT_FAILURE if each.runs else Verdict.NOT_RUN
        verdict = silent if result not in sides else Verdict.AFFECTED if sides[result] else Verdict.NOT_AFFECTED
        cell = Cell("", each.build.id, "", verdict, Message("not_run"))
        return Point(each.build, cell, is_open=not each.runs and each.trouble is None)

    return Search(tuple(map(point, tried, results)), jobs)
