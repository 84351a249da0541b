"""A ruling as the decision document, and back: what server, command line and snapshot print alike.

Plain dictionaries, since the command line client reads and writes it too and has to start fast: a process that imports
this module took 173 ms of CPU, and 336 ms with a pydantic adapter for Ruling (medians of 30, 2026-11-21, 2 cores under
load; 139 and 268 ms at best). `app.web.shapes.gate` tells the same shape to OpenAPI; a test holds the two together.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

import orjson

from app.domain.errors import KnownGoodError
from app.domain.gate import Cure, Decision, Reason, Ruling
from app.domain.issue import Severity
from app.domain.policy import Effect
from app.domain.verdict import Verdict

_Word = TypeVar("_Word", bound=StrEnum)
Document = Mapping[str, Any]


class BadDecision(KnownGoodError):
    """What should be a decision document is none, or speaks of what this release does not know."""


def decision_body(ruling: Ruling, base: str = "") -> dict[str, Any]:
    """The document as what JSON is made of. `base` is the server's address, put before the paths of evidence."""
    return {
        "decision": ruling.decision.value,
        "why": ruling.why,
        "build": ruling.build,
        "asked": ruling.asked,
        "nearest": list(ruling.nearest),
        "hardware": list(ruling.hardware),
        "counts": {effect.value: ruling.counts.get(effect, 0) for effect in Effect},
        "notes": list(ruling.notes),
        "decided_at": _written(ruling.decided_at),
        "known_at": _written(ruling.known_at),
        "reasons": [_reason_body(reason, base) for reason in ruling.reasons],
    }


def dump_decision(ruling: Ruling, base: str = "") -> str:
    """The document as JSON text. Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    body = decision_body(ruling, base)
    try:
        return orjson.dumps(body).decode()
    except orjson.JSONEncodeError:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def load_decision(text: str | bytes) -> Ruling:
    """Read a document from JSON text. Raises BadDecision."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadDecision(f"a decision document is JSON; this is not ({error})") from None
    return read_ruling(document)


def read_ruling(document: object) -> Ruling:
    """The ruling that a document tells. Fields that this release does not know are passed over.

    Addresses of evidence stay as they are, so that the same base may be put before them once more. Raises BadDecision.
    """
    if not isinstance(document, Mapping) or "decision" not in document:
        raise BadDecision('this is no decision document: it has no field "decision"')
    counts = _value(document, "counts", Mapping)
    return Ruling(
        decision=_word(document, "decision", Decision),
        why=_value(document, "why", str),
        build=_value(document, "build", str, type(None)),
        asked=_value(document, "asked", str),
        nearest=_texts(document, "nearest"),
        hardware=_texts(document, "hardware"),
        reasons=tuple(_reason(one) for one in _list(document, "reasons")),
        notes=_texts(document, "notes"),
        counts={effect: _value(counts, effect.value, int) for effect in Effect if effect.value in counts},
        decided_at=_time(document, "decided_at"),
        known_at=_time(document, "known_at"),
    )


def address(base: str, path: str) -> str:
    """The full address of a path below a server's; the path alone without a server, and a full address as it is."""
    return f"{base.rstrip('/')}{path}" if path.startswith("/") else path


def _reason_body(reason: Reason, base: str) -> dict[str, Any]:
    return {
        "issue": reason.issue,
        "title": reason.title,
        "component": reason.component,
        "severity": reason.severity.value,
        "silent": reason.silent,
        "build": reason.build,
        "hardware": reason.hardware,
        "verdict": reason.verdict.value,
        "effect": reason.effect.value,
        "why": reason.why,
        "measured_at": _written(reason.measured_at),
        "age_days": reason.age_days,
        "stale": reason.stale,
        "evidence_url": address(base, reason.evidence) if reason.evidence else None,
        "workarounds": [_cure_body(cure) for cure in reason.cures],
        "applied": list(reason.applied),
        "ignored": reason.ignored,
        "fixed_in": reason.fixed_in,
        "first_fixed": reason.first_fixed,
        "is_new": reason.is_new,
    }


def _cure_body(cure: Cure) -> dict[str, Any]:
    return {
        "id": cure.id,
        "title": cure.title,
        "verdict": str(cure.verdict),
        "trade_off": cure.trade_off,
        "snippet": cure.snippet,
    }


def _written(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def _reason(fields: Document) -> Reason:
    return Reason(
        issue=_value(fields, "issue", str),
        title=_value(fields, "title", str),
        component=_value(fields, "component", str),
        severity=_word(fields, "severity", Severity),
        silent=_value(fields, "silent", bool),
        build=_value(fields, "build", str),
        hardware=_value(fields, "hardware", str),
        verdict=_word(fields, "verdict", Verdict),
        effect=_word(fields, "effect", Effect),
        why=_value(fields, "why", str),
        measured_at=_time(fields, "measured_at"),
        age_days=_value(fields, "age_days", int, type(None)),
        stale=_value(fields, "stale", bool),
        cures=tuple(_cure(one) for one in _list(fields, "workarounds")),
        applied=_texts(fields, "applied"),
        ignored=_value(fields, "ignored", str),
        fixed_in=_value(fields, "fixed_in", str),
        first_fixed=_value(fields, "first_fixed", str),
        evidence=_value(fields, "evidence_url", str, type(None)) or "",
        is_new=_value(fields, "is_new", bool, type(None)),
    )


def _cure(fields: Document) -> Cure:
    return Cure(
        id=_value(fields, "id", str),
        title=_value(fields, "title", str),
        verdict=_value(fields, "verdict", str),
        trade_off=_value(fields, "trade_off", str),
        snippet=_value(fields, "snippet", str),
    )


def _value(fields: Document, name: str, *kinds: type) -> Any:  # noqa: ANN401 - of one of the kinds, checked here
    """A field that has to be there, of one of these kinds. True is no number here, though Python says it is."""
    value = fields.get(name, _value)
    if value is _value:
        raise BadDecision(f'a decision document has a field "{name}" where this one has none')
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        raise BadDecision(f'"{name}" of a decision document is {expected}, not {value!r:.60}')
    return value


def _list(fields: Document, name: str) -> list[Document]:
    """A list of objects."""
    values = _value(fields, name, list)
    if not all(isinstance(value, Mapping) for value in values):
        raise BadDecision(f'"{name}" of a decision document is a list of objects')
    return list(values)


def _texts(fields: Document, name: str) -> tuple[str, ...]:
    values = _value(fields, name, list)
    if not all(isinstance(value, str) for value in values):
        raise BadDecision(f'"{name}" of a decision document is a list of texts')
    return tuple(values)


def _word(fields: Document, name: str, words: type[_Word]) -> _Word:
    text = _value(fields, name, str)
    try:
        return words(text)
    except ValueError:
        known = ", ".join(words)
        raise BadDecision(
            f'"{name}" is {text!r:.60}, which this release does not know ({known}); the server may be newer'
        ) from None


def _time(fields: Document, name: str) -> datetime | None:
    text = _value(fields, name, str, type(None))
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise BadDecision(f'"{name}" does not say its zone: {text!r:.60}')
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadDecision(f'"{name}" is {text!r:.60}, which is no time of ISO 8601') from None
