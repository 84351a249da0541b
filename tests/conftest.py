"""Common to every test run. Fixtures stand in tests/fixtures, by what they give."""

import gc
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from knowngood.gc_tuning import collect_seldom

pytest_plugins = [
    "tests.fixtures.databases",
    "tests.fixtures.notebooks",
    "tests.fixtures.toys",
    "tests.fixtures.pages",
    "tests.fixtures.commands",
    "tests.fixtures.schemas",
]

settings.register_profile(
    "of this run",
    max_examples=int(os.environ.get("KNOWNGOOD_EXAMPLES") or 12),  # `make soak` asks for more
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("of this run")


def pytest_configure() -> None:
    gc.disable()  # until tests are collected: looking through what stays was a quarter of that
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)  # the width and the colours of whoever started the tests change what is said


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test with `sample(n, rest)` n are kept, spread evenly; the others are marked `rest`.

    Files with tests that may take longest, by the time they are given, begin first, then those with a browser (2 s a
    test), then those of the workers: they wait for processes, and what computes fills the time meanwhile. So no process
    is left alone with one at the end. And a test whose browser crashed under it says nothing: it runs once more, in a
    new one.
    """
    cases: dict[tuple[str, int, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if drawn := item.get_closest_marker("sample"):
            cases[item.nodeid.partition("[")[0], *drawn.args].append(item)
    for (_, n, rest), alike in cases.items():
        for item in set(alike).difference(alike[at * len(alike) // n] for at in range(n)):
            item.add_marker(rest)
    longest: dict[Path, tuple[float, bool, bool]] = {}
    for item in items:
        given = item.get_closest_marker("timeout")
        seconds = float(given.args[0]) if given else 0.0
        own = (seconds, item.get_closest_marker("browser") is not None, "workers" in item.path.parts)
        longest[item.path] = max(longest.get(item.path, own), own)
    items.sort(key=lambda item: longest[item.path], reverse=True)
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["TargetClosedError"]))


def pytest_collection_finish() -> None:
    """Look for garbage as commands and servers do, and never at the tests themselves: an eighth less processor."""
    collect_seldom()
    gc.freeze()
    gc.enable()
