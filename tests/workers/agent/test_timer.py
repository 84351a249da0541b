"""Processes that are timed in step, with a torch that is a few lines."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knowngood_workers.agent.arm_runner import Limits, RunLocation
from knowngood_workers.agent.timer import NoTime, Trio, busy_cores

_TORCH = """
import types

class nn:
    class Module:
        pass

class cuda:
    synchronize = staticmethod(lambda: None)

counters = {"frames": {"total": 0}}
_dynamo = types.SimpleNamespace(utils=types.SimpleNamespace(counters=counters))
utils = types.SimpleNamespace(_pytree=types.SimpleNamespace(tree_leaves=lambda value: [value]))

def set_num_threads(n):
    pass

def compile(function, **options):
    counters["frames"]["total"] += 1
    return function
"""

_SCRIPT = """
import os
import torch


class Wanting:
    requires_grad = True


def baseline(n=1):
    for _ in range(n):
        torch.compile(lambda x: x + 1)(1)


def twice(n=1):
    baseline(2 * n)


def plain(n=1):
    return sum(range(n))


def named(n=1):
    assert os.environ["NAMED"] == "1"
    baseline(n)


def wanting(n=1):
    torch.compile(lambda x: Wanting())(1)


def broken(n=1):
    raise ValueError("broken here")


def gone(n=1):
    os._exit(3)
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter that has this torch."""
    (tmp_path / "torch.py").write_text(_TORCH)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def _trio(
    python: Path, arm: str, env: dict[str, str] | None = None, beside: tuple[str, dict[str, str]] = ("baseline", {})
) -> Iterator[Trio]:
    place = RunLocation(python, (), Limits(memory_bytes=1 << 30))
    with Trio(place, python.parent, _SCRIPT, [beside, (arm, env or {}), beside]) as trio:
        yield trio


def _order(**more: object) -> dict[str, object]:
    return {"cores": [0], "core": 0, "device": "", "timeout_s": 60, "params": {}, **more}


@pytest.mark.parametrize(
    ("arm", "of", "is_timed", "is_recompiled"),
    [
        ("baseline", "calls", True, False),
        ("baseline", "whole", True, True),  # a compilation in every call of the whole
        ("plain", "calls", False, False),  # nothing of it is compiled
        ("twice", "calls", False, False),  # more calls than the other side has
        ("wanting", "calls", False, True),  # the other half of the work is in a backward pass
    ],
)
def test_calls_are_timed_where_both_sides_have_as_many(
    python: Path, arm: str, of: str, *, is_timed: bool, is_recompiled: bool
) -> None:
    with _trio(python, arm) as trio:
        for number in range(3):  # in either order
            seconds, told = trio.block(number, of, **_order())
            assert [each > 0 for each in seconds] == [True] * 3 * is_timed
            assert all(each["first_s"] > 0 for each in told)
            assert told[1]["recompiled"] is is_recompiled


@pytest.mark.parametrize(("arm", "why"), [("broken", "ValueError: broken here"), ("gone", "it died or did not end")])
def test_there_is_no_time_where_a_side_does_not_run(python: Path, arm: str, why: str) -> None:
    with _trio(python, arm) as trio:
        for number in range(2):
            with pytest.raises(NoTime, match=why):
                trio.block(number, "whole", **_order())


def test_a_side_with_variables_of_its_own_gets_a_process_that_was_started_with_them(python: Path) -> None:
    with _trio(python, "named", {"NAMED": "1"}) as trio:
        for number in range(2):
            assert len(trio.block(number, "calls", **_order())[0]) == 3
    with _trio(python, "baseline", beside=("named", {"NAMED": "1"})) as trio:
        assert len(trio.block(0, "calls", **_order())[0]) == 3
    with _trio(python, "named") as trio, pytest.raises(NoTime, match="NAMED"):
        trio.block(0, "calls", **_order())


def test_params_are_passed_to_the_function(python: Path) -> None:
    with _trio(python, "plain") as trio, pytest.raises(NoTime, match="unexpected keyword argument 'size'"):
        trio.block(0, "whole", **_order(params={"size": 3}))


def test_there_is_no_time_without_torch(python: Path) -> None:
    (python.parent / "torch.py").write_text("raise ImportError")
    with _trio(python, "plain") as trio, pytest.raises(NoTime):
        trio.block(0, "whole", **_order())


def test_a_core_is_busy_or_it_is_not() -> None:
    assert set(busy_cores([0])) <= {0}
