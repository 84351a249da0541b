"""Values by what they have in common."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def grouped(values: Iterable[_V], key: Callable[[_V], _K]) -> dict[_K, list[_V]]:
    """The values by their keys; groups, and values within a group, in the order in which they come."""
    return gathered((key(value), value) for value in values)


def gathered(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """The second of each pair by the first, in the same order."""
    groups: dict[_K, list[_V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
