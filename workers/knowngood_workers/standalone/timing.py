# ruff: noqa: ANN401
# As the harness: inside the build under test, with the standard library of Python 3.9 alone.
"""Time arms of a script, in step with other processes that do the same: each of them is asked in turn for some 5 ms of
calls, so that whatever slows this machine down for a moment slows all of them down.

Torch is imported once, with what compiles if the script on the command line does; then every order, a line of JSON on
standard input, is done by a fork. It names the script, the
function, its `params`, the default `device`, the `cores` to get ready on and the `core` to be timed on (None: all of
these), and `of`: `calls` repeats each call into what torch.compile made of something, where it stands; `whole` repeats
the arm, with its inputs and its check. The first call, which compiles, is apart (`first_s`).

An order is answered by `{"ready": true}` when there is something to time. Then every byte `s` asks for a step, whose
answer is the seconds of one call, and `g` to go on: to the next `ready`, or to the `end`. `env` names the caches, which
all processes of one arm share.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_STEP_S = 0.005  # so that looking at the clock takes no time
_MOST_CALLS = 4  # of one arm that are repeated; more of them take longer than anybody waits

_Call = Callable[[], Any]


class _Gradient(Exception):
    """A call's result wants a gradient: half of its work comes later."""


class _Steps:
    """The talk about what is timed. `recompiled` is whether anything was compiled meanwhile, or the time is none for
    another reason.
    """

    def __init__(self, torch: Any, order: Mapping[str, Any], told: int) -> None:
        self.recompiled = False
        self.timed = 0
        self._torch = torch
        self._order = order
        self._told = told
        self.finish: _Call = torch.cuda.synchronize if os.environ["CUDA_VISIBLE_DEVICES"] else lambda: None

    def tell(self, what: Mapping[str, Any]) -> None:
        os.write(self._told, json.dumps(what).encode() + b"\n")

    def take(self, call: _Call) -> None:
        if self.timed == _MOST_CALLS:
            return
        cores, core = self._order["cores"], self._order["core"]
        os.sched_setaffinity(0, cores if core is None else [core])
        count = 1
        while self._step(call, count) < _STEP_S:  # which warms up too
            count *= 2
        before = self._compilations()
        self.tell({"ready": True})
        while os.read(0, 1) == b"s":
            self.tell({"s": self._step(call, count) / count})
        self.recompiled = self.recompiled or self._compilations() != before
        self.timed += 1
        os.sched_setaffinity(0, cores)

    def _step(self, call: _Call, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            call()
        self.finish()
        return time.perf_counter() - began

    def _compilations(self) -> int:
        return int(self._torch._dynamo.utils.counters["frames"]["total"])  # noqa: SLF001


@contextlib.contextmanager
def _calls_taken(torch: Any, steps: _Steps) -> Iterator[None]:
    """Have whatever torch.compile returns timed at each of its calls."""
    compile_, leaves_of = torch.compile, torch.utils._pytree.tree_leaves  # noqa: SLF001

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = run(*args, **kwargs)
            if any(getattr(leaf, "requires_grad", False) for leaf in leaves_of(result)):
                raise _Gradient
            steps.take(lambda: run(*args, **kwargs))
            return result

        return call

    def compile_watched(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda function: compile_watched(function, **options)
        made = compile_(model, **options)
        if not isinstance(made, torch.nn.Module):
            return watched(made)
        made.forward = watched(made.forward)
        return made

    torch.compile = compile_watched
    try:
        yield
    except _Gradient:
        steps.recompiled = True
    except Exception:  # noqa: BLE001 - a check may see what repeating changed
        return


def _time(torch: Any, order: Mapping[str, Any], steps: _Steps) -> dict[str, Any]:
    harness = importlib.import_module("harness")
    signal.alarm(int(order["timeout_s"]))
    os.environ.update(order["env"])
    os.sched_setaffinity(0, order["cores"])
    torch.set_num_threads(len(order["cores"]) if order["core"] is None else 1)
    if order["device"]:
        torch.set_default_device(order["device"])
    function = getattr(harness._load("repro", order["script"], is_importable=True), order["function"])  # noqa: SLF001

    def arm() -> Any:
        return function(**order["params"])

    began = time.perf_counter()
    observed = {name: str(value) for name, value in (arm() or {}).items()}
    steps.finish()
    first_s = time.perf_counter() - began
    if order["of"] == "whole":
        steps.take(arm)
    else:
        with _calls_taken(torch, steps):
            arm()
    return {
        "end": True,
        "first_s": first_s,
        "recompiled": steps.recompiled,
        "throttle": _throttle(arm),
        "observed": observed,
    }


def _throttle(arm: _Call) -> str:
    """The card's reasons to run slower, read while it works; empty where there is none to ask.

    That it is idle is none: short calls leave it so now and then (H200, 2026-11-30, two comparisons of four).
    """
    program = shutil.which("nvidia-smi") if os.environ["CUDA_VISIBLE_DEVICES"] else None
    if program is None:
        return ""
    wanted = [program, "--query-gpu=clocks_event_reasons.active", "--format=csv,noheader", "-i", "0"]
    with subprocess.Popen(wanted, stdout=subprocess.PIPE, text=True) as asked:
        while asked.poll() is None:
            with contextlib.suppress(Exception):
                arm()
        return asked.stdout.read().strip().replace("0x0000000000000001", "0x0000000000000000") if asked.stdout else ""


def _answer(torch: Any, order: Mapping[str, Any]) -> None:
    """In the process of its own: say what came of it, and end without a word of torch's."""
    steps = _Steps(torch, order, os.dup(1))
    os.dup2(2, 1)
    try:
        steps.tell(_time(torch, order, steps))
    except BaseException as failure:  # noqa: BLE001 - a script may raise anything
        steps.tell({"why": f"{type(failure).__name__}: {failure}"[:300]})
    os._exit(0)


def main() -> None:
    harness = importlib.import_module("harness")  # beside this file, which is how it is found
    os.environ.update(harness._NO_POOL)  # noqa: SLF001
    compiles = "torch.compile" in Path(sys.argv[1]).read_text(encoding="utf-8")  # else Inductor is of no use
    sees_gpu = bool(os.environ["CUDA_VISIBLE_DEVICES"])
    for name in harness._preloaded(sees_gpu=sees_gpu) if compiles else ("torch._dynamo",):  # noqa: SLF001
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if compiles and not sees_gpu:  # asking tries each ISA in a process, seconds of every fork
        with contextlib.suppress(Exception):
            importlib.import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
    sys.path.pop(0)  # this folder: an arm shall not find the harness
    gc.freeze()
    while line := _line():
        pid = os.fork()
        if not pid:
            _answer(sys.modules["torch"], json.loads(line))
        if os.waitpid(pid, 0)[1]:
            os.write(1, b'{"why": "it died or did not end in time"}\n')


def _line() -> bytes:
    """One line, and nothing of what is meant for the fork."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


if __name__ == "__main__":
    main()
