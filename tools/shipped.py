"""Write `repros/known.snapshot`: what the shipped evidence says, for questions where there is no store.

Import the shipped evidence into an empty data folder (KNOWNGOOD_DATA_DIR) first; what else is known there would stand
in it too.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime

from knowngood.ask.explain.matcher import FRAME, OWN_LINES
from knowngood.ask.explain.store import failures_in
from knowngood.cli.context import opened_with_catalogue
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import FILE, write_unsigned
from knowngood.store.queries import load_durations


def shipped_snapshot(engine: Engine) -> bytes:
    """The same evidence gives the same bytes: it is dated by its newest measurement."""
    with reading(engine) as s:
        knowledge = load_knowledge(s, datetime.now(UTC)).knowledge
        durations = load_durations(s)
    failures = {issue: tuple(map(essence, texts)) for issue, texts in failures_in(engine).items()}
    newest = max(cell.measured_at for cell in knowledge.known.cells.values() if cell.measured_at)
    dated = replace(knowledge, known=replace(knowledge.known, as_of=newest), lists={})
    return write_unsigned(dated, Recorded(durations, None, failures))


def essence(failure: str) -> str:
    """As much of a failure's text as a library is made of: frames, and the end. The library is the same."""
    lines = failure.strip().splitlines()
    frames = (frame[0] for frame in FRAME.finditer("\n".join(lines[:-OWN_LINES])))
    return "\n".join([*dict.fromkeys(frames), *lines[-OWN_LINES:]])


if __name__ == "__main__":
    FILE.write_bytes(shipped_snapshot(opened_with_catalogue(read_settings())))
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes\n")
