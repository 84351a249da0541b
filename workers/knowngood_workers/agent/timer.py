"""Seconds of one arm, from as many fresh processes as are asked for: the talk with `standalone/timing.py`.

It is for scripts that somebody here has read: they run in a folder of their own with the variables of an arm, and are
not shut off from the host. A sandbox takes time too, and not always the same.
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import IO, Any, cast

from knowngood_workers.agent.arm_runner import RunLocation, arm_environment
from knowngood_workers.standalone import supervisor

_TIMING = Path(supervisor.__file__).with_name("timing.py")

BUSY = 0.1
"""The share of a core that others may take while nothing is measured."""

_STEPS = 10
_LOOK_S = 1.0


class NoTime(Exception):
    """Why nothing was timed."""


class Timer(contextlib.AbstractContextManager["Timer"]):
    """A process that has imported torch, and forks the processes that are timed."""

    def __init__(self, place: RunLocation, scratch: Path, script: Path, env: Mapping[str, str]) -> None:
        self._script = script
        with (scratch / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(
                [place.python, _TIMING, script],
                env=arm_environment(place, scratch, env),
                cwd=scratch,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._in, self._out = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def order(self, order: Mapping[str, Any]) -> None:
        """Have a fresh process made; `told` says how far it came."""
        self._write(json.dumps({"script": str(self._script), **order}) + "\n")

    def step(self) -> float:
        """The seconds of one call."""
        self._write("s")
        told = self.told()
        if "s" not in told:
            raise NoTime(told.get("why", "it ended early"))
        return float(told["s"])

    def go_on(self) -> None:
        self._write("g")

    def told(self) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = json.loads(self._out.readline() or '{"why": "torch was not imported"}')
        return answer

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._in.write(text)
            self._in.flush()


class Trio(contextlib.AbstractContextManager["Trio"]):
    """The timers of the three sides of a block: without, with, without.

    Forks have the memory layout of the process they come from, and by it alone two of them differ by 2 to 5 % (of 300
    comparisons with nothing between them 5 found something, H200's host, 2026-11-29). So the three change places from
    block to block, and new ones are started after a few; where the sides differ in variables, which are read when torch
    is imported, there are new ones for every block. `arms` are the functions of the sides, each with its variables.
    """

    def __init__(
        self,
        place: RunLocation,
        scratch: Path,
        script: str,
        arms: Sequence[tuple[str, Mapping[str, str]]],
        kept: int = 5,
    ) -> None:
        self._place = place
        self._scratch = scratch
        self._script = scratch / "repro.py"
        self._script.write_text(script, encoding="utf-8")
        self._arms = arms
        self._are_alike = all(env == arms[0][1] for _, env in arms)
        self._kept = kept if self._are_alike else 1
        self._timers: list[Timer] = []

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.__exit__()

    def block(self, number: int, of: str, **order: object) -> tuple[tuple[float, ...], Sequence[Mapping[str, Any]]]:
        """As `in_step`, in the order of the arms whatever the order they ran in. Raises NoTime."""
        if number % self._kept == 0 or not self._timers:
            self.__exit__()
            self._timers = [Timer(self._place, self._scratch, self._script, env) for _, env in self._arms]
        turns = number if self._are_alike else 0
        timers = [self._timers[(side + turns) % len(self._timers)] for side in range(len(self._timers))]
        orders = [{**order, "function": arm, "of": of, "env": self._caches(arm)} for arm, _ in self._arms]
        way = slice(None, None, 1 if number % 2 == 0 else -1)
        seconds, told = in_step(timers[way], orders[way])
        return seconds[way], told[way]

    def _caches(self, arm: str) -> Mapping[str, str]:
        return {name: str(self._scratch / arm / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}


def in_step(
    timers: Sequence[Timer], orders: Sequence[Mapping[str, Any]]
) -> tuple[tuple[float, ...], list[Mapping[str, Any]]]:
    """A fresh process of each timer, asked in turn for what they time. Returns each one's seconds (none where they do
    not time equally many calls), and the last words of all. Raises NoTime.
    """
    for timer, order in zip(timers, orders, strict=True):
        timer.order(order)
    seconds, told = [0.0] * len(timers), [timer.told() for timer in timers]
    is_equal = True
    while any("ready" in each for each in told):
        ready = [at for at, each in enumerate(told) if "ready" in each]
        is_equal = is_equal and len(ready) == len(timers)
        if is_equal:
            steps = [[timer.step() for timer in timers] for _ in range(_STEPS)]
            seconds = [
                total + geometric_mean(own) for total, own in zip(seconds, zip(*steps, strict=True), strict=True)
            ]
        for at in ready:
            timers[at].go_on()
        for at in ready:
            told[at] = timers[at].told()
    if failed := [each["why"] for each in told if "why" in each]:
        raise NoTime(failed[0])
    return (tuple(seconds) if is_equal and all(seconds) else ()), told


def busy_cores(cores: Sequence[int]) -> Sequence[int]:
    """Those of the cores that others use now."""

    def idle() -> dict[int, int]:
        lines = (line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines())
        return {int(name[3:]): int(words[3]) for name, *words in lines if name[:3] == "cpu" and name[3:]}

    before, began = idle(), time.monotonic()
    time.sleep(_LOOK_S)
    after, ticks = idle(), (time.monotonic() - began) * _TICKS
    return [core for core in cores if after[core] - before[core] < (1 - BUSY) * ticks]


_TICKS = 100  # of /proc/stat in a second
