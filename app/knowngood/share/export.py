"""`knowngood export`: evidence as a bundle, or a part of the matrix in the words of other tools."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import BUILDS, HARDWARE, ISSUES, PATH, flag, option, text
from knowngood.cli.output import err
from knowngood.cli.stored import pick_builds, pick_issues
from knowngood.domain.errors import BadRequest
from knowngood.settings import read_settings
from knowngood.share.bundles.cli import write_bundle
from knowngood.share.exports import cli as exports
from knowngood.share.exports.formats import WRITERS, Format
from knowngood.store.engine import Engine


@command(
    "Write evidence to a bundle that another installation imports, or the matrix in the words of other tools.",
    option(
        "-o",
        "--output",
        type=PATH,
        required=True,
        help="The file to write; - is the standard output, but not for a bundle.",
    ),
    text("--format", "bundle, osv, csv, junit or markdown.", "FORM", "form", default="bundle"),
    ISSUES,
    BUILDS,
    HARDWARE,
    text("--origin", "How a bundle names this store to whoever imports it.", default="knowngood"),
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
    known_form = exports.known_format(form)
    engine = opened(read_settings())
    if known_form is not Format.BUNDLE:
        _write_document(engine, known_form, output, (issues, builds, hardware))
    elif output == exports.STDOUT:
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


def _write_document(
    engine: Engine, form: Format, output: Path, named: tuple[Sequence[str], Sequence[str], Sequence[str]]
) -> None:
    issues, builds, hardware = named
    chosen = pick_issues(engine, issues), pick_builds(engine, builds, exports.as_the_matrix_lists(engine))
    extract = exports.extract_from(engine, *chosen, hardware, datetime.now(UTC))
    written = exports.write(WRITERS[form](extract), output)
    count = len(extract.cells)
    err.print(f"{written}: {count} {'cell' if count == 1 else 'cells'}", soft_wrap=True)
