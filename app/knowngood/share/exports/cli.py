"""`knowngood export` in the words of other tools: a part of the matrix as one file, or on the standard output."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.matrix import Columns, choose_columns, complete, stale_cells
from knowngood.share.exports.extract import Extract
from knowngood.share.exports.formats import Format
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.queries import load_builds, load_cells

STDOUT = Path("-")


def known_format(text: str) -> Format:
    """Raises BadRequest for a name that is none, with those that are."""
    if text == "kcidb":
        raise BadRequest(
            "--format kcidb is no more: bundle has the evidence, and `knowngood matrix --json` the verdicts"
        )
    try:
        return Format(text)
    except ValueError:
        known = ", ".join(Format)
        raise BadRequest(f'--format "{text}" is not known; known: {known}') from None


def as_the_matrix_lists(engine: Engine) -> Callable[[Build], bool]:
    """Which builds count where none are named: all, each with the other Pythons that it was measured with."""
    with reading(engine) as s:
        builds, cells = load_builds(s), load_cells(s)
    measured = {cell.build for cell in cells if cell.measured_at is not None}
    listed = {build.id for build in choose_columns(builds, measured, Columns.ALL)}
    return lambda build: build.id in listed


def extract_from(
    engine: Engine, issues: Sequence[Issue], builds: Sequence[Build], hardware: Sequence[str], now: datetime
) -> Extract:
    """Every cell of these issues and builds, on these hardware classes (none: all that were measured).

    No server is known here, so that documents carry no addresses of ours.
    """
    with reading(engine) as s:
        known = load_known(s, now)
    measured = known.hardware
    cells = tuple(complete(issues, builds, measured_classes(hardware, measured) or measured, known).values())
    return Extract(tuple(issues), known, cells, stale_cells(cells, known.builds, now), now)


def write(pieces: Iterable[bytes], output: Path) -> Literal["standard output"] | Path:
    """Where the document went. A file is there whole or not at all."""
    if output == STDOUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return "standard output"
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(output)
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror or error}") from None
    return output
