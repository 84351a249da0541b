"""Tables that are sorted by link: the heads of their columns, and their rows in the order that the address asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from knowngood.web.errors import InvalidParameter

Row = TypeVar("Row")


@dataclass(frozen=True)
class SortHead:
    """A column's head as a link. `order` is what `aria-sort` says, empty where another column sorts."""

    label: str
    address: str
    order: str
    is_number: bool = False


@dataclass(frozen=True)
class SortColumn(Generic[Row]):
    """`key` gives what rows are compared by; the first click puts the greatest first where `begins_high`."""

    label: str
    key: Callable[[Row], Any]
    begins_high: bool = False
    is_number: bool = False


def sorted_rows(rows: Iterable[Row], columns: Mapping[str, SortColumn[Row]], asked: str) -> list[Row]:
    """`asked` is a column's name, turned round by a `-` before it; empty leaves the rows as they are.

    Raises InvalidParameter for a column that there is not.
    """
    name = asked.removeprefix("-")
    if not asked:
        return list(rows)
    if name not in columns:
        raise InvalidParameter(f'there is no column "{name[:40]}"; known: {", ".join(columns)}', "sort")
    return sorted(rows, key=columns[name].key, reverse=asked.startswith("-"))


def sort_heads(
    columns: Mapping[str, SortColumn[Row]], asked: str, address_of: Callable[[str], str]
) -> Sequence[SortHead]:
    """`address_of` makes the address of the page with another `sort`. A second click turns a column round."""
    return tuple(_head(name, column, asked, address_of) for name, column in columns.items())


def _head(name: str, column: SortColumn[Row], asked: str, address_of: Callable[[str], str]) -> SortHead:
    first = f"-{name}" if column.begins_high else name
    order = "" if asked.removeprefix("-") != name else "descending" if asked.startswith("-") else "ascending"
    turned = name if asked.startswith("-") else f"-{name}"
    return SortHead(column.label, address_of(turned if order else first), order, column.is_number)
