"""Checks of an address that every route makes before it looks at its own parameters: that it is text, and names what
the route knows.

A parameter that is misspelt or appears twice would silently widen or change an answer, so the API refuses both. Pages
refuse what is all but one of theirs, and let others pass, because links gather them on their way.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, get_origin
from urllib.parse import unquote_to_bytes

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, WithJsonSchema
from starlette.types import Scope

from knowngood.web.errors import InvalidParameter, UnsupportedMediaType, nearest, or_nearest
from knowngood.web.middleware.request_bodies import MOST_NAMES, media_of
from knowngood.web.urls import API

_LONGEST_PATH = 2000
_ALL_BUT_THE_SAME = 0.8  # `hardwar` is 0.93 of `hardware`; what links gather is at most 0.67 of a name here


def refuse_long(scope: Scope) -> None:
    """Before anything in an address is decoded. Raises InvalidParameter."""
    query: bytes = scope["query_string"]
    if query.count(b"&") >= MOST_NAMES:
        detail = f"has more than {MOST_NAMES:,} parameters; ask about fewer at once, or send them as a body"
        raise InvalidParameter(detail, "query")


async def read_plainly(request: Request) -> None:
    """Waits for nothing, so it need not cost a thread. Raises InvalidParameter with the parameter or the path."""
    path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    _refuse_unreadable(path, "path")
    if len(path) > _LONGEST_PATH:
        raise InvalidParameter(f"is {len(path):,} bytes long; nothing here is at more than {_LONGEST_PATH:,}", "path")
    query: bytes = request.scope["query_string"]
    for pair in query.split(b"&") if query else ():
        name, _, value = pair.partition(b"=")
        field = unquote_to_bytes(name.replace(b"+", b" ")).decode(errors="replace").replace("\0", "")[:80]
        _refuse_unreadable(name, field or "query")
        _refuse_unreadable(value, field or "query")
    route = request.scope["route"]
    if isinstance(route, APIRoute):
        is_page = not request.url.path.startswith(f"{API}/")
        _refuse_unknown(request, route, is_page=is_page)
        if route.body_field is not None and not is_page:
            _refuse_unsteady(request.headers.get("content-type", ""), await request.body())


def _refuse_unreadable(quoted: bytes, field: str) -> None:
    if b"%" not in quoted and quoted.isascii():
        return
    text = unquote_to_bytes(quoted)
    if b"\0" in text:
        raise InvalidParameter("has a NUL character, which no name here has", field)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"is no UTF-8 from byte {error.start} on", field) from None


def _refuse_unsteady(kind: str, body: bytes) -> None:
    """Refuses JSON that is valid and that nobody means: a name twice, of which one would count, and characters that no
    database takes. A body that is not JSON is left to the code that reads it.
    """
    media = media_of(kind)
    if body and media != "application/json":
        raise UnsupportedMediaType(f'"{media[:80]}" is not read here; send application/json', "body")
    try:
        _refuse_nul(json.loads(body, object_pairs_hook=once), "body")
    except ValueError:
        return


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object for `json.loads` with no name twice, for which of the two would count is anybody's guess."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise InvalidParameter("appears twice", f"body.{twice[:80]}")
    return fields


def _refuse_nul(value: object, place: str) -> None:
    if isinstance(value, str) and "\0" in value:
        raise InvalidParameter("has a NUL character, which no text here has", place)
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_nul(item, f"{place}.{name[:80]}")
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_nul(item, f"{place}.{index}")


def _refuse_unknown(request: Request, route: APIRoute, *, is_page: bool) -> None:
    known = _parameters(route)
    for name, n in Counter(name for name, _ in request.query_params.multi_items()).items():
        if is_page and (name in known or not get_close_matches(name, known, 1, _ALL_BUT_THE_SAME)):
            continue
        if name not in known:
            hint = or_nearest(nearest(name, known)) or (f"; known: {', '.join(known)}" if known else "; there are none")
            raise InvalidParameter(f"there is no such parameter{hint}", name[:80] or "query")
        if n > 1 and not known[name]:
            raise InvalidParameter(f"appears {n} times; once is enough", name)


_known: dict[object, Mapping[str, bool]] = {}


def _parameters(route: APIRoute) -> Mapping[str, bool]:
    """Say of each parameter whether it is a list, which may appear several times. Done once per route of the API."""
    if route.endpoint not in _known:
        own = (route.openapi_extra or {}).get("parameters", ())  # of a route that reads its address itself
        _known[route.endpoint] = dict(_query_parameters(route.dependant)) | {
            parameter["name"]: parameter["schema"]["type"] == "array" for parameter in own
        }
    return _known[route.endpoint]


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for field in dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from ((info.alias or name, _is_list(info.annotation)) for name, info in kind.model_fields.items())
        else:
            yield field.alias, _is_list(kind)
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - whatever a parameter is declared as
    return get_origin(kind) is list


# Points in time as people and programs write them in an address: a day, or RFC 3339 with its zone.

# A space stands for the `+` of a zone, which is what an address makes of it.
_WRITTEN = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[-+ ]\d\d:\d\d))?", re.ASCII)
_EXPECTED = "write a day (2026-11-20) or a time with its zone (2026-11-20T12:00:00Z)"

Written = Annotated[
    str | None,
    Field(max_length=40),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}], "maxLength": 40}),
]


def first_moment(text: str, field: str, now: datetime) -> datetime:
    """A day means its beginning in UTC. Raises InvalidParameter, which names `field`; also for a future time."""
    return _not_after(_parse(text, field)[0], field, now)


def last_moment(text: str, field: str, now: datetime) -> datetime:
    """A day means its end in UTC; today means now. Raises like `first_moment`."""
    begins, is_day = _parse(text, field)
    if is_day and begins <= now:
        return min(begins + timedelta(days=1, microseconds=-1), now)
    return _not_after(begins, field, now)


def _parse(text: str, field: str) -> tuple[datetime, bool]:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise InvalidParameter(f'"{text}" is no time; {_EXPECTED}', field)
    day, time, zone = match.groups()
    try:
        if time is None:
            return datetime.fromisoformat(day).replace(tzinfo=UTC), True
        return datetime.fromisoformat(f"{day}T{time}{zone.upper().replace(' ', '+')}").astimezone(UTC), False
    except (ValueError, OverflowError):
        raise InvalidParameter(f'"{text}" is on no calendar; {_EXPECTED}', field) from None


def _not_after(moment: datetime, field: str, now: datetime) -> datetime:
    if moment > now:
        raise InvalidParameter(
            f"{moment.isoformat()} is still to come; it is {now.isoformat(timespec='seconds')} here", field
        )
    return moment
