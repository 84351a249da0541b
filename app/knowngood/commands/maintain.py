"""`knowngood migrate` and `reclassify`: tables and verdicts as this release has them. `prune`: room in the store,
without a word of what counts.
"""

import json
from datetime import UTC, datetime

import click

from knowngood.cli.context import make_data_dir, opened, opened_with_catalogue, take_in_catalogue
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, flag, option
from knowngood.cli.output import out, print_json
from knowngood.settings import read_settings
from knowngood.store.engine import connect, unit_of_work
from knowngood.store.maintenance import prune as remove
from knowngood.store.maintenance import reclassify as derive
from knowngood.store.migrations import bring_up


@command(
    "Bring the database to this release's tables. Safe while others use it, and when there is nothing to do.",
    example="migrate",
)
def migrate() -> None:
    settings = read_settings()
    if not settings.database_url:
        make_data_dir(settings)
    engine = connect(settings.database)
    bring_up(engine)
    take_in_catalogue(engine, settings)
    out.print("the database is at this release")


@command(
    "Derive every verdict again from stored evidence, without running anything, and print what changed.",
    AS_JSON,
    example="reclassify",
)
def reclassify(*, as_json: bool) -> None:
    with unit_of_work(opened_with_catalogue(read_settings())) as s:
        changes = derive(s, datetime.now(UTC))
    news = [
        {"issue": change.issue, "build": change.build, "hardware": change.hardware, "before": before, "after": after}
        for change in changes
        for before, after in [change.verdicts]
    ]
    if as_json:
        print_json({"changed": news})
        return
    for row in news:
        out.print(f"{row['issue']} {row['build']} {row['hardware']}: {row['before']} -> {row['after']}", soft_wrap=True)
    out.print(f"{len(news)} cells came out differently")


_DAYS = click.FloatRange(min=0)


@command(
    "Remove old evidence that no longer counts. Evidence that counts stays, however old.",
    option("--older-than", type=_DAYS, default=90, help="Days to keep superseded attempts and history."),
    option("--logs-older-than", type=_DAYS, default=30, help="Days to keep their logs."),
    flag("--dry-run", help_="Print what would be removed, and remove nothing."),
    AS_JSON,
    example="prune --older-than 30 --dry-run",
)
def prune(*, older_than: float, logs_older_than: float, dry_run: bool, as_json: bool) -> None:
    days = {"superseded_days": older_than, "history_days": older_than, "logs_days": logs_older_than}
    # A dry run does all of it and takes it back: what it tells is what would have gone.
    with unit_of_work(opened(read_settings()), dry_run=dry_run) as s:
        gone = remove(s, datetime.now(UTC), **days)
    size = sum(removed.size for removed in gone.values())
    if as_json:
        kinds = {kind: {"rows": removed.rows, "bytes": removed.size} for kind, removed in gone.items()}
        click.echo(json.dumps({"dry_run": dry_run, "bytes": size, "removed": kinds}, indent=2))
        return
    for kind, removed in gone.items():
        click.echo(f"{kind:<9} {removed.rows:>9,} rows {_mib(removed.size):>10} MiB")
    click.echo(
        f"{_mib(size)} MiB {'would be removed' if dry_run else 'removed'}; "
        "the database uses the room again, its files stay as large as they are"
    )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f}"
