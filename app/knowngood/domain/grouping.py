"""Values by what they have in common."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def grouped(values: Iterable[_V], key: Callable[[_V], _K]) -> dict[_K, list[_V]]:
    """The values by their keys; groups, and values within a group, in the order in which they come."""
    groups: dict[_K, list[_V]] = defaultdict(list)
    for value in values:
        groups[key(value)].append(value)
    return dict(groups)
