"""tools/budget.py: what is counted, and when the check fails."""

from pathlib import Path

import pytest

from tools import budget

PAIR = """
import sys
from dataclasses import dataclass

@dataclass
class Question:
    build: str
    python: str
    hardware: str

@dataclass
class Request:
    '''Text is free.'''
    build: str
    python: str
    hardware: str
    token: str

class Small:
    build: str
"""
FUNCTIONS = '''
"""Free."""

def decide(build):
    """Free too."""
    if build:
        return 1
    return 0

def rank(): return 2

def _private(): return 3
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        "app/knowngood/main.py": "x = 1\n",
        "app/knowngood/store/tables.py": PAIR,
        "app/knowngood/gate/cli/rules.py": FUNCTIONS,
        "app/knowngood/gate/__init__.py": "",
        "workers/knowngood_workers/host/nvml.py": "",
        "tests/test_it.py": "def test_it():\n    assert 1\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_checkout_is_counted_by_package_and_as_a_whole(checkout: Path) -> None:
    total, packages = budget.measure(checkout)
    assert packages == {
        "app/knowngood": {"statements": 1, "files": 1, "classes": 0, "pairs": 0},
        "app/knowngood/gate": {"statements": 8, "files": 2, "classes": 0, "pairs": 0},
        "app/knowngood/store": {"statements": 11, "files": 1, "classes": 3, "pairs": 1},
        "workers/knowngood_workers/host": {"statements": 0, "files": 1, "classes": 0, "pairs": 0},
    }
    assert total == {"statements": 20, "files": 5, "classes": 3, "pairs": 1, "tests": 2, "documented": 50}


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"statements": 100, "documented": 49}, []),
        ({"statements": 99, "documented": 50}, []),
        ({"statements": 101, "documented": 49}, ["statements 101, budget 100"]),
        ({"statements": 100, "documented": 48}, ["documented 48, budget 49"]),  # it may not fall
        ({"classes": 1}, ["classes 1, budget 0"]),  # nobody gave it a budget
    ],
)
def test_a_figure_over_its_budget_is_named(figures: dict[str, int], said: list[str]) -> None:
    assert list(budget.breaches({"statements": 100, "documented": 49}, figures)) == said


def test_lowering_never_raises_a_figure() -> None:
    given = {"statements": 100, "files": 5, "documented": 49}
    assert budget.lowered(given, {"statements": 101, "files": 4, "documented": 48}) == given | {"files": 4}
