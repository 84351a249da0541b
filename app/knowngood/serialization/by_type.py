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

from knowngood.domain.message import Message, Quoted, quoted

_Read = Callable[[Any], Any]


def read_value(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any domain value
    """A value of type `kind`. A field that an older file lacks has its default, one that is not known is left out."""
    read = _reader(kind)
    return read(value) if read else value


# Types are looked at once: a question to the gate reads some 70,000 values of 60 types.
@cache
def _reader(kind: Any) -> _Read | None:  # noqa: ANN401 - any type
    """The function that reads this type; None where a value is as JSON has it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of a type and None
        return _or_none(_reader(inner[0]))
    if origin is tuple:
        return _tuple(inner)
    if origin is Mapping:
        return _mapping(_reader(inner[1]))
    if kind is Message:
        return _message
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    if kind is datetime:
        return lambda value: datetime.fromisoformat(value).astimezone(UTC)
    if kind is date:
        return date.fromisoformat
    return kind if isinstance(kind, EnumType) else None


def _message(value: Any) -> Any:  # noqa: ANN401 - a message; nothing where an older file has an empty text
    """Older files have texts, which nobody takes apart."""
    if isinstance(value, str):
        return quoted(value) if value else None
    if isinstance(value, Message):
        return value
    return Message(value["key"], **{name: _place(part) for name, part in value["values"].items()})


def _place(value: Any) -> Any:  # noqa: ANN401 - a value of a message
    if isinstance(value, list):
        return tuple(map(_place, value))
    if isinstance(value, dict):
        return Quoted(value["text"]) if "text" in value else _message(value)
    return value


def _or_none(read: _Read | None) -> _Read | None:
    return read and (lambda value: None if value is None else read(value))


def _tuple(inner: tuple[Any, ...]) -> _Read:
    if inner[-1] is not ...:
        reads = [_reader(kind) for kind in inner]
        return lambda values: tuple(
            [read(value) if read else value for read, value in zip(reads, values, strict=False)]
        )
    read = _reader(inner[0])
    return (lambda values: tuple(map(read, values))) if read else tuple


def _mapping(read: _Read | None) -> _Read:
    return (lambda values: {name: read(value) for name, value in values.items()}) if read else dict


def _dataclass(kind: type) -> _Read:
    reads = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def value_of(values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of `kind`
        given = {
            name: read(value) if (read := reads[name]) else value for name, value in values.items() if name in reads
        }
        return kind(**given)

    return value_of
