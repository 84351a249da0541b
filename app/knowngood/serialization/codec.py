"""Domain values as JSON: what dispatcher and agent say to each other, and what the store and bundles keep.

One event is one line. Fields a reader does not know are ignored, so that an older dispatcher reads a newer agent.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import KnownGoodError
from knowngood.domain.issue import EnvironmentRequest, Issue
from knowngood.domain.measuring.job import (
    ArmFinished,
    ArmStarted,
    EnvironmentReady,
    Event,
    JobEnded,
    JobSpec,
    JobStarted,
    Provisioning,
)
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.message import Message
from knowngood.domain.timed_search import Searched
from knowngood.domain.verdicts.outcome import RunRecord
from knowngood.domain.verdicts.verdict import Cell

_T = TypeVar("_T")

ISSUE = TypeAdapter(Issue)
BUILD = TypeAdapter(Build)
REQUEST = TypeAdapter(EnvironmentRequest)
MACHINE = TypeAdapter(Machine)
RECORD = TypeAdapter(RunRecord)
CELL = TypeAdapter(Cell)
MESSAGE = TypeAdapter(Message)
SEARCHED = TypeAdapter(Searched)

# What dispatcher and agent alone say is made when they do: no command that answers from the store waits for it.
_adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)

_EVENTS: dict[str, type[Event]] = {
    "job_started": JobStarted,
    "provisioning": Provisioning,
    "environment_ready": EnvironmentReady,
    "arm_started": ArmStarted,
    "arm_finished": ArmFinished,
    "job_ended": JobEnded,
}
_TYPES = {kind: name for name, kind in _EVENTS.items()}


class BadLine(KnownGoodError):
    """A line that is no event, specification or record of ours."""


def dump_spec(spec: JobSpec) -> bytes:
    return _adapter_of(JobSpec).dump_json(spec)


def load_spec(data: bytes | str | Mapping[str, Any]) -> JobSpec:
    """Read a specification from JSON text, or from what a JSON parser made of it."""
    return _load(JobSpec, data, "job specification")


def dump_record(record: RunRecord) -> bytes:
    return RECORD.dump_json(record)


def event_type(event: Event) -> str:
    """The tag an event carries on the wire: `arm_finished` for ArmFinished."""
    return _TYPES[type(event)]


def dump_event(event: Event) -> bytes:
    """One line of JSON without its line end; `type` is its first field."""
    name = event_type(event)
    return b'{"type":"%s",%s' % (name.encode(), _adapter_of(type(event)).dump_json(event)[1:])


def load_event(line: bytes | str) -> Event:
    """Read what `dump_event` wrote. Raises BadLine."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadLine(f"an event is one line of JSON; this is not: {_excerpt(line)} ({error})") from None
    name = fields.pop("type", None) if isinstance(fields, dict) else None
    if name not in _EVENTS:
        raise BadLine(f"an event names its type ({', '.join(_EVENTS)}); this does not: {_excerpt(line)}")
    return _load(_EVENTS[name], fields, name)


def _load(kind: type[_T], data: bytes | str | Mapping[str, Any], what: str) -> _T:
    adapter: TypeAdapter[_T] = _adapter_of(kind)
    try:
        if isinstance(data, bytes | str):
            return adapter.validate_json(data)
        return adapter.validate_python(data)
    except ValidationError as error:
        raise BadLine(f"this is no {what}: {first_problem(error)}") from None


def first_problem(error: ValidationError) -> str:
    """The place of the first fault, and what it is; a stranger's text is cut to what a line has room for."""
    fault = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in fault["loc"]) or "the whole"
    return f"{where[:80]}: {fault['msg'][:200]}"


def _excerpt(line: bytes | str) -> str:
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    return text[:120].strip() or "an empty line"
