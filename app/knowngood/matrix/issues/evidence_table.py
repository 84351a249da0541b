"""The table of an issue's cells, sorted by link: the heads of its columns, and its rows as the address orders them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell
from knowngood.domain.vocabulary import SEVERITY
from knowngood.web.errors import InvalidParameter
from knowngood.web.request_context import RequestContext


@dataclass(frozen=True)
class SortHead:
    """A column's head as a link. `order` is what `aria-sort` says, empty where another column sorts."""

    label: str
    address: str
    order: str
    is_number: bool


HEAD_WORDS = {
    "build": "Build",
    "hardware": "Hardware",
    "verdict": "Verdict",
    "failed": "Failed",
    "measured": "Measured",
}


def _share(cell: Cell) -> tuple[float, int]:
    """The share of baselines with an answer that showed the issue, over all variants, and how many have one."""
    n = sum(variant.n for variant in cell.variants)
    return sum(variant.k for variant in cell.variants) / n if n else -1, n


_KEYS: Mapping[str, Callable[[Cell], Any]] = {
    "build": lambda cell: parse_build_id(cell.build),
    "hardware": lambda cell: cell.hardware,
    "verdict": lambda cell: SEVERITY[status_of(cell)],
    "failed": _share,
    "measured": lambda cell: cell.measured_at.timestamp() if cell.measured_at else 0,
}
_GREATEST_FIRST = frozenset({"build", "failed", "measured"})  # by the first click


def sort_evidence(cells: Sequence[Cell], sort: str) -> Sequence[Cell]:
    """`sort` is a column's name, turned round by a `-` before it. Where it is empty: newest releases first, one
    hardware class after the other.

    Raises InvalidParameter for a column that there is not.
    """
    newest_first = sorted(cells, key=lambda cell: parse_build_id(cell.build), reverse=True)
    rows, name = sorted(newest_first, key=lambda cell: cell.hardware), sort.removeprefix("-")
    if not sort:
        return rows
    if name not in _KEYS:
        raise InvalidParameter(f'there is no column "{name[:40]}"; known: {", ".join(_KEYS)}', "sort")
    return sorted(rows, key=_KEYS[name], reverse=sort.startswith("-"))


def make_heads(
    context: RequestContext, sort: str, address_of: Callable[[str], str], *, has_classes: bool
) -> tuple[SortHead, ...]:
    """`address_of` makes the address of the page with another `sort`; a second click turns a column round. There is no
    column of classes where there is only one class.
    """
    names = [name for name in HEAD_WORDS if has_classes or name != "hardware"]
    return tuple(_head(context, name, sort, address_of) for name in names)


def _head(context: RequestContext, name: str, sort: str, address_of: Callable[[str], str]) -> SortHead:
    first = f"-{name}" if name in _GREATEST_FIRST else name
    order = "" if sort.removeprefix("-") != name else "descending" if sort.startswith("-") else "ascending"
    turned = name if sort.startswith("-") else f"-{name}"
    address = address_of(turned if order else first)
    return SortHead(context.say(HEAD_WORDS[name]), address, order, is_number=name == "failed")
