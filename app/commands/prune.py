"""`knowngood prune`: room in the store, without a word of what counts."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from knowngood.app.cli.context import opened, read_settings
from knowngood.app.domain.errors import KnownGoodError

if TYPE_CHECKING:
    from knowngood.app.store.engine import Engine
    from knowngood.app.store.records import PruneReport


class _OnlyTold(KnownGoodError):
    """Ends a dry run's transaction, so that nothing of it stays."""


def prune(
    older_than: Annotated[float, typer.Option(min=0, help="Days after which superseded attempts and history go.")] = 90,
    logs_older_than: Annotated[float, typer.Option(min=0, help="Days after which their logs go.")] = 30,
    *,
    dry_run: Annotated[bool, typer.Option(help="Tell what would go, and remove nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Remove what nothing counts on any more. Evidence that counts stays, however old."""
    engine = opened(read_settings())
    report = _prune(engine, older_than, logs_older_than, dry_run=dry_run)
    if as_json:
        kinds = {kind: {"rows": one.rows, "bytes": one.size} for kind, one in vars(report).items()}
        typer.echo(json.dumps({"dry_run": dry_run, "bytes": report.size, "removed": kinds}, indent=2))
        return
    for kind, one in vars(report).items():
        typer.echo(f"{kind:<9} {one.rows:>9,} rows {_mib(one.size):>10} MiB")
    done = "would be removed" if dry_run else "removed"
    typer.echo(f"{_mib(report.size)} MiB {done}; the database uses the room again, its files stay as large as they are")


def _prune(engine: "Engine", older_than: float, logs_older_than: float, *, dry_run: bool) -> "PruneReport":
    """A dry run does all of it and takes it back: what it tells is what would have gone."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.maintenance import prune as remove

    days = {"superseded_days": older_than, "history_days": older_than, "logs_days": logs_older_than}
    with suppress(_OnlyTold), unit_of_work(engine) as s:
        report = remove(s, datetime.now(UTC), **days)
        if dry_run:
            raise _OnlyTold
    return report


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f}"
