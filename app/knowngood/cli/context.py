"""The first steps of every command that uses the store: the store made ready, the catalogue's files taken in where they
say something else than it does, what it knows, and who is at the keyboard.
"""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path

from knowngood.catalogue_digest import digest_of
from knowngood.cli.choice import builds_of, issues_of
from knowngood.domain.access import Actor
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import StoreUnusable
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.logging_setup import configure
from knowngood.settings import Settings, read_settings
from knowngood.store.catalogue import is_taken_in, remember_taken_in
from knowngood.store.engine import (
    Engine,
    connect,
    is_current,
    may_write,
    name_of,
    reading,
    require_current,
    unit_of_work,
)
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.loader import load_knowledge, load_known
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.queries import load_builds, load_durations, load_issues


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


def stored_knowledge(settings: Settings, now: datetime, *, with_catalogue: bool) -> Knowledge:
    """The knowledge of the store as it was left. `with_catalogue` takes in the catalogue's files first, and leaves out
    what cannot be read. A store that knows no issue yet takes them in too. Raises Unreadable.
    """
    engine = opened_with_catalogue(settings) if with_catalogue else opened(settings)
    knowledge = _knowledge(engine, now, whole=not with_catalogue)
    if knowledge.known.issues or with_catalogue:
        return knowledge
    take_in_catalogue(engine, settings)
    return _knowledge(engine, now, whole=True)


def _knowledge(engine: Engine, now: datetime, *, whole: bool) -> Knowledge:
    with reading(engine) as s:
        return load_knowledge(s, now, whole=whole).knowledge


def stored_times() -> Recorded:
    with reading(opened(read_settings())) as s:
        return Recorded(load_durations(s), load_environment_s(s))


def pick_issues(engine: Engine, names: Sequence[str]) -> tuple[Issue, ...]:
    with reading(engine) as s:
        return issues_of({issue.id: issue for issue in load_issues(s)}, names)


def pick_builds(engine: Engine, names: Sequence[str], empty: Callable[[Build], bool]) -> tuple[Build, ...]:
    with reading(engine) as s:
        builds = load_builds(s)
    known = BuildNames({build.id: build for build in builds})
    for name in sorted({*names} - {"all", "default"} - known.builds.keys()):
        sys.stderr.write(f"{name} is taken for {known.find(name).id}\n")
    return builds_of(builds, names, empty)


def known_now(engine: Engine) -> Known:
    with reading(engine) as s:
        return load_known(s, datetime.now(UTC))
