"""The log of this process: lines for people or JSON for machines, on standard error.

Whatever is logged, also by the server beneath us, goes through here. Nothing that opens a door leaves: tokens, sessions
and passwords in addresses are struck out. It is a second line; the first is that nobody logs them. Of an exception the
log has where and of what kind it was: its message may quote what somebody pasted, and is there from level debug on.
"""

import logging
import re
import sys
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

_HINT = re.compile(r"kg_|://|[Bb][EeAa][AaSs][RrIi]")
"""Half of a line's cost was looking for secrets in words that could hold none (80 us, one core, 2026-11-21)."""

_SECRETS = (
    (re.compile(r"\bkg_[0-9A-Za-z_-]{8,}"), "kg_***"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), r"\1 ***"),
    (re.compile(r"://([^\s/:@]*):[^\s/@]+@"), r"://\1:***@"),
)


_NAMED = ("table", "row")
"""What lines of ours say beside their words that come by way of the standard library: see store/unreadable.py."""


class _Handler(logging.StreamHandler[Any]):
    """The one that `configure` sets, so that it is known from those of others."""


def configure(form: Format, level: Level) -> None:
    """Configure logging for the whole process; called again, it replaces what was set before."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        partial(_tell_exception, with_message=level == "debug"),
        without_secrets,
    ]
    structlog.configure(
        processors=[*shared, _renderer(form)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # stdout is for answers
        cache_logger_on_first_use=False,
    )
    _take_in_others(shared, form, level)


def _take_in_others(shared: list[Processor], form: Format, level: Level) -> None:
    """Lines of the standard library's loggers, uvicorn's above all, from level warning on."""
    handler = _Handler(sys.stderr)
    named = structlog.stdlib.ExtraAdder(allow=_NAMED)
    only_ours = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[named, only_ours, *shared, _renderer(form)]))
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # whoever set them up before
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    root = logging.getLogger()
    root.handlers = [other for other in root.handlers if not isinstance(other, _Handler)] + [handler]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))


def _renderer(form: Format) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(_as_json)
    return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)


def _as_json(event: EventDict, **_: Any) -> str:  # noqa: ANN401 - what json.dumps would take
    return orjson.dumps(event, default=repr, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def _tell_exception(_logger: WrappedLogger, _name: str, event: EventDict, *, with_message: bool) -> EventDict:
    info = event.pop("exc_info", None)
    info = sys.exc_info() if info is True else info
    error = info[1] if isinstance(info, tuple) else info
    return {**event, "exception": _describe_error(error, with_message=with_message)} if error else event


def _describe_error(error: BaseException, *, with_message: bool) -> str:
    """The newest last, as Python tells it; of each its places and its class."""
    if with_message:
        return "".join(traceback.format_exception(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    earlier = [_describe_error(before, with_message=False)] if before else []
    places = "".join(traceback.format_tb(error.__traceback__))
    return "\n".join([*earlier, f"{places}{type(error).__module__}.{type(error).__qualname__}"])


def without_secrets(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor: the same event with what looks like a secret struck out, however deep it stands."""
    return {name: _struck(value) for name, value in event.items()}


def _struck(value: object) -> Any:  # noqa: ANN401 - an event holds anything
    match value:
        case str() if _HINT.search(value) is None:
            return value
        case str():
            for pattern, instead in _SECRETS:
                value = pattern.sub(instead, value)
            return value
        case Mapping():
            return {name: _struck(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_struck(inner) for inner in value]
        case BaseException():
            return type(value).__name__
        case _:
            return value
