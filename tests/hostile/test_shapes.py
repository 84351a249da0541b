"""Twice the text costs a reader twice the work at most, whatever the text is made of."""

from collections.abc import Callable
from functools import cache, partial

import pytest

from knowngood.domain.builds.build_names import BuildNames
from knowngood.environments.detect import read_environment
from knowngood.environments.resolve import resolve
from knowngood.environments.wheels.table import shipped_wheels
from tests.counting import count_steps, peak_bytes
from tests.hostile.reading import read
from tests.hostile.shapes import CRITICAL, OTHERS, Made, Maker, conda_blanks, pyproject_groups, repeated

_BYTES = 1_000
_MARGIN, _STEPS = 1.15, 400
_GROWTH, _HELD = 3, 96 << 10  # dictionaries grow by jumps; what multiplies takes four times as much


def _sizes(make: Maker) -> tuple[int, int, int]:
    """Three, each twice the one before; the first makes a text of some 1,000 bytes, where so much is read of one."""
    (most,) = make.__defaults__ or ()
    size = 1
    while len(make(size)[1]) < _BYTES and size * 8 <= most:
        size *= 2
    return size, size * 2, size * 4


def _measured(make: Maker, measure: Callable[[Callable[[], object]], int]) -> list[int]:
    read(make(1))  # what is imported and compiled at first
    made: list[Made] = [make(size) for size in _sizes(make)]
    return [measure(partial(read, one)) for one in made]


@pytest.mark.sample(31, "system")
@pytest.mark.parametrize("make", [*CRITICAL, *OTHERS], ids=lambda make: make.__name__)
def test_twice_the_text_takes_twice_the_steps_at_most(make: Maker) -> None:
    one, two, four = _measured(make, count_steps)
    assert four - two <= 2 * _MARGIN * max(0, two - one) + _STEPS


@pytest.mark.sample(31, "system")
@pytest.mark.parametrize("make", [*CRITICAL, *OTHERS], ids=lambda make: make.__name__)
def test_twice_the_text_takes_twice_the_memory_at_most(make: Maker) -> None:
    _, two, four = _measured(make, peak_bytes)
    assert four <= _GROWTH * two + _HELD


def test_steps_and_bytes_show_what_multiplies() -> None:
    def pairs(size: int) -> list[tuple[int, int]]:
        return [(one, other) for one in range(size) for other in range(size)]

    for measure in (count_steps, peak_bytes):
        one, two, four = (measure(partial(pairs, size)) for size in (50, 100, 200))
        assert four - two > 3 * (two - one)


def test_what_a_cache_of_the_process_takes_once_is_not_counted() -> None:
    assert peak_bytes(cache(lambda: bytes(1 << 20))) < 1 << 10


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (conda_blanks(), "conda list, 1 packages"),
        (pyproject_groups(), "pyproject.toml, 1 packages"),
        (pyproject_groups(40), "includes itself, or others 20 deep"),
        (repeated("yaml_depth")(), "brackets stand more than 20 deep"),
        (repeated("toml_headers")(200_000), "has more than 100000 tables and parts of keys"),
        (repeated("requirements_extras")(100), "is beyond the different markers that are read"),
        (repeated("pyproject_blanks")(), "is no requirement"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_what_is_too_much_is_told_in_a_sentence_and_the_rest_is_read(made: Made, words: str) -> None:
    assert words in read(made)


def test_of_thousands_of_torches_a_few_are_named() -> None:
    stated = read_environment("r.txt", "".join(f"torch==2.{at}\ntriton==3.{at}\n" for at in range(4_000)).encode())
    found = resolve(stated, BuildNames({}), (), shipped_wheels())
    assert "torch 2.4 and 3995 more" in found.description
    assert "This pip freeze holds 4000 torches: 2.0 (line 1) and 2.1 (line 3)" in found.note
    assert len(found.note) + len(found.description) < 1_000
