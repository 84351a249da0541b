"""Domain values from what JSON is made of, by the types of their fields, without pydantic.

A command that starts in a CI job pays for every import (pydantic 250 ms; 2026-11-21, 2 cores under load).
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import UTC, date, datetime
from enum import EnumType
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_Reader = Callable[[Any], Any]


def read_value(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any domain value
    """A value of type `kind`. A field that an older file lacks has its default, one that is not known is left out."""
    read = _reader_of(kind)
    return read(value) if read else value


@cache
def _reader_of(kind: Any) -> _Reader | None:  # noqa: ANN401 - a type
    """Made once for each type, because to look at a type takes longer than to read a value of it. None: what JSON
    holds is the value.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of a type and None
        return _or_none(_reader_of(inner[0]))
    if origin is tuple:
        return _each(_reader_of(inner[0])) if inner[-1] is ... else _in_turn([_reader_of(one) for one in inner])
    if origin is Mapping:
        return _by_name(_reader_of(inner[1]))
    if isinstance(kind, type) and is_dataclass(kind):
        return _of_fields(kind)
    if kind is datetime:
        return lambda value: datetime.fromisoformat(value).astimezone(UTC)
    if kind is date:
        return date.fromisoformat
    return kind if isinstance(kind, EnumType) else None


def _or_none(read: _Reader | None) -> _Reader | None:
    return read and (lambda value: None if value is None else read(value))


def _each(read: _Reader | None) -> _Reader:
    return (lambda values: tuple(map(read, values))) if read else tuple


def _in_turn(readers: list[_Reader | None]) -> _Reader:
    return lambda values: tuple(read(one) if read else one for read, one in zip(readers, values, strict=False))


def _by_name(read: _Reader | None) -> _Reader:
    return (lambda values: {name: read(one) for name, one in values.items()}) if read else dict


def _of_fields(kind: type[Any]) -> _Reader:
    readers = [(name, _reader_of(type_)) for name, type_ in get_type_hints(kind).items()]
    return lambda value: kind(
        **{name: read(value[name]) if read else value[name] for name, read in readers if name in value}
    )
