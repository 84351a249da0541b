"""Issues, builds and cells as the store keeps them: JSON read back, whatever the database. Nothing here knows SQL."""

import json
from collections.abc import Mapping
from datetime import UTC
from functools import lru_cache

from pydantic import TypeAdapter, ValidationError

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Look
from knowngood.domain.issue_selectors import WatchListContent
from knowngood.domain.message import Message
from knowngood.domain.verdicts.verdict import FLAKY_WORDS, Cell, CellPlace, Verdict, is_flaky
from knowngood.serialization import codec
from knowngood.serialization.by_type import read_value
from knowngood.store import unreadable

CONTENT = TypeAdapter(WatchListContent)
"""Of a watch list, as JSON."""

LOOKS = TypeAdapter(dict[str, Look])
"""At threads by their addresses, as JSON."""


@lru_cache(maxsize=4096)  # more than a catalogue has: pages ask for all of it, one after the other
def parse_issue(doc: str, looks: str = "") -> Issue:
    """`looks` are those at its threads, as LOOKS has them."""
    issue = codec.ISSUE.validate_json(doc)
    return issue.looked_at(LOOKS.validate_json(looks)) if looks else issue


@lru_cache(maxsize=512)
def parse_build(doc: str) -> Build:
    return codec.BUILD.validate_json(doc)


@lru_cache(maxsize=65_536)
def parse_cell(doc: str) -> Cell:
    """Decoding takes most of a matrix read, and between two reads hardly a cell changes: equal text is decoded once.

    Times come back in `datetime.UTC`, not in pydantic's own zone: two of these compare in 0.06 us, not in 1.
    """
    try:
        cell = codec.CELL.validate_json(doc)
    except ValidationError:  # derived before reasons were messages
        cell = read_value(Cell, json.loads(doc))
    if cell.measured_at:
        # Nobody else has it yet. To make another one took a third of reading it (20 us of 55; 2026-11-23).
        object.__setattr__(cell, "measured_at", cell.measured_at.astimezone(UTC))
    return cell


def read_cell(place: tuple[str, str, str], doc: str) -> Cell:
    """The cell of this issue, build and hardware class. One that cannot be read is there all the same and says so: by
    what is known elsewhere it would be taken for a cell that nobody measured.
    """
    try:
        return parse_cell(doc)
    except unreadable.FAULTS:
        unreadable.tell("cells", " ".join(place))
        return Cell(*place, Verdict.INCONCLUSIVE, Message("unreadable"))


def flaky_places(docs: Mapping[CellPlace, str]) -> frozenset[CellPlace]:
    """The places of flaky cells. Only texts that speak of it are decoded: all of them take seconds in a large store."""
    candidates = ((place, doc) for place, doc in docs.items() if any(word in doc for word in FLAKY_WORDS))
    return frozenset(place for place, doc in candidates if is_flaky(read_cell(place, doc)))
