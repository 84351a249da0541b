"""The catalogue's files taken into the store, where they say something else than the store does."""

import sys
from datetime import UTC, datetime

from knowngood.catalogue_digest import digest_of
from knowngood.cli.context import opened
from knowngood.logging_setup import configure
from knowngood.settings import Settings
from knowngood.store.catalogue import is_taken_in, remember_taken_in
from knowngood.store.engine import Engine, may_write, name_of, reading, unit_of_work


def take_in_catalogue(engine: Engine, settings: Settings) -> None:
    """Make the store's catalogue what the files say; says which verdicts that changed."""
    digest = digest_of(settings.folders)
    with reading(engine) as s:
        if is_taken_in(s, digest):
            return
    from knowngood.catalogue.loader import read_catalogue
    from knowngood.store.catalogue import save_catalogue

    catalogue = read_catalogue(settings.folders, with_drafts=False)
    for draft in catalogue.drafts:  # who left something to write is told what
        sys.stderr.write(
            f"{draft.name} is left out: `knowngood check {draft.parent}` says what is still to be filled in\n"
        )
    if not may_write(engine):
        sys.stderr.write(
            f"knowngood: {name_of(engine)} may only be read here and holds an older state of the catalogue, "
            "which answers\n"
        )
        return
    with unit_of_work(engine) as s:
        changes = save_catalogue(s, catalogue.issues, catalogue.builds, datetime.now(UTC))
        remember_taken_in(s, digest)
    news = sum(change.is_news for change in changes)
    if news:
        sys.stderr.write(f"the catalogue changed: {news} cells read differently now\n")


def opened_with_catalogue(settings: Settings) -> Engine:
    """The store with the catalogue as its files have it, so that names are checked against what there is now."""
    configure(settings.log_format, settings.log_level or "warning")
    engine = opened(settings)
    take_in_catalogue(engine, settings)
    return engine
