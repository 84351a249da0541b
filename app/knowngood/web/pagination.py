"""Lists in parts: sorted by documented keys, cut at `limit`, gone on with from a cursor, and with fewer fields.

A cursor holds where the last item stood: the values it was sorted by. What comes in or goes between two parts thus
neither repeats an item nor skips one. It holds a digest of the question too, so that it is refused under another one.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cmp_to_key
from typing import Annotated, Any, Generic, TypeVar, cast, get_args
from urllib.parse import urlencode

from fastapi import Request, Response
from pydantic import BaseModel, Field, WithJsonSchema, create_model

from knowngood.domain.builds.build import parse_build_id
from knowngood.domain.errors import KnownGoodError
from knowngood.web.errors import InvalidParameter, nearest, or_nearest
from knowngood.web.request_context import RequestContext

Row = TypeVar("Row")
Value = str | int | float | bool | None

MOST = 1000
USUAL = 100

_NOT_ASKED = {"cursor", "limit", "fields"}


@dataclass(frozen=True)
class SortKey(Generic[Row]):
    """One thing to sort by: `value` is what a cursor carries of a row, `order` what such values are compared by."""

    value: Callable[[Row], Value]
    order: Callable[[Any], Any] = field(default=lambda value: value)
    kind: type = str


def by_time(value: Callable[[Row], datetime | None]) -> SortKey[Row]:
    return SortKey(lambda row: time.isoformat() if (time := value(row)) else None, datetime.fromisoformat)


def by_release(value: Callable[[Row], str]) -> SortKey[Row]:
    """Build ids in the order of releases."""
    return SortKey(value, parse_build_id)


def by_rank(value: Callable[[Row], str], ranked: Sequence[str]) -> SortKey[Row]:
    """Words in the order of a list."""
    return SortKey(value, ranked.index)


def _compare_backwards(value: Any, other: Any) -> int:  # noqa: ANN401 - what is sorted by
    return int(value < other) - int(other < value)


backwards = cmp_to_key(_compare_backwards)


@dataclass(frozen=True)
class Order(Generic[Row]):
    """The order of rows: by these keys, each forwards or backwards. The last ones tell every two rows apart.

    What has no value (a cell that was not measured) stands last both ways.
    """

    keys: tuple[tuple[SortKey[Row], bool], ...]

    def place(self, row: Row) -> tuple[Value, ...]:
        return tuple(key.value(row) for key, _ in self.keys)

    def rank(self, place: Sequence[Value]) -> tuple[Any, ...]:
        """Raises ValueError and the like for a place that no row can have."""
        return tuple(
            (value is None, None if value is None else _rank(key, value, is_backwards))
            for (key, is_backwards), value in zip(self.keys, place, strict=True)
        )


def _rank(key: SortKey[Any], value: Value, is_backwards: bool) -> Any:  # noqa: ANN401, FBT001 - what is sorted by
    if type(value) is not key.kind:
        raise ValueError("of another kind")
    return backwards(key.order(value)) if is_backwards else key.order(value)


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """Publishes which words a list parameter takes: an empty one is none. The code that knows its name checks them, and
    names the nearest.
    """
    return WithJsonSchema({"type": "array", "items": {"type": "string", "enum": ["", *words]}, "maxItems": 100})


def both_ways(keys: Iterable[str]) -> list[str]:
    return [word for key in keys for word in (key, f"-{key}")]


class Paging(BaseModel, extra="forbid"):
    """Parameters that every list takes. Each list adds `sort` and `fields` with its own words."""

    limit: Annotated[
        int | None, Field(ge=1, le=MOST, description="At most so many items; `next` in the answer leads to the others")
    ] = None
    cursor: Annotated[
        str, Field(max_length=2000, description="Where to go on: from the `next` of an answer to the same question")
    ] = ""

    @property
    def is_paged(self) -> bool:
        return self.limit is not None or bool(self.cursor)

    @property
    def most(self) -> int:
        return self.limit or USUAL


def order_of(
    words: Sequence[str],
    keys: Mapping[str, SortKey[Row]],
    usual: Sequence[SortKey[Row]],
) -> Order[Row]:
    """The order that `sort` asks for; `usual` follows it, and is the order where nothing is asked."""
    names = [name.removeprefix("-") for name in words]
    for name in names:
        if name not in keys:
            raise InvalidParameter(
                f'"{name}" is nothing to sort by; known: {", ".join(keys)}{or_nearest(nearest(name, keys))}', "sort"
            )
        if names.count(name) > 1:
            raise InvalidParameter(f'"{name}" stands twice', "sort")
    chosen = [(keys[name], word.startswith("-")) for name, word in zip(names, words, strict=True)]
    return Order((*chosen, *((key, False) for key in usual)))


def part_of(
    request: Request, rows: Iterable[Row], order: Order[Row], query: Paging
) -> tuple[tuple[Row, ...], str | None]:
    """The rows that `query` asks for: all of them where it names neither limit nor cursor. And the address of the ones
    after them (None: there are none).
    """
    ranked = sorted(((order.rank(order.place(row)), row) for row in rows), key=lambda pair: pair[0])
    if not query.is_paged:
        return tuple(row for _, row in ranked), None
    if query.cursor:
        after = _after(request, query.cursor, order)
        ranked = [pair for pair in ranked if after < pair[0]]
    chosen = tuple(row for _, row in ranked[: query.most])
    return chosen, next_address(request, order.place(chosen[-1])) if len(ranked) > query.most else None


def _after(request: Request, cursor: str, order: Order[Row]) -> tuple[Any, ...]:
    place = place_in(request, cursor)
    try:
        return order.rank(place)
    except (KnownGoodError, ValueError, TypeError, OverflowError):
        raise _damaged() from None


def next_address(request: Request, place: Sequence[Value]) -> str:
    """The address of this question from after `place` on."""
    cursor = json.dumps([_question(request), *place], separators=(",", ":")).encode()
    parameters = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    parameters.append(("cursor", base64.urlsafe_b64encode(cursor).decode().rstrip("=")))
    return f"{request.url.path}?{urlencode(parameters)}"


def place_in(request: Request, cursor: str) -> list[Value]:
    """Read the last item's place from a cursor. Raises InvalidParameter where no answer to this question gave it."""
    try:
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise _damaged() from None
    if not isinstance(values, list) or not all(_is_value(value) for value in values):
        raise _damaged()
    if not values or values[0] != _question(request):
        raise InvalidParameter("belongs to another question; leave it out to begin anew", "cursor")
    return cast("list[Value]", values[1:])


def _is_value(value: object) -> bool:
    """Whether it can have been in a row: no database takes a NUL, nor half of a surrogate pair."""
    if isinstance(value, str):
        return "\0" not in value and value.isprintable()
    return value is None or isinstance(value, int | float)


def newest_after(request: Request, cursor: str) -> tuple[datetime, str] | None:
    """The (time, id) to go on from in a list that the store keeps newest first; None from its beginning."""
    if not cursor:
        return None
    match place_in(request, cursor):
        case [str(time), str(id_)]:
            try:
                return datetime.fromisoformat(time).astimezone(UTC), id_
            except (ValueError, OverflowError):
                raise _damaged() from None
        case _:
            raise _damaged()


def next_of(
    request: Request, rows: Sequence[Row], most: int, place: Callable[[Row], tuple[datetime, str]]
) -> tuple[Sequence[Row], str | None]:
    """The rows to show of one more than `most`, and the address of those after them where there are any."""
    if len(rows) <= most:
        return rows, None
    time, id_ = place(rows[most - 1])
    return rows[:most], next_address(request, (time.isoformat(), id_))


def _damaged() -> InvalidParameter:
    return InvalidParameter("is damaged; use the `next` of an answer as it is, or leave it out to begin anew", "cursor")


def _question(request: Request) -> str:
    parameters = sorted(parameter for parameter in request.query_params.multi_items() if parameter[0] not in _NOT_ASKED)
    return hashlib.sha256(repr((request.url.path, parameters)).encode()).hexdigest()[:10]


def known_fields(names: Sequence[str], body: type[BaseModel]) -> frozenset[str]:
    """The fields asked for; none asked for means all (empty)."""
    for name in names:
        if name not in body.model_fields:
            known = ", ".join(body.model_fields)
            near = or_nearest(nearest(name, body.model_fields)) or f"; known: {known}"
            raise InvalidParameter(f'there is no field "{name}"{near}', "fields")
    return frozenset(names)


def answer(
    context: RequestContext,
    body: BaseModel,
    key: str,
    names: Sequence[str],
    next_: str | None,
    *,
    is_paged: bool,
) -> Response:
    """`body` as JSON: the items of its list `key` with only the fields of `names`, and `next` where it is in parts."""
    unsaid = () if is_paged else ("next",)
    include: dict[str, Any] = {name: True for name in type(body).model_fields if name not in unsaid}
    if fields := known_fields(names, _item_of(type(body), key)):
        include[key] = {"__all__": set(fields)}
    return context.json(body, include=include, headers={"Link": f'<{next_}>; rel="next"'} if next_ else {})


def in_parts(body: type[BaseModel], key: str) -> Any:  # noqa: ANN401 - a union made here
    """For the document: `body`, or the same with items in its list `key` of which `fields` asked for less."""
    item = _item_of(body, key)
    short = create_model(
        f"{item.__name__}Part", __doc__=f"{item.__name__} with the `fields` asked for", **_optional(item)
    )
    fields: dict[str, Any] = {name: (info.annotation, info) for name, info in body.model_fields.items()}
    fields[key] = (list[short], ...)  # type: ignore[valid-type]  # made here, from `item`
    return body | create_model(f"{body.__name__}Part", __doc__=body.__doc__, **fields)


def _item_of(body: type[BaseModel], key: str) -> type[BaseModel]:
    return cast("type[BaseModel]", get_args(body.model_fields[key].annotation)[0])


def _optional(item: type[BaseModel]) -> dict[str, Any]:
    return {
        name: (info.annotation, Field(default_factory=lambda: None, description=info.description))
        for name, info in item.model_fields.items()
    }
