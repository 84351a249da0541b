"""`knowngood prune`: room in the store, without a word of what counts."""

import json
from datetime import UTC, datetime

import click

from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, flag, option
from knowngood.settings import read_settings
from knowngood.store.engine import unit_of_work
from knowngood.store.maintenance import prune as remove

_DAYS = click.FloatRange(min=0)


@command(
    "Remove what nothing counts on any more. Evidence that counts stays, however old.",
    option("--older-than", type=_DAYS, default=90, help="Days after which superseded attempts and history go."),
    option("--logs-older-than", type=_DAYS, default=30, help="Days after which their logs go."),
    flag("--dry-run", help_="Tell what would go, and remove nothing."),
    AS_JSON,
    example="prune --older-than 30 --dry-run",
)
def prune(*, older_than: float, logs_older_than: float, dry_run: bool, as_json: bool) -> None:
    days = {"superseded_days": older_than, "history_days": older_than, "logs_days": logs_older_than}
    # A dry run does all of it and takes it back, so it reports exactly what would be removed.
    with unit_of_work(opened(read_settings()), dry_run=dry_run) as s:
        report = remove(s, datetime.now(UTC), **days)
    if as_json:
        kinds = {kind: {"rows": removed.rows, "bytes": removed.size} for kind, removed in vars(report).items()}
        click.echo(json.dumps({"dry_run": dry_run, "bytes": report.size, "removed": kinds}, indent=2))
        return
    for kind, removed in vars(report).items():
        click.echo(f"{kind:<9} {removed.rows:>9,} rows {_mib(removed.size):>10} MiB")
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{_mib(report.size)} MiB {done}; the database uses the room again, its files stay as large as they are")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f}"
