"""What every command that uses the store begins with: settings, the store made ready, and who is at the keyboard."""

from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

from knowngood.app.domain.access import Actor
from knowngood.app.domain.errors import StoreUnusable

if TYPE_CHECKING:
    from knowngood.app.settings import Settings
    from knowngood.app.store.engine import Engine


def read_settings() -> "Settings":
    """Raises BadRequest naming each variable that cannot be used. Imported late: pydantic takes its time."""
    from knowngood.app.settings import read_settings as read

    return read()


def opened(settings: "Settings") -> "Engine":
    """The store, ready: made and migrated where it is our own SQLite file, refused where it is not current."""
    from knowngood.app.store.engine import connect, require_current

    engine = connect(settings.database)
    if not settings.database_url:
        make_data_dir(settings)
        bring_up(engine)
    require_current(engine)
    return engine


def bring_up(engine: "Engine") -> None:
    """The tables and the verdicts of this release; does nothing where they are there already."""
    from knowngood.app.store.engine import is_of_older_rules, migrate, reading, unit_of_work
    from knowngood.app.store.maintenance import derive_by_these_rules

    migrate(engine)
    with reading(engine) as s:
        is_older = is_of_older_rules(s.connection())
    if is_older:
        with unit_of_work(engine) as s:
            derive_by_these_rules(s, datetime.now(UTC))


def opened_with_catalogue(settings: "Settings") -> "Engine":
    """The store with the catalogue as its files have it, so that names are checked against what there is now."""
    from knowngood.app.catalogue.loader import read_catalogue, shipped_catalogue
    from knowngood.app.store.catalogue import save_catalogue
    from knowngood.app.store.engine import unit_of_work

    engine = opened(settings)
    catalogue = read_catalogue([*([shipped_catalogue()] if settings.shipped else []), *settings.catalogue_folders])
    with unit_of_work(engine) as s:
        save_catalogue(s, catalogue.issues, catalogue.builds, datetime.now(UTC))
    return engine


def root(settings: "Settings") -> Path:
    return settings.data_dir.expanduser().resolve()


def make_data_dir(settings: "Settings") -> None:
    try:
        root(settings).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"the data folder {settings.data_dir} cannot be made ({error.strerror}); "
            "set KNOWNGOOD_DATA_DIR to one you may write"
        ) from None


def operator() -> Actor:
    """Whoever is at the command line, by the name the machine knows them by: they have the database anyway."""
    try:
        return Actor(f"{getuser()} (command line)"[-100:])
    except (KeyError, OSError):  # a container's user may have no name
        return Actor("command line")
