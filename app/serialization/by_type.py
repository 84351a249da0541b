"""Domain values from what JSON is made of, by the types of their fields, without pydantic.

A command that starts in a CI job pays for every import (pydantic 250 ms; 2026-11-21, 2 cores under load).
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import UTC, date, datetime
from enum import EnumType
from functools import lru_cache
from itertools import repeat
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_types = lru_cache(maxsize=None)(get_type_hints)


def read_value(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any domain value
    """A value of type `kind`. A field that an older file lacks has its default, one that is not known is left out."""
    if kind is str or kind is bool:  # nine values of ten, and asking for the others' types takes 3 µs each
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of a type and None
        return None if value is None else read_value(inner[0], value)
    if origin is tuple:
        return tuple(map(read_value, repeat(inner[0]) if inner[-1] is ... else inner, value))
    if origin is Mapping:
        return {name: read_value(inner[1], one) for name, one in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: read_value(type_, value[name]) for name, type_ in _types(kind).items() if name in value})
    if kind is datetime:
        return datetime.fromisoformat(value).astimezone(UTC)
    if kind is date:
        return date.fromisoformat(value)
    return kind(value) if isinstance(kind, EnumType) else value
