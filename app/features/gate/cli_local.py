"""Rulings made in this process: from a snapshot, which opens no database, or from the local store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowngood.app.domain.errors import BadSnapshot
from knowngood.app.features.gate.cli import Answer
from knowngood.app.features.gate.decision import Ruling
from knowngood.app.features.gate.renderers import Form, RenderOptions, render
from knowngood.app.features.gate.request import GateRequest, read_request, rule
from knowngood.app.knowledge.model import Knowledge

if TYPE_CHECKING:
    from knowngood.app.settings import Settings
    from knowngood.app.store.engine import Engine

_UNCHECKED = (
    "the snapshot was not checked against a key that you know; it says that {key} signed it. "
    "Name the key that you trust with --public-key"
)


@dataclass(frozen=True)
class OutputOptions:
    """How the answer is told: its forms, the second of which is the summary, and whether it is advice alone."""

    forms: tuple[str, ...]
    advisory: bool = False


def rule_from_snapshot(path: Path, keys: Sequence[str], fields: Mapping[str, Any], manner: OutputOptions) -> Answer:
    """Raises BadSnapshot, also for one that is older than the policy takes."""
    from knowngood.app.features.gate.snapshot import read_snapshot

    try:
        snapshot = read_snapshot(path.read_bytes(), keys)
    except OSError as error:
        raise BadSnapshot(f"the snapshot {path} cannot be read: {error.strerror}") from None
    asked = read_request(fields)
    ruling = rule(asked, snapshot.knowledge, datetime.now(UTC), is_snapshot=True)
    remarks = () if snapshot.is_trusted else (_UNCHECKED.format(key=snapshot.key),)
    return _answer(ruling, asked, manner, remarks)


def rule_here(fields: Mapping[str, Any], manner: OutputOptions) -> Answer:
    asked = read_request(fields)
    return _answer(rule(asked, grounds_here(), datetime.now(UTC)), asked, manner)


def grounds_here() -> Knowledge:
    """What the local store knows. The catalogue's files are read only where it knows no issue yet: reading them takes
    4 s of CPU, which a job that asks the gate need not pay (2026-11-21, 87 issues).
    """
    from knowngood.app.cli.context import opened, read_settings
    from knowngood.app.knowledge.loader import load_knowledge
    from knowngood.app.store.engine import reading

    read = read_settings()
    engine = opened(read)
    now = datetime.now(UTC)
    with reading(engine) as session:
        found = load_knowledge(session, now).knowledge
    if found.known.issues:
        return found
    _take_catalogue(engine, read, now)
    with reading(engine) as session:
        return load_knowledge(session, now).knowledge


def _take_catalogue(engine: "Engine", settings: "Settings", now: datetime) -> None:
    from knowngood.app.catalogue.loader import read_catalogue, shipped_catalogue
    from knowngood.app.store.catalogue import save_catalogue
    from knowngood.app.store.engine import unit_of_work

    catalogue = read_catalogue([*([shipped_catalogue()] if settings.shipped else []), *settings.catalogue_folders])
    with unit_of_work(engine) as session:
        save_catalogue(session, catalogue.issues, catalogue.builds, now)


def _answer(ruling: Ruling, asked: GateRequest, manner: OutputOptions, remarks: Sequence[str] = ()) -> Answer:
    told = RenderOptions(where=asked.environment.name if asked.environment else "", advisory=manner.advisory)
    texts = [render(ruling, Form(form), told) for form in manner.forms]
    return Answer(ruling.decision.value, texts[0], texts[1] if texts[1:] else "", tuple(remarks))
