"""The `knowngood` command: parse, call, print. Rules live in the domain; exit codes are chosen here.

0 done, 1 a finding, 2 usage, 3 insufficient evidence, 4 the store or a service cannot be used.
"""

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from knowngood.app.cli.context import make_data_dir, opened, operator, read_settings, root
from knowngood.app.cli.encoding import write_what_can_be_read
from knowngood.app.cli.exit_codes import Exit, exit_of
from knowngood.app.cli.signals import stoppable, wait
from knowngood.app.cli.worker_config import dump_worker_config
from knowngood.app.commands.prune import prune
from knowngood.app.commands.serve import Host, Port, Server, listen, log_as, serve
from knowngood.app.commands.token import token
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.builds.build_names import BuildNames, minor_python
from knowngood.app.domain.errors import BadRequest, KnownGoodError
from knowngood.app.domain.issue import EnvironmentRequest, Issue, environment_request, is_measured_on
from knowngood.app.domain.issue_selectors import find_issue, find_issues
from knowngood.app.domain.measuring.planning import PlannedJob, PlanRequest, Sample, plan_jobs
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.matrix import Columns, choose_columns, complete
from knowngood.app.domain.verdicts.verdict import Cell, CellPlace, Verdict
from knowngood.app.features.annotations.cli import unvoid, void
from knowngood.app.features.backup.cli import backup, restore
from knowngood.app.features.bundles.cli_push import push
from knowngood.app.features.compare.cli import compare
from knowngood.app.features.diagnose.cli import explain
from knowngood.app.features.discovery.cli import discover
from knowngood.app.features.fleet.cli import NodeIp, leading, worker
from knowngood.app.features.gate.cli_snapshot import snapshot
from knowngood.app.features.scheduling.cli import MINUTES, next_
from knowngood.app.features.scheduling.pricing import SIZES_S, PricingContext, Sizes, price_as_json, tell_price
from knowngood.app.features.upgrade.cli import upgrade
from knowngood.app.features.watchlists.cli import watch
from knowngood.app.features.webhooks.cli import delivering, webhook
from knowngood.app.gc_tuning import collect_seldom
from knowngood.app.logging_setup import configure

if TYPE_CHECKING:
    from knowngood.app.cli.console import RunProgress
    from knowngood.app.settings import Settings
    from knowngood.app.store.engine import Engine, Session
    from knowngood.app.store.queries import JobRow
    from knowngood.app.store.records import CellChange
    from knowngood.workers.dispatch.dispatcher import DispatchOptions
    from knowngood.workers.dispatch.local_transport import LocalTransport
    from knowngood.workers.pack.builder import OpenedPack

_UP = "up"  # of a run: who asked for it; of a lease: who looks whether there is such a run
_FURTHER = 2  # plans after the first: a baseline's verdict asks for workarounds or three attempts, and these for ten


cli = typer.Typer(
    help="Which torch build is known good for the bugs you care about, and what to do on the builds that are not.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the command line; our own errors end in one sentence and an exit code, never in a traceback."""
    collect_seldom()
    write_what_can_be_read()
    configure("text", "warning")
    try:
        cli()
    except KnownGoodError as error:
        _refuse(error, exit_of(error))
    except BrokenPipeError:
        # The reader went away (`| head`): that is its right, and no error of ours.
        sys.stderr.close()
        raise SystemExit(Exit.OK) from None


def _refuse(error: KnownGoodError, code: Exit) -> None:
    err.print(f"knowngood: {error}", markup=False, soft_wrap=True)
    raise SystemExit(code)


def _now() -> datetime:
    return datetime.now(UTC)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"knowngood {version('knowngood')}")
        raise typer.Exit


@cli.callback()
def _options(
    _version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


# -- the parts every command stands on ---------------------------------------------------------------------------------


def _folders(settings: "Settings") -> list[Path]:
    from knowngood.app.catalogue.loader import shipped_catalogue

    return [*([shipped_catalogue()] if settings.shipped else []), *settings.catalogue_folders]


def _load_catalogue(engine: "Engine", settings: "Settings") -> None:
    """Take the files of the catalogue into the store; says which verdicts that changed."""
    from knowngood.app.catalogue.loader import read_catalogue
    from knowngood.app.store.catalogue import save_catalogue
    from knowngood.app.store.engine import unit_of_work

    catalogue = read_catalogue(_folders(settings))
    with unit_of_work(engine) as s:
        changes = save_catalogue(s, catalogue.issues, catalogue.builds, _now())
    news = [change for change in changes if change.is_news]
    if news:
        err.print(f"the catalogue changed: {len(news)} cells read differently now")


@dataclass(frozen=True)
class Chosen:
    """What a command is about: issues and builds of the catalogue, and hardware classes."""

    issues: tuple[Issue, ...]
    builds: tuple[Build, ...]
    hardware: tuple[str, ...]


def _split(values: Sequence[str] | None) -> list[str]:
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def _pick_issues(engine: "Engine", wanted: Sequence[str] | None) -> tuple[Issue, ...]:
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_issues

    with reading(engine) as s:
        issues = load_issues(s)
    names = _split(wanted)
    return find_issues(names, {issue.id: issue for issue in issues}) if names else issues


def _pick_builds(engine: "Engine", wanted: Sequence[str] | None, empty: Callable[[Build], bool]) -> tuple[Build, ...]:
    """The builds that are named, `all`, `default`, or without a word those that `empty` says."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds

    with reading(engine) as s:
        builds = load_builds(s)
    names = _split(wanted)
    if not names:
        return tuple(build for build in builds if empty(build))
    if "all" in names:
        return builds
    known = BuildNames({build.id: build for build in builds})
    ids = {known.find(name).id for name in names if name != "default"}
    return tuple(build for build in builds if build.id in ids or (build.default and "default" in names))


Issues = Annotated[list[str] | None, typer.Option("--issues", help="Ids, repeated or comma-separated; or `all`.")]
Builds = Annotated[
    list[str] | None,
    typer.Option("--builds", help="Ids or versions (2.5.1, 2.5.1+cu118), comma-separated; `all`; `default`."),
]
Hardware = Annotated[list[str] | None, typer.Option("--hardware", help="Classes, such as cpu-x86_64.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
FailOn = Annotated[
    list[str] | None, typer.Option("--fail-on", help="Verdicts that end in exit code 1, such as affected.")
]


# -- what is known -----------------------------------------------------------------------------------------------------


@cli.command()
def matrix(
    issues: Issues = None,
    builds: Builds = None,
    hardware: Hardware = None,
    query: Annotated[str, typer.Option(help="Issues and columns, as in the box of the matrix page.")] = "",
    as_json: AsJson = False,
    fail_on: FailOn = None,
) -> None:
    """Print what is known now."""
    from knowngood.app.query.cli import read_asked
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_hardware

    failing = _verdicts(fail_on)
    asked = read_asked(query)
    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    with reading(engine) as s:
        measured = load_hardware(s)
    classes = tuple(_split(hardware)) or measured or _own_hardware()[:1]
    is_shown = (lambda _: True) if builds else _measured_or_on_line(engine)
    columns = asked.columns(_pick_builds(engine, builds, lambda _: True), is_shown)
    wanted = asked.issues(_pick_issues(engine, issues), columns, classes, lambda: _known(engine), _now())
    chosen = Chosen(wanted, columns, classes)
    if query and not wanted and not as_json:
        out.print("no issue matches the query")
    else:
        _show(engine, chosen, as_json=as_json)
    _end(engine, chosen, failing)


def _measured_or_on_line(engine: "Engine") -> Callable[[Build], bool]:
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds, load_cells

    with reading(engine) as s:
        builds, cells = load_builds(s), load_cells(s)
    shown = {build.id for build in choose_columns(builds, {cell.build for cell in cells}, Columns.RELEASES)}
    return lambda build: build.id in shown


def _own_hardware() -> tuple[str, ...]:
    from knowngood.workers.host.machine_info import describe_machine

    return describe_machine().hardware


def _verdicts(names: Sequence[str] | None) -> frozenset[str]:

    known = {verdict.value for verdict in Verdict}
    for name in _split(names):
        if name not in known:
            raise BadRequest(f'--fail-on "{name}" is no verdict; known: {", ".join(sorted(known))}')
    return frozenset(_split(names))


def _cells_of(engine: "Engine", chosen: Chosen) -> dict[CellPlace, Cell]:
    return complete(chosen.issues, chosen.builds, chosen.hardware, _known(engine))


def _known(engine: "Engine") -> Known:
    from knowngood.app.knowledge.loader import load_known
    from knowngood.app.store.engine import reading

    with reading(engine) as s:
        return load_known(s, _now())


def _show(engine: "Engine", chosen: Chosen, *, as_json: bool) -> None:
    from knowngood.app.cli.console import print_matrix

    known = _known(engine)
    if as_json:
        cells = complete(chosen.issues, chosen.builds, chosen.hardware, known)
        from knowngood.app.dashboard.matrix.schemas import matrix_body

        _print_json(matrix_body(chosen.issues, chosen.builds, cells.values(), _now()).model_dump(mode="json"))
        return
    for hardware in chosen.hardware:
        print_matrix(out, chosen.issues, chosen.builds, hardware, known)


def _end(engine: "Engine", chosen: Chosen, failing: frozenset[str]) -> None:
    if failing and any(cell.verdict.value in failing for cell in _cells_of(engine, chosen).values()):
        raise typer.Exit(Exit.FINDING)


@cli.command()
def hygiene(issues: Issues = None, as_json: AsJson = False) -> None:
    """Where upstream's word and the measurements drift apart; ends in 1 where there is anything."""
    from knowngood.app.features.coverage.cli import print_remarks
    from knowngood.app.features.coverage.hygiene import remarks_of

    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    wanted = {issue.id for issue in _pick_issues(engine, issues)}
    found = [remark for issue, remark in remarks_of(_known(engine)) if issue.id in wanted]
    if as_json:
        _print_json([vars(remark) for remark in found])
    else:
        print_remarks(out, found)
    if found:
        raise typer.Exit(Exit.FINDING)


# -- the catalogue -----------------------------------------------------------------------------------------------------


@cli.command()
def check(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of issues; the shipped ones without a word.")
    ] = None,
) -> None:
    """Validate the whole catalogue at once; every problem comes with file and line."""
    from knowngood.app.catalogue.hostile_text import refuse_slow_signatures
    from knowngood.app.catalogue.loader import read_catalogue
    from knowngood.app.catalogue.problems import CatalogueProblems

    asked = list(folders or _folders(read_settings()))
    try:
        catalogue = read_catalogue(asked)
        refuse_slow_signatures(asked, catalogue.issues)
    except CatalogueProblems as found:
        for problem in found.problems:
            out.print(str(problem), markup=False, soft_wrap=True)
        out.print(f"{len(found.problems)} problems")
        raise typer.Exit(Exit.FINDING) from None
    out.print(f"{len(catalogue.issues)} issues and {len(catalogue.builds)} builds, no problems")


@cli.command("new-issue")
def new_issue(
    id_: Annotated[str, typer.Argument(metavar="ID", help="<project>-<number>, such as pytorch-151290.")],
    title: Annotated[str, typer.Option(help="What breaks, in one line.")],
    folder: Annotated[Path, typer.Option(help="Where the issue's folder goes.")] = Path("repros"),
) -> None:
    """Scaffold an issue; `check` then says what is left to write."""
    from knowngood.app.catalogue.scaffold import new_issue as scaffold

    made = scaffold(folder, id_, title)
    out.print(f"{made}: now write issue.toml and repro.py, then run `knowngood check {folder}`", soft_wrap=True)


# -- the store ---------------------------------------------------------------------------------------------------------


@cli.command()
def migrate() -> None:
    """Bring the database to this release's tables; safe while others use it, and where there is nothing to do."""
    from knowngood.app.cli.context import bring_up
    from knowngood.app.store.engine import connect

    settings = read_settings()
    if not settings.database_url:
        make_data_dir(settings)
    engine = connect(settings.database)
    bring_up(engine)
    _load_catalogue(engine, settings)
    out.print("the database is at this release")


@cli.command()
def reclassify(as_json: AsJson = False) -> None:
    """Derive every verdict anew from stored evidence, without running anything, and tell what came out differently."""
    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    news = [
        {"issue": one.issue, "build": one.build, "hardware": one.hardware, "before": before, "after": after}
        for one in _derive_anew(engine)
        for before, after in [one.verdicts]
    ]
    if as_json:
        _print_json({"changed": news})
        return
    for one in news:
        out.print(f"{one['issue']} {one['build']} {one['hardware']}: {one['before']} -> {one['after']}", soft_wrap=True)
    out.print(f"{len(news)} cells came out differently")


def _derive_anew(engine: "Engine") -> "tuple[CellChange, ...]":
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.maintenance import reclassify as derive_anew

    with unit_of_work(engine) as s:
        return derive_anew(s, _now())


def _print_json(value: object) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()


@cli.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Bundles of results.", exists=True, dir_okay=False)],
) -> None:
    """Take in bundles of results; a second time changes nothing. Ends in 4 where something else stands here under a
    number than what they say.
    """
    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    refused = [_import_one(engine, file) for file in files]
    if any(refused):
        raise typer.Exit(Exit.UNUSABLE)


_CLASHES_TOLD = 20


def _import_one(engine: "Engine", file: Path, *, alone: bool = False) -> int:
    """Tell what came of it; how many attempts were refused."""
    from knowngood.app.features.bundles.store import take_in_bundle

    report = take_in_bundle(engine, file, _now(), by=operator(), alone=alone)
    notes = [f"{report.added} attempts added", f"{report.known} were here already"]
    notes += [f"{report.superseded} superseded (another state of their repro)"] if report.superseded else []
    notes += [f"{report.unknown} of issues or builds this catalogue does not have"] if report.unknown else []
    notes += [f"{report.voided} voided (of a worker and a time whose results do not count)"] if report.voided else []
    notes += [f"{report.replaced} in the place of others"] if report.replaced else []
    out.print(f"{file.name}: {', '.join(notes)}", soft_wrap=True)
    for one in report.refused[:_CLASHES_TOLD]:
        words = f"attempt {one.id} says something else than the one that is here, which came from {one.origin}"
        err.print(f"{file.name}: refused: {words}", markup=False, soft_wrap=True)
    if len(report.refused) > _CLASHES_TOLD:
        err.print(f"{file.name}: refused: {len(report.refused) - _CLASHES_TOLD} more", markup=False, soft_wrap=True)
    return len(report.refused)


@cli.command()
def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write; - is the standard output, but not for a bundle.")
    ],
    format_: Annotated[str, typer.Option("--format", help="bundle, osv, kcidb, csv, junit or markdown.")] = "bundle",
    issues: Issues = None,
    builds: Builds = None,
    hardware: Hardware = None,
    origin: Annotated[str, typer.Option(help="How a bundle names this store to whoever imports it.")] = "knowngood",
    everything: Annotated[bool, typer.Option("--all", help="Into a bundle: superseded attempts too.")] = False,
) -> None:
    """Write evidence to a bundle that another installation imports, or the matrix in the words of other tools."""
    from knowngood.app.features.exports import cli as exports_cli
    from knowngood.app.features.exports.formats import Format, write_extract

    form = exports_cli.known_format(format_)
    engine = opened(read_settings())
    classes = _split(hardware)
    if form is not Format.BUNDLE:
        listed = exports_cli.as_the_matrix_lists(engine)
        chosen = (_pick_issues(engine, issues), _pick_builds(engine, builds, listed))
        extract = exports_cli.extract_from(engine, *chosen, classes, _now())
        written = exports_cli.write(write_extract(form, extract), output)
        count = len(extract.cells)
        err.print(f"{written}: {count} {'cell' if count == 1 else 'cells'}", soft_wrap=True)
        return
    if output == exports_cli.STDOUT:
        raise BadRequest("a bundle is written to a file; name one with -o")
    _export(
        engine,
        output,
        origin,
        issues={issue.id for issue in _pick_issues(engine, issues)} if issues else None,
        builds={build.id for build in _pick_builds(engine, builds, lambda _: True)} if builds else None,
        hardware=classes or None,
        only_counted=not everything,
    )


def _export(
    engine: "Engine",
    output: Path,
    origin: str,
    *,
    issues: Collection[str] | None = None,
    builds: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    only_counted: bool = True,
) -> None:
    from knowngood.app.features.bundles.store import export_bundle
    from knowngood.app.store.engine import reading
    from knowngood.app.store.records import ExportSelection

    selection = ExportSelection(
        issues=frozenset(issues) if issues is not None else None,
        builds=frozenset(builds) if builds is not None else None,
        hardware=frozenset(hardware) if hardware is not None else None,
        only_counted=only_counted,
    )
    partial = output.with_name(output.name + ".partial")
    try:
        with reading(engine) as s, partial.open("wb") as file:
            counts = export_bundle(s, file, now=_now(), origin=origin, selection=selection)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
    err.print(f"{output}: {', '.join(f'{n} {kind}' for kind, n in counts.items()) or 'nothing'}", soft_wrap=True)


cli.command("prune")(prune)


# -- running -----------------------------------------------------------------------------------------------------------


@cli.command()
def run(
    builds: Builds = None,
    issues: Issues = None,
    hardware: Hardware = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Answers wanted of every arm.")] = 1,
    confirm: Annotated[
        bool,
        typer.Option(
            help="Only of cells with an answer, what their claims rest on: two attempts, three on both sides of a "
            "change, ten where mixed; and every workaround with each variant that fails."
        ),
    ] = False,
    force: Annotated[bool, typer.Option(help="Run again, whatever is known.")] = False,
    where_affected: Annotated[
        bool, typer.Option(help="Workarounds only on the builds where their issue is seen: a fraction of the arms.")
    ] = False,
    next_up: Annotated[bool, typer.Option("--next", help="What `next` says is worth most, in that order.")] = False,
    minutes: Annotated[float, typer.Option(min=1, help="With --next: how long it may take.")] = MINUTES,
    dry_run: Annotated[bool, typer.Option(help="Tell minutes, downloads and disk, fetch nothing.")] = False,
    sizes: Sizes = True,
    pack: Annotated[
        Path | None, typer.Option(help="Run what this pack holds, without network.", file_okay=False)
    ] = None,
    python: Annotated[
        list[str] | None, typer.Option(help="Interpreters whose own torch is used as it is: a column of the catalogue.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the results as a bundle; with --pack always.")
    ] = None,
    as_json: AsJson = False,
    fail_on: FailOn = None,
) -> None:
    """Run what is not known yet, store the evidence, print the matrix; without a word default builds, all issues."""
    failing = _verdicts(fail_on)
    if next_up and (builds or issues or pack or python or repeat > 1 or confirm or force or where_affected):
        raise BadRequest("--next chooses what to run; of the others it takes --minutes, --hardware and --dry-run")
    settings = read_settings()
    log_as(settings, "warning")
    unpacked = _open_pack(settings, pack) if pack else None
    settings = _with_catalogue_of(settings, unpacked)
    engine = opened(settings)
    _load_catalogue(engine, settings)
    work = Work(settings, unpacked, _adopt(engine, _split(python)))
    chosen = _chosen_for(engine, work, builds, issues, hardware)
    wanted = PlanRequest(repeat=repeat, confirm=confirm, force=force, where_affected=where_affected, now=_now())
    if next_up:
        planned, chosen = _proposed(engine, settings, chosen, minutes)
    else:
        planned = work.able(_plan(engine, chosen, wanted))
    if dry_run:
        if as_json:
            _print_json(price_as_json(engine, work.place(asks=sizes), planned))
        else:
            tell_price(engine, work.place(asks=sizes), planned)
        return
    asked = {"builds": [b.id for b in chosen.builds], "issues": [i.id for i in chosen.issues], "by": "run"}
    with stoppable() as stop:
        try:
            _run_planned(engine, work, planned, asked, stop)
            for _ in range(_FURTHER if confirm or where_affected else 0):
                planned = work.able(_plan(engine, chosen, replace(wanted, force=False)))
                if planned and not stop():
                    _run_planned(engine, work, planned, asked, stop)
        finally:
            if unpacked or output:
                _write_results(engine, chosen, output or Path("knowngood-results.jsonl.gz"), unpacked)
    _show(engine, chosen, as_json=as_json)
    _end(engine, chosen, failing)


@cli.command()
def recheck(
    cells: Annotated[int, typer.Option(min=1, help="How many cells to ask once more.")] = 200,
    seed: Annotated[str | None, typer.Option(help="The same seed draws the same cells; printed.")] = None,
    python: Annotated[str, typer.Option(help="Ask what the default Python said on this one, such as 3.12.")] = "",
    builds: Builds = None,
    issues: Issues = None,
    hardware: Hardware = None,
    dry_run: Annotated[bool, typer.Option(help="Tell minutes, downloads and disk, fetch nothing.")] = False,
    sizes: Sizes = True,
    as_json: AsJson = False,
) -> None:
    """Ask cells with an answer, drawn by chance, once more; ends in 1 where a verdict changed."""
    from secrets import token_hex

    from knowngood.app.features.quality import cli_recheck as again

    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    work = Work(settings)
    sample = Sample(cells, seed or token_hex(4), python)
    columns, rows = _pick_builds(engine, builds, lambda _: True), _pick_issues(engine, issues)
    drawn = again.draw(engine, rows, columns, tuple(_split(hardware)) or _own_hardware(), sample)
    err.print(f"{len(drawn.cells)} cells drawn with --seed {sample.seed}", markup=False)
    if dry_run:
        if as_json:
            _print_json(price_as_json(engine, work.place(asks=sizes), drawn.jobs))
        else:
            tell_price(engine, work.place(asks=sizes), drawn.jobs)
        return
    with stoppable() as stop, suppress(typer.Exit):  # stopped: what came until then is told
        _run_planned(engine, work, drawn.jobs, {"cells": len(drawn.cells), "by": "recheck"}, stop)
    found = again.compare(engine, rows, drawn)
    if as_json:
        _print_json(again.as_json(found, sample.seed))
    else:
        again.print_rechecked(out, found, sample.seed)
    rate = again.rate_of(found)
    if rate.part or not rate.whole:
        raise typer.Exit(Exit.FINDING if rate.part else Exit.INSUFFICIENT)


@cli.command()
def bisect(
    issue: Annotated[str, typer.Argument(help="The issue's id.")],
    from_: Annotated[str, typer.Option("--from", help="One end: a build's id, or a version of torch such as 2.4.1.")],
    to: Annotated[str, typer.Option("--to", help="The other end, on the same line of builds.")],
    hardware: Annotated[str, typer.Option(help="One class; without, the first where the issue can be.")] = "",
    python: Annotated[str, typer.Option(help="The Python of every build of the line, such as 3.12.")] = "",
    full: Annotated[bool, typer.Option(help="Ask every build that is not known, instead of halving.")] = False,
    confirm: Annotated[bool, typer.Option(help="Ask stored sides of the change for what confirming it needs.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Tell what is known and which job would be first.")] = False,
    sizes: Sizes = True,
    as_json: AsJson = False,
) -> None:
    """Find the build that broke an issue, or mended it, in few jobs; 1: not monotone, 3: nothing to find."""
    from knowngood.app.features.bisect import cli as halving
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds, load_hardware, load_known_attempts

    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    row = find_issue(issue, {one.id: one for one in _pick_issues(engine, None)})
    with reading(engine) as s:
        builds, measured = load_builds(s), load_hardware(s)
    line = halving.read_line(builds, from_, to, python)
    own = _own_hardware()
    class_ = halving.choose_hardware(hardware, own, measured, row, line)
    question = halving.BisectQuestion(row, line, class_, can_ask=class_ in own or _is_led(engine))
    work = Work(settings)
    if dry_run:
        with reading(engine) as s:
            outlook = halving.outlook(question, load_known_attempts(s), _now(), full=full)
        if as_json:
            price = {"price": price_as_json(engine, work.place(asks=sizes), outlook.jobs)} if outlook.jobs else {}
            _print_json({**halving.outlook_as_json(question, outlook), **price})
            return
        halving.print_outlook(out, question, outlook)
        if outlook.jobs:
            out.print("the first of them:")
            tell_price(engine, work.place(asks=sizes), outlook.jobs)
        return
    if not question.can_ask:
        err.print(f"nobody here serves {class_}: only what is stored is looked at", markup=False)

    def measure(planned: tuple[PlannedJob, ...]) -> None:
        with suppress(typer.Exit):  # stopped: what came until then is told
            _run_planned(engine, work, planned, {"issues": [row.id], "by": "bisect"}, stop)

    with stoppable() as stop:
        found = halving.search(engine, question, measure, stop, clock=_now, full=full, confirm=confirm)
    if as_json:
        _print_json(halving.as_json(question, found))
    else:
        halving.print_found(out, question, found)
    if code := halving.CODES[found.answer.kind]:
        raise typer.Exit(code)


def _is_led(engine: "Engine") -> bool:
    """Whether a dispatcher is at work, which may serve other hardware than this machine has."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.jobs.job_queue import DISPATCHER
    from knowngood.app.store.queries import load_lease

    with reading(engine) as s:
        lease = load_lease(s, DISPATCHER)
    return lease is not None and lease.until > _now()


@cli.command()
def here(
    python: Annotated[str, typer.Option(help="The interpreter of the environment; this very one unless said.")] = "",
    issues: Issues = None,
    force: Annotated[bool, typer.Option(help="Run again, whatever is known of this environment.")] = False,
    as_json: AsJson = False,
    fail_on: FailOn = None,
) -> None:
    """Run the catalogue inside a Python environment as it is: what fails there, and what cures it there."""
    from knowngood.app.catalogue.loader import read_catalogue
    from knowngood.app.commands import here as local
    from knowngood.app.store.catalogue import save_catalogue
    from knowngood.app.store.engine import unit_of_work

    failing = _verdicts(fail_on)
    settings = read_settings()
    catalogue = read_catalogue(_folders(settings))
    found = local.look(python, catalogue.builds)
    make_data_dir(settings)
    store = root(settings) / "here"
    store.mkdir(exist_ok=True)
    engine = opened(settings.model_copy(update={"data_dir": store / found.name, "database_url": ""}))
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, [found.build], _now())
    work = Work(settings, None, {found.build.id: found.python})
    chosen = Chosen(_pick_issues(engine, issues), (found.build,), _own_hardware())
    err.print(f"{found.python} holds {found.in_words}", markup=False, soft_wrap=True)
    asked = {"builds": [found.build.id], "issues": [i.id for i in chosen.issues], "by": "here"}
    wanted = PlanRequest(force=force, where_affected=True, now=_now())
    with stoppable() as stop:
        for _ in range(1 + _FURTHER):
            planned = work.able(_plan(engine, chosen, wanted))
            if planned and not stop():
                _run_planned(engine, work, planned, asked, stop)
            wanted = replace(wanted, force=False)
    cells = [cell for cell in _cells_of(engine, chosen).values() if cell.verdict is not Verdict.NOT_RUN]
    if as_json:
        _print_json(local.as_json(found, cells))
    else:
        local.print_found(out, found, chosen.issues, cells)
    _end(engine, chosen, failing)


@dataclass(frozen=True)
class Work:
    """What a run works with: the settings, the pack it runs from, the builds that are used as this machine has them."""

    settings: "Settings"
    pack: "OpenedPack | None" = None
    adopted: Mapping[str, Path] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        return self.pack.environ(os.environ) if self.pack else dict(os.environ)

    def place(self, *, asks: bool = True) -> PricingContext:
        return PricingContext(self.settings, SIZES_S if asks else 0.0, self.environ, self.adopted)

    def able(self, planned: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
        """What of the jobs can be done with this: all of them, or those whose environments the pack holds."""
        if self.pack is None and not self.adopted:
            return tuple(planned)
        kept = tuple(job for job in planned if self._is_here(job))
        if len(kept) < len(planned):
            arms = sum(len(job.arms) for job in planned) - sum(len(job.arms) for job in kept)
            err.print(f"{arms} arms need packages that {self._source} lacks, and are left out", soft_wrap=True)
        return kept

    @property
    def _source(self) -> str:
        return "the pack" if self.pack else "an adopted interpreter, which is used as it is,"

    def _is_here(self, job: PlannedJob) -> bool:
        if job.build.id in self.adopted and not job.request.packages and not job.request.mutates:
            return True
        if self.pack is None:
            return job.build.id not in self.adopted
        from knowngood.workers.provision.resolver import environment_key

        return self.pack.holds(environment_key(job.build, job.request))


def _open_pack(settings: "Settings", folder: Path) -> "OpenedPack":
    from knowngood.workers.pack.builder import open_pack

    return open_pack(folder, root(settings), tell=lambda line: err.print(line, soft_wrap=True))


def _with_catalogue_of(settings: "Settings", pack: "OpenedPack | None") -> "Settings":
    """A pack brings the catalogue it was made with; what is installed here may be another state of it."""
    if pack is None:
        return settings
    return settings.model_copy(update={"shipped": False, "catalogue": os.pathsep.join(map(str, pack.catalogue))})


def _adopt(engine: "Engine", pythons: Sequence[str]) -> dict[str, Path]:
    """The builds that these interpreters hold. Raises BadRequest for one that is no column."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds
    from knowngood.workers.provision.adopted_env import adopt

    if not pythons:
        return {}
    with reading(engine) as s:
        builds = load_builds(s)
    found = dict(adopt(python, builds, os.environ) for python in pythons)
    for id_, path in found.items():
        err.print(f"{path} is {id_}: used as it is", soft_wrap=True)
    return found


def _chosen_for(engine: "Engine", work: Work, builds: Builds, issues: Issues, hardware: Hardware) -> Chosen:
    """What is named; else what the pack is for and what was adopted; else the default builds."""
    ids = {*(work.pack.builds if work.pack else ()), *work.adopted}
    if issues is None and work.pack:
        issues = list(work.pack.issues)
    return Chosen(
        _pick_issues(engine, issues),
        _pick_builds(engine, builds, lambda build: build.id in ids if ids else build.default),
        tuple(_split(hardware)) or _own_hardware(),
    )


def _proposed(
    engine: "Engine", settings: "Settings", chosen: Chosen, minutes: float
) -> tuple[tuple[PlannedJob, ...], Chosen]:
    """The jobs of `next` in its order, and what they are about."""
    from knowngood.app.features.scheduling.cli import proposed

    planned = tuple(one.job for one in proposed(engine, settings, chosen.hardware, minutes))
    issues = {arm.issue for job in planned for arm in job.arms}
    about = Chosen(
        tuple(issue for issue in _pick_issues(engine, None) if issue.id in issues),
        _pick_builds(engine, None, lambda build: build.id in {job.build.id for job in planned}),
        tuple(class_ for class_ in chosen.hardware if any(job.hardware == class_ for job in planned)),
    )
    return planned, about


def _write_results(engine: "Engine", chosen: Chosen, output: Path, pack: "OpenedPack | None") -> None:
    origin = f"pack {pack.id}" if pack else "knowngood"
    _export(engine, output, origin, issues={i.id for i in chosen.issues}, builds={b.id for b in chosen.builds})


def _plan(engine: "Engine", chosen: Chosen, wanted: PlanRequest, *, only_local: bool = False) -> tuple[PlannedJob, ...]:
    """Jobs for what is chosen; with `only_local` what other machines measured does not count as known."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds, load_known_attempts

    with reading(engine) as s:
        known, line = load_known_attempts(s, only_local=only_local), load_builds(s)
    return plan_jobs(chosen.issues, chosen.builds, chosen.hardware, known, wanted, line=line)


def _run_planned(
    engine: "Engine",
    work: Work,
    planned: Sequence[PlannedJob],
    asked: Mapping[str, object],
    stop: Callable[[], bool],
    seen: Collection[str] = (),
    replan: Callable[[], Sequence[PlannedJob]] | None = None,
) -> str:
    """Queue the jobs and see them through, here or, where another dispatcher is at work, by it. Gives the run that came
    instead, if any: one of another `up` that is not among `seen`, or ours where another `up` has cancelled it. An `up`
    says how to plan anew (`replan`).
    """
    from knowngood.app.cli.console import to_do_in_words
    from knowngood.app.store.engine import reading, unit_of_work
    from knowngood.app.store.jobs.job_queue import cancel_run
    from knowngood.app.store.queries import load_run
    from knowngood.app.store.records import RunState
    from knowngood.workers.dispatch.dispatcher import DispatchOptions

    if not planned:
        err.print("nothing to run: every cell asked for has its answer")
        return ""
    err.print(to_do_in_words(planned), highlight=False)
    run_id, is_own = _queue(engine, planned, asked, seen, replan)
    if not is_own:
        err.print("another `up` measures this already: following it")
    how = DispatchOptions(hardware=_own_hardware(), run=run_id, until_idle=True, lease_s=work.settings.lease_s)
    _see_through(engine, work, run_id, how, stop)
    if stop():
        with unit_of_work(engine) as s:
            if is_own:
                cancel_run(s, run_id, _now())
        raise typer.Exit(Exit.OK)
    with reading(engine) as s:
        is_done = is_own and load_run(s, run_id).state is not RunState.CANCELLED
    return "" if is_done else run_id


def _queue(
    engine: "Engine",
    planned: Sequence[PlannedJob],
    asked: Mapping[str, object],
    seen: Collection[str],
    replan: Callable[[], Sequence[PlannedJob]] | None = None,
) -> tuple[str, bool]:
    """A new run of these jobs and True; of two `up` at once, on whatever hosts, the second is given the run of the
    first and False. Where that has ended since the jobs were planned, what is left is planned once more.

    Once only: what is left of a run that is among `seen` is not for this host, and may wait for ever.
    """
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.jobs.job_queue import create_run, take_lease

    with unit_of_work(engine) as s:
        if replan is not None:
            take_lease(s, _UP, _UP, _now(), 0)  # not to hold it: the other one waits here until this is committed
            queued = [run for run in _unfinished_ups(s) if run not in seen]
            if queued:
                return queued[0], False
            planned = replan()
        return create_run(s, planned, asked, _now()), True


def _unfinished_ups(s: "Session") -> list[str]:
    from knowngood.app.store.queries import load_runs

    return [run.id for run in load_runs(s, 50) if run.finished_at is None and run.request.get("by") == _UP]


def _see_through(engine: "Engine", work: Work, run_id: str, how: "DispatchOptions", stop: Callable[[], bool]) -> None:
    """Dispatch the run until it is done. A dispatcher of every run does it where one is at work; one that keeps to a
    run of its own does not, and then this goes on when that one ends.
    """
    from knowngood.app.cli.console import RunProgress
    from knowngood.workers.dispatch.dispatcher import DispatcherBusy, dispatch

    with RunProgress(err, _jobs_of(engine, run_id)) as progress:
        is_told = False
        while not stop():
            try:
                dispatch(engine, _carrier(work), how, stop=stop, on_event=progress.tell)
            except DispatcherBusy:
                if not is_told:
                    err.print("another dispatcher is at work: it takes this over, or this goes on when it ends")
                is_told = True
                if _is_done_by_another(engine, run_id, progress, stop):
                    return
            else:
                return


def _jobs_of(engine: "Engine", run_id: str) -> "tuple[JobRow, ...]":
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_run

    with reading(engine) as s:
        return load_run(s, run_id).jobs


def _is_done_by_another(
    engine: "Engine", run_id: str, progress: "RunProgress", stop: Callable[[], bool], watch_s: float = 3.0
) -> bool:
    """Show what another dispatcher does of the run, for `watch_s` seconds or to its end."""
    import time

    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_run

    until = time.monotonic() + watch_s
    while not stop() and time.monotonic() < until:
        with reading(engine) as s:
            row = load_run(s, run_id)
        progress.show(row)
        if row.finished_at:
            return True
        time.sleep(0.5)
    return False


def _carrier(work: Work) -> "LocalTransport":
    from knowngood.workers.dispatch.local_transport import LocalTransport

    return LocalTransport(dump_worker_config(work.settings, work.adopted), environment=work.environ)


@cli.command("pack")
def pack_(
    output: Annotated[Path, typer.Option("--output", "-o", help="The pack's folder: new, or a pack to extend.")],
    builds: Builds = None,
    issues: Issues = None,
    python: Annotated[
        str | None, typer.Option(help="The Python there, such as 3.12; the builds' own unless said.")
    ] = None,
    platform: Annotated[str, typer.Option(help="The machine there.")] = "manylinux_2_28_x86_64",
    part_size: Annotated[str, typer.Option(help="The most a part may have: 60M, 2G.")] = "1G",
    exclude_installed: Annotated[
        Path | None,
        typer.Option(help="What is installed there (`pip freeze`): its wheels stay out.", exists=True, dir_okay=False),
    ] = None,
) -> None:
    """Pack builds, issues and the worker for a machine without network; there: `python3 DIR/run.py`."""
    from knowngood.workers.pack.builder import PackRequest as PackWanted
    from knowngood.workers.pack.builder import make_pack, read_installed
    from knowngood.workers.provision.provisioner import choose_cache
    from knowngood.workers.provision.uv_cli import Installer

    settings = read_settings()
    engine = opened(settings)
    _load_catalogue(engine, settings)
    chosen = _pick_issues(engine, issues)
    columns = _for_python(engine, _pick_builds(engine, builds, lambda build: build.default), python)
    wanted = PackWanted(
        pairs=_pairs(chosen, columns),
        builds=[build.id for build in columns],
        issues=[issue.id for issue in chosen],
        folders=_folders(settings),
        python=columns[0].python,
        platform=platform,
        part_bytes=_size(part_size),
        excluded=read_installed(exclude_installed) if exclude_installed else frozenset(),
    )
    installer = Installer(choose_cache(root(settings), os.environ), root(settings))
    packed = make_pack(output, wanted, installer, now=_now(), tell=lambda line: err.print(line, soft_wrap=True))
    for what, reason in packed.left_out.items():
        err.print(f"left out: {what}: {reason}", soft_wrap=True)
    size = f"{packed.bytes / (1 << 30):.2f} GB"
    out.print(f"{packed.folder}: {packed.files} files added, {size}, {packed.parts} parts in all", soft_wrap=True)


def _for_python(engine: "Engine", builds: Sequence[Build], python: str | None) -> tuple[Build, ...]:
    """The same builds for the Python asked for; a pack is for one."""
    pythons = sorted({build.python for build in builds})
    if python is None and len(pythons) > 1:
        raise BadRequest(f"these builds are of Python {' and '.join(pythons)}; say --python, a pack is for one")
    if python is None:
        return tuple(builds)
    known = BuildNames({build.id: build for build in _pick_builds(engine, ["all"], lambda _: True)})
    found = [known.find(build.id, python=minor_python(python)) for build in builds]
    return tuple({build.id: build for build in found}.values())


def _pairs(issues: Sequence[Issue], builds: Sequence[Build]) -> list[tuple[Build, EnvironmentRequest]]:
    """Every environment that these issues need on these builds, on whatever hardware there may be."""
    anywhere = ("cpu-x86_64", "cuda-sm_999")
    found = {
        environment_request(issue, build): build
        for build in builds
        for issue in issues
        if any(is_measured_on(issue, build, hardware) for hardware in anywhere)
    }
    return [(build, request) for request, build in found.items()]


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = text[:-1], text[-1:].upper()
    if unit not in units or not number.isdigit() or int(number) == 0:
        raise BadRequest(f'--part-size "{text}" is no size; write for example 60M or 2G')
    return int(number) * units[unit]


@cli.command()
def dispatch(
    migrate_first: Annotated[bool, typer.Option("--migrate", help="Migrate and load the catalogue first.")] = False,
    until_idle: Annotated[bool, typer.Option(help="End once nothing is queued.")] = False,
    ray: Annotated[str, typer.Option("--ray", help="Lead a fleet: HOST:PORT of its head, or local-head[:PORT].")] = "",
    node_ip: NodeIp = "",
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Only machines with a label: LABEL=VALUE or LABEL>=NUMBER.")
    ] = None,
) -> None:
    """Run queued jobs until stopped, here or on a fleet. One dispatcher works at a time; a second waits."""
    from knowngood.workers.dispatch.dispatcher import DispatchOptions
    from knowngood.workers.dispatch.dispatcher import dispatch as run_jobs
    from knowngood.workers.dispatch.job_log import JobLog

    settings = read_settings()
    log_as(settings, "info")
    if migrate_first:
        migrate()
    engine = opened(settings)
    how = DispatchOptions(hardware=_own_hardware(), until_idle=until_idle, waits=True, lease_s=settings.lease_s)
    journal = JobLog(partial(_run_of, engine))
    with stoppable() as stop, delivering(engine, settings):
        if not ray:
            run_jobs(engine, _carrier(Work(settings)), how, stop=stop, on_event=journal.tell)
            return
        with leading(ray, node_ip, where or ()) as fleet:
            run_jobs(engine, fleet, replace(how, room=fleet.room), stop=stop, on_event=journal.tell)


def _run_of(engine: "Engine", job: str) -> str:
    from knowngood.app.store.engine import reading
    from knowngood.app.store.jobs.job_queue import find_run_of

    with reading(engine) as s:
        return find_run_of(s, job)


# -- serving -----------------------------------------------------------------------------------------------------------


cli.command("serve")(serve)


@cli.command()
def up(
    host: Host = None,
    port: Port = None,
    builds: Builds = None,
    once: Annotated[bool, typer.Option(help="End when everything is measured, instead of serving on.")] = False,
) -> None:
    """Migrate, load catalogue and shipped results, serve the dashboard, then measure the default set here, live."""
    settings = read_settings()
    log_as(settings, "warning")
    engine = opened(settings)
    _load_catalogue(engine, settings)
    _derive_anew(engine)
    for file in _shipped_evidence() if settings.shipped else ():
        _import_one(engine, file, alone=True)
    listening, address = listen(host or settings.host, settings.port if port is None else port)
    with stoppable() as stop, Server(engine, settings, listening).beside():
        err.print(f"[bold]Known Good is at {address}[/]  (Ctrl-C stops it)", soft_wrap=True)
        if not _is_led(engine):
            _give_up_earlier(engine)
        every = _pick_issues(engine, None)
        small = tuple(issue for issue in every if issue.default)
        chosen = Chosen(small or every, _pick_builds(engine, builds, lambda build: build.default), _own_hardware())
        work, seen = Work(settings), set[str]()
        while "" not in seen:  # after what another `up` measured or cancelled, the rest
            plan = partial(_plan, engine, chosen, PlanRequest(), only_local=True)
            planned = plan()
            tell_price(engine, work.place(), planned)
            asked = {"builds": [b.id for b in chosen.builds], "by": _UP}
            seen.add(_run_planned(engine, work, planned, asked, stop, seen, plan))
        if once:
            return
        err.print(f"measured; serving on at {address} until Ctrl-C", soft_wrap=True)
        wait(stop)


def _shipped_evidence() -> list[Path]:
    from knowngood.app.catalogue.loader import shipped_catalogue

    return sorted((shipped_catalogue() / "evidence").glob("*.jsonl.gz"))


def _give_up_earlier(engine: "Engine") -> None:
    """Cancel what an interrupted `up` left queued: its answers are known, and the rest is planned anew."""
    from knowngood.app.store.engine import reading, unit_of_work
    from knowngood.app.store.jobs.job_queue import cancel_run

    with reading(engine) as s:
        left = _unfinished_ups(s)
    for run_id in left:
        with unit_of_work(engine) as s:
            cancel_run(s, run_id, _now())


# -- this machine ------------------------------------------------------------------------------------------------------


@cli.command()
def doctor(as_json: AsJson = False) -> None:
    """Say whether this machine is able, and what to do where it is not."""
    from knowngood.workers.agent.doctor import examine

    settings = read_settings()
    checks = examine(root(settings), at_least=settings.min_isolation, at_most=settings.max_isolation)
    if as_json:
        _print_json([vars(check) for check in checks])
    else:
        for check in checks:
            sign = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "bad": "[red]✕[/]"}[check.state]
            out.print(f"{sign} {check.name}: {check.sentence}", soft_wrap=True)
    if any(check.state == "bad" for check in checks):
        raise typer.Exit(Exit.FINDING)


# -- the gate ----------------------------------------------------------------------------------------------------------


@cli.command(
    "gate",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def gate_(context: typer.Context) -> None:
    """Say whether an environment may be used, for the issues you watch, and why."""
    from knowngood.app.features.gate.cli import main as gate

    raise typer.Exit(gate(context.args))


cli.command("backup")(backup)
cli.command("restore")(restore)
cli.command("snapshot")(snapshot)
cli.command("explain")(explain)
cli.command("push")(push)
cli.command("void")(void)
cli.command("unvoid")(unvoid)
cli.command("compare")(compare)
cli.command("upgrade")(upgrade)
cli.command("next")(next_)
cli.command("discover")(discover)
cli.command("worker")(worker)
cli.add_typer(token, name="token")
cli.add_typer(watch, name="watch")
cli.add_typer(webhook, name="webhook")


if __name__ == "__main__":
    main()
