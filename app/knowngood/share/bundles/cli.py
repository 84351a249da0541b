"""`knowngood import`, and bundles as files: what `import`, `export`, `run` and `up` read and write."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from knowngood.cli.catalogue import opened_with_catalogue
from knowngood.cli.context import operator
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import FILE_HERE, argument
from knowngood.cli.output import err, out
from knowngood.settings import read_settings
from knowngood.share.bundles.store import export_bundle, take_in_bundle
from knowngood.store.engine import Engine, reading
from knowngood.store.records import ExportSelection

_CLASHES_TOLD = 20


@command(
    "Take in bundles of results; a second time changes nothing. Ends in 4 where something else stands here under a "
    "number than what they say.",
    argument("files", "Bundles of results.", nargs=-1, required=True, type=FILE_HERE),
    example="import knowngood-results.jsonl.gz",
)
def import_command(files: Sequence[Path]) -> Exit:
    engine = opened_with_catalogue(read_settings())
    refused = [import_bundle(engine, file) for file in files]
    return Exit.UNUSABLE if any(refused) else Exit.OK


def import_bundle(engine: Engine, file: Path, *, alone: bool = False) -> int:
    """Tell what came of it; how many attempts were refused."""
    report = take_in_bundle(engine, file, datetime.now(UTC), by=operator(), alone=alone)
    notes = [f"{report.added} attempts added", f"{report.known} were here already"]
    notes += [f"{report.superseded} superseded (another state of their repro)"] if report.superseded else []
    notes += [f"{report.unknown} of issues or builds this catalogue does not have"] if report.unknown else []
    notes += [f"{report.voided} voided (of a worker and a time whose results do not count)"] if report.voided else []
    notes += [f"{report.replaced} in the place of others"] if report.replaced else []
    notes += [f"{report.said} notes and voids of people"] if report.said else []
    out.print(f"{file.name}: {', '.join(notes)}", soft_wrap=True)
    for one in report.refused[:_CLASHES_TOLD]:
        words = f"attempt {one.id} says something else than the one that is here, which came from {one.origin}"
        err.print(f"{file.name}: refused: {words}", markup=False, soft_wrap=True)
    if len(report.refused) > _CLASHES_TOLD:
        err.print(f"{file.name}: refused: {len(report.refused) - _CLASHES_TOLD} more", markup=False, soft_wrap=True)
    return len(report.refused)


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
    partial = output.with_name(output.name + ".partial")
    try:
        with reading(engine) as s, partial.open("wb") as file:
            counts = export_bundle(s, file, now=datetime.now(UTC), origin=origin, selection=selection)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
    err.print(f"{output}: {', '.join(f'{n} {kind}' for kind, n in counts.items()) or 'nothing'}", soft_wrap=True)
