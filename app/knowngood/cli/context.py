"""The first steps of every command that uses the store: settings, the store made ready, and who is at the keyboard."""

from getpass import getuser
from pathlib import Path

from knowngood.domain.access import Actor
from knowngood.domain.errors import StoreUnusable
from knowngood.settings import Settings
from knowngood.store.engine import Engine, connect, is_current, may_write, require_current


def opened(settings: Settings) -> Engine:
    """The store, ready: made and migrated where it is our own SQLite file, refused where it is not current."""
    engine = connect(settings.database)
    if not settings.database_url and may_write(engine):
        make_data_dir(settings)
        if is_current(engine):
            return engine
        from knowngood.store.migrations import bring_up

        bring_up(engine)
    require_current(engine)
    return engine


def root(settings: Settings) -> Path:
    return settings.data_dir.expanduser().resolve()


def make_data_dir(settings: Settings) -> None:
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
