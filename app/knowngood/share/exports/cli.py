"""`knowngood export`: evidence as a bundle, or a part of the matrix in the words of other tools."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from knowngood.cli.choice import builds_of, issues_of
from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import BUILDS, HARDWARE, ISSUES, PATH, flag, option, text
from knowngood.cli.output import err, write_file
from knowngood.cli.stored import pick_builds, pick_issues
from knowngood.domain.errors import BadRequest
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.verdicts.matrix import Columns, choose_columns, complete, stale_cells
from knowngood.domain.vocabulary import many
from knowngood.settings import read_settings
from knowngood.share.cli import write_bundle
from knowngood.share.exports.extract import Extract
from knowngood.share.exports.formats import WRITERS, Format
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known

_STDOUT = Path("-")


@command(
    "Write evidence to a bundle that another installation imports, or the matrix in a format of other tools.",
    option(
        "-o",
        "--output",
        type=PATH,
        required=True,
        help="The file to write; - is the standard output, but not for a bundle.",
    ),
    text("--format", f"One of {', '.join(Format)}.", "FORM", "form", default="bundle"),
    ISSUES,
    BUILDS,
    HARDWARE,
    text("--origin", "The name of this store in the bundle.", default="knowngood"),
    flag("--all", "everything", help_="Into a bundle: superseded attempts too."),
    example="export --format csv -o matrix.csv",
)
def export(
    *,
    output: Path,
    form: str,
    issues: Sequence[str],
    builds: Sequence[str],
    hardware: Sequence[str],
    origin: str,
    everything: bool,
) -> None:
    known_form = _format(form)
    engine = opened(read_settings())
    if known_form is not Format.BUNDLE:
        extract = _extract(engine, issues, builds, hardware)
        written = _write(WRITERS[known_form](extract), output)
        err.print(f"{written}: {many(len(extract.cells), 'cell')}", soft_wrap=True)
    elif output == _STDOUT:
        raise BadRequest("a bundle is written to a file; name one with -o")
    else:
        write_bundle(
            engine,
            output,
            origin,
            issues={issue.id for issue in pick_issues(engine, issues)} if issues else None,
            builds={build.id for build in pick_builds(engine, builds, lambda _: True)} if builds else None,
            hardware=hardware or None,
            only_counted=not everything,
        )


def _format(name: str) -> Format:
    """The format of a name. Raises BadRequest for an unknown one, naming those that there are."""
    if name == "kcidb":
        raise BadRequest(
            "--format kcidb is no more: bundle has the evidence, and `knowngood matrix --json` the verdicts"
        )
    try:
        return Format(name)
    except ValueError:
        known = ", ".join(Format)
        raise BadRequest(f'--format "{name}" is not known; known: {known}') from None


def _extract(engine: Engine, issues: Sequence[str], builds: Sequence[str], hardware: Sequence[str]) -> Extract:
    """Every cell of these issues, builds and hardware classes; without names all issues, the builds that the matrix
    lists, and the classes that were measured. No server is known here: documents carry no addresses of ours.
    """
    now = datetime.now(UTC)
    with reading(engine) as s:
        known = load_known(s, now)
    measured = {cell.build for cell in known.cells.values() if cell.measured_at is not None}
    listed = choose_columns(known.builds.values(), measured, Columns.ALL)
    rows = issues_of(known.issues, issues)
    columns = builds_of(known.builds.values(), builds, lambda build: build in listed)
    classes = measured_classes(hardware, known.hardware) or known.hardware
    cells = tuple(complete(rows, columns, classes, known).values())
    return Extract(rows, known, cells, stale_cells(cells, known.builds, now), now)


def _write(pieces: Iterable[bytes], output: Path) -> Literal["standard output"] | Path:
    """Write the document and return where it went. A file is there whole or not at all."""
    if output == _STDOUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return "standard output"
    write_file(output, pieces)
    return output
