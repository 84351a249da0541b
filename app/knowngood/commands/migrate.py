"""`knowngood migrate` and `reclassify`: tables and verdicts as this release has them."""

from datetime import UTC, datetime

from knowngood.cli.catalogue import opened_with_catalogue, take_in_catalogue
from knowngood.cli.context import make_data_dir
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON
from knowngood.cli.output import out, print_json
from knowngood.settings import read_settings
from knowngood.store.engine import Engine, connect, unit_of_work
from knowngood.store.maintenance import reclassify as derive
from knowngood.store.records import CellChange
from knowngood.store.state.migrations import bring_up


@command(
    "Bring the database to this release's tables; safe while others use it, and where there is nothing to do.",
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
    "Derive every verdict anew from stored evidence, without running anything, and tell what came out differently.",
    AS_JSON,
    example="reclassify",
)
def reclassify(*, as_json: bool) -> None:
    news = [
        {"issue": change.issue, "build": change.build, "hardware": change.hardware, "before": before, "after": after}
        for change in derive_anew(opened_with_catalogue(read_settings()))
        for before, after in [change.verdicts]
    ]
    if as_json:
        print_json({"changed": news})
        return
    for row in news:
        out.print(f"{row['issue']} {row['build']} {row['hardware']}: {row['before']} -> {row['after']}", soft_wrap=True)
    out.print(f"{len(news)} cells came out differently")


def derive_anew(engine: Engine) -> tuple[CellChange, ...]:
    with unit_of_work(engine) as s:
        return derive(s, datetime.now(UTC))
