"""No pattern that reads foreign text takes steps by the square of it, on texts made from its own parts."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from knowngood.catalogue.hostile_text import Hostile, hostile_texts
from tests.hostile.backtracking import CountedPattern

_MODULES = [
    *(
        f"knowngood.environments.{one}"
        for one in (
            "conda_list",
            "detect",
            "lockfiles",
            "pyproject",
            "python_markers",
            "requirements_txt",
            "resolve",
            "source",
        )
    ),
    "knowngood.environments.log_cleaning",
    "knowngood.ask.explain.matcher",
    "knowngood.gate.asking",
    "knowngood.ask.reading",
    "knowngood.ask.text_index",
    "knowngood.serialization.toml_models",
]
_FROM_THE_BEGINNING = {"match", "fullmatch"}
_WAYS = {*_FROM_THE_BEGINNING, "search", "sub", "findall", "finditer", "split"}
_SIZES = 80, 160
_LARGER = 1_000, 2_000  # repetitions of at most 400 are quadratic up to there
_GROWTH, _MORE = 2.3, 1_000

Used = tuple[str, str, int, bool]
"""Where, the pattern, its flags, and whether it is tried at one place alone."""


def _patterns(module: str) -> Iterator[Used]:
    found = importlib.import_module(module)
    tree = ast.parse(inspect.getsource(found))
    short = module.rpartition(".")[2]
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    ways: dict[str, set[str]] = {}
    for call in calls:
        way, of = call.func.attr, call.func.value  # type: ignore[attr-defined]
        if way in _WAYS and isinstance(of, ast.Name):
            if of.id == "re" and isinstance(call.args[0], ast.Constant):
                yield f"{short}:{call.lineno}", str(call.args[0].value), 0, way in _FROM_THE_BEGINNING
            ways.setdefault(of.id, set()).add(way)
    for name, value in vars(found).items():
        for at, pattern in enumerate(_held(value)):
            is_anchored = bool(ways.get(name)) and ways[name] <= _FROM_THE_BEGINNING
            yield f"{short}.{name}.{at}", pattern.pattern, pattern.flags, is_anchored


def _held(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _held(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _held(one)


USED = {used[0]: used for module in _MODULES for used in _patterns(module)}


def _slow_text(pattern: str, flags: int, *, is_anchored: bool) -> str | None:
    """The beginning of a text on which steps grow faster than the text."""
    counted = CountedPattern(pattern, flags)
    verbose = "(?x)" if flags & re.VERBOSE else ""
    for make in hostile_texts(verbose + pattern):
        for last in "\0", "a":  # a sign that hardly any part takes, and one that [^\w] does not

            def grows(sizes: tuple[int, int], make: Hostile = make, last: str = last) -> bool:
                texts = (make(size).replace("\0", last) for size in sizes)
                steps, more = (counted.steps_to_search(one, is_anchored=is_anchored) for one in texts)
                return more > _GROWTH * steps + _MORE

            if (last == "\0" or "\0" in make(_SIZES[0])) and grows(_SIZES) and grows(_LARGER):
                return make(_SIZES[0])[:80]
    return None


@pytest.mark.sample(53, "system")
@pytest.mark.parametrize("used", USED)
def test_twice_the_text_takes_a_pattern_twice_the_steps_at_most(used: str) -> None:
    _, pattern, flags, is_anchored = USED[used]
    assert _slow_text(pattern, flags, is_anchored=is_anchored) is None


@pytest.mark.sample(2, "system")
@pytest.mark.parametrize(
    ("pattern", "is_anchored"),
    [
        (r"\s*(?:#|[\W_]*$)", True),  # of conda's lists in 0.1
        (r"^\s*\[tool\.knowngood[\].]", False),  # of the policy's table
        (r"#(?:.*&)?egg=(\w+)", False),  # of a source's name
        (r"\s*,\s*", False),
        (r"a\s*(?:\[[^\]]*\])?\s*@", True),
    ],
)
def test_patterns_that_were_slow_are_found(pattern: str, is_anchored: bool) -> None:
    flags = re.MULTILINE if pattern.startswith("^") else 0
    assert _slow_text(pattern, flags, is_anchored=is_anchored) is not None


@pytest.mark.parametrize(
    "pattern",
    [r"a+?b|c{2,3}", r"(?<!x)a(?=b)\b", r"^[^\n]*$", r"(?i)K[a-c]", r"(?>a+)b", r"a*+b", r"(?<=ab)c|\Bd", r"x.y"],
)
def test_the_counted_matcher_finds_what_python_finds(pattern: str) -> None:
    for text in ("aab cc abc", "xab a", "k K kb KB", "abcd\nab", "aaab", "x\ny xzy", ""):
        found = re.search(pattern, text)
        ends = [CountedPattern(pattern).end_at(text, at) for at in range(len(text) + 1)]
        assert next((one for one in ends if one is not None), None) == (found.end() if found else None)
