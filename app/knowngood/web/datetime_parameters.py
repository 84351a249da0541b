"""Points in time as people and programs write them in an address: a day, or RFC 3339 with its zone."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field, WithJsonSchema

from knowngood.web.errors import InvalidParameter

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
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise InvalidParameter(f'"{text}" is no time; {_EXPECTED}', field)
    day, time, zone = found.groups()
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
