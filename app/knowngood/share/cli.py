"""`knowngood import`, and bundles as files: what `import`, `export`, `run` and `up` read and write. `knowngood push`: a
bundle to a server, from a host that nobody reaches from outside. `knowngood export`: evidence as a bundle, or a part of
the matrix in the words of other tools.

A push that was cut off is sent once more as a whole: the server knows a bundle that it has by its contents, and of one
that came in in part it takes the rest.
"""

import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.request import Request

import click

from knowngood.cli.choice import builds_of, issues_of
from knowngood.cli.context import opened, opened_with_catalogue, operator, pick_builds, pick_issues
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import BUILDS, FILE, FILE_HERE, HARDWARE, ISSUES, PATH, argument, flag, option, text
from knowngood.cli.output import err, out, whole_file
from knowngood.domain.errors import BadBundle, BadRequest, ServerUnusable
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.verdicts.matrix import Columns, choose_columns, complete, stale_cells
from knowngood.domain.vocabulary import many
from knowngood.gate.from_server import opener, patiently, place_of, refuse_address
from knowngood.settings import read_settings
from knowngood.share.exports.extract import Extract
from knowngood.share.exports.formats import WRITERS, Format
from knowngood.share.store import export_bundle, take_in_bundle
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.records import ExportSelection, ImportReport

_CLASHES_SHOWN = 20


@command(
    "Import bundles of results. Importing twice changes nothing. Ends with 4 if an attempt here has the same "
    "number but other contents.",
    argument("files", "Bundles of results.", nargs=-1, required=True, type=FILE_HERE),
    example="import knowngood-results.jsonl.gz",
)
def import_command(files: Sequence[Path]) -> Exit:
    engine = opened_with_catalogue(read_settings())
    refused = [import_bundle(engine, file).refused for file in files]
    return Exit.UNUSABLE if any(refused) else Exit.OK


def import_bundle(engine: Engine, file: Path, *, alone: bool = False) -> ImportReport:
    """Take it in, and print what came of it; `alone` (see `take_in_bundle`) only what was refused."""
    report = take_in_bundle(engine, file, datetime.now(UTC), by=operator(), alone=alone)
    if not alone:
        out.print(f"{file.name}: {_counts_in_words(report)}", soft_wrap=True)
    for clash in report.refused[:_CLASHES_SHOWN]:
        words = f"attempt {clash.id} says something else than the one that is here, which came from {clash.origin}"
        err.print(f"{file.name}: refused: {words}", markup=False, soft_wrap=True)
    if len(report.refused) > _CLASHES_SHOWN:
        err.print(f"{file.name}: refused: {len(report.refused) - _CLASHES_SHOWN} more", markup=False, soft_wrap=True)
    return report


def _counts_in_words(report: ImportReport) -> str:
    further = {
        "superseded (another state of their repro)": report.superseded,
        "of issues or builds this catalogue does not have": report.unknown,
        "voided (of a worker and a time whose results do not count)": report.voided,
        "in the place of others": report.replaced,
        "notes and voids of people": report.notes,
    }
    notes = [f"{report.added} attempts added", f"{report.known} were here already"]
    return ", ".join([*notes, *(f"{n} {words}" for words, n in further.items() if n)])


def write_bundle(
    engine: Engine,
    output: Path,
    origin: str,
    *,
    issues: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    only_counted: bool = True,
) -> None:
    """A bundle of what is selected; of all where nothing is. A file is there whole or not at all."""
    selection = ExportSelection(
        issues=frozenset(issues) if issues is not None else None,
        builds=frozenset(builds) if builds is not None else None,
        hardware=frozenset(hardware) if hardware is not None else None,
        only_counted=only_counted,
    )
    with reading(engine) as s, whole_file(output) as file:
        counts = export_bundle(s, file, now=datetime.now(UTC), origin=origin, selection=selection)
    err.print(f"{output}: {', '.join(f'{n} {kind}' for kind, n in counts.items()) or 'nothing'}", soft_wrap=True)


_TIMEOUT_S = 600  # a large bundle is answered when it is stored
_FIRST_WAIT_S = 2.0
_MOST_WAIT_S = 60.0


@command(
    "Send bundles of results to a server. It can be interrupted and repeated: the server recognises what it has.",
    argument("files", "Bundles of results, such as `run -o` and packs write.", nargs=-1, required=True, type=PATH),
    option("--server", required=True, metavar="URL", help="Such as https://knowngood.example.org."),
    option(
        "--token-file",
        type=FILE,
        help="A file that holds a token with the scope submit. Default: KNOWNGOOD_TOKEN.",
    ),
    option(
        "--tries",
        type=click.IntRange(1, 1000),
        default=5,
        help="How often to try a server that does not answer.",
    ),
    example="push --server https://knowngood.example.org results.jsonl.gz",
)
def push(files: Sequence[Path], server: str, token_file: Path | None, tries: int) -> Exit:
    refuse_address(server)
    address = f"{server.rstrip('/')}/api/v1/results"
    token = _token(token_file)
    refused = False
    for file in files:
        report = _push(address, token, file, tries)
        click.echo(f"{file.name}: {_describe_report(report)}")
        refused = refused or bool(report["refused"])
    return Exit.UNUSABLE if refused else Exit.OK


def _token(file: Path | None) -> str:
    """Never an argument: those are read by everybody on the host."""
    try:
        token = file.read_text() if file else os.environ.get("KNOWNGOOD_TOKEN", "")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"--token-file {file} cannot be read: {error}") from None
    if not token.strip() or not token.strip().isprintable():
        raise BadRequest("this needs a token with the scope submit: --token-file FILE, or KNOWNGOOD_TOKEN")
    return token.strip()


def _push(address: str, token: str, file: Path, tries: int) -> dict[str, object]:
    def refuse(detail: str) -> BadBundle:
        return BadBundle(f"{place_of(address)} does not take {file.name}: {detail}")

    def tell(wait_s: float) -> None:
        click.echo(f"{file.name}: {place_of(address)} does not take it now; again in {wait_s:.0f} s", err=True)

    waits_s = (min(_FIRST_WAIT_S * 2**n, _MOST_WAIT_S) for n in range(tries - 1))
    send = partial(_post, address, token, file)
    return patiently(address, send, waits_s, most_s=_MOST_WAIT_S, on_wait=tell, refuse=refuse)


def _post(address: str, token: str, file: Path) -> dict[str, object]:
    try:
        body = file.open("rb")
    except OSError as error:
        raise BadBundle(f"{file} cannot be read: {error.strerror or error}") from None
    with body:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/octet-stream",
            "Content-Length": str(file.stat().st_size),
            "User-Agent": "knowngood",
        }
        request = Request(address, body, headers)  # noqa: S310 - its scheme was checked
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            try:
                report = json.loads(answer.read(1 << 20))
                named = {
                    name: report[name] for name in ("added", "known", "voided", "superseded", "unknown", "changed")
                }
                return {**named, **{name: report.get(name, 0) for name in ("replaced", "refused")}}
            except (ValueError, TypeError, KeyError):
                raise ServerUnusable(
                    f"{place_of(address)} does not answer as a Known Good server would; is the address right?"
                ) from None


_FURTHER_COUNTS = ("superseded", "unknown", "voided", "replaced", "refused")


def _describe_report(report: dict[str, object]) -> str:
    parts = [f"{report['added']} attempts added", f"{report['known']} were there already"]
    parts += [f"{report[what]} {what}" for what in _FURTHER_COUNTS if report[what]]
    return ", ".join([*parts, f"{report['changed']} cells changed"])


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
        with whole_file(output) if output != _STDOUT else nullcontext(sys.stdout.buffer) as file:
            file.writelines(WRITERS[known_form](extract))
        sys.stdout.flush()
        written = "standard output" if output == _STDOUT else output
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
        raise BadRequest(f'--format "{name}" is not known; known: {", ".join(Format)}') from None


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
