"""Knowledge from a store of any kind and in any state: brought up, and with the catalogue taken in."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from knowngood.cli.catalogue import opened_with_catalogue, take_in_catalogue
from knowngood.cli.choice import builds_of, issues_of
from knowngood.cli.context import opened
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.settings import Settings, read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.loader import load_knowledge, load_known
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.queries import load_builds, load_durations, load_issues


def stored_knowledge(settings: Settings, now: datetime) -> Knowledge:
    """With the catalogue taken in where the store knows no issue yet."""
    engine = opened(settings)
    with reading(engine) as s:
        found = load_knowledge(s, now).knowledge
    if found.known.issues:
        return found
    take_in_catalogue(engine, settings)
    with reading(engine) as s:
        return load_knowledge(s, now).knowledge


def opened_here() -> Engine:
    return opened(read_settings())


def stored_times(settings: Settings) -> tuple[dict[tuple[str, str, str], float], float | None]:
    with reading(opened(settings)) as s:
        return load_durations(s), load_environment_s(s)


def current_knowledge(settings: Settings, now: datetime) -> Knowledge:
    with reading(opened_with_catalogue(settings)) as s:
        return load_knowledge(s, now, whole=False).knowledge


def pick_issues(engine: Engine, names: Sequence[str]) -> tuple[Issue, ...]:
    with reading(engine) as s:
        return issues_of({issue.id: issue for issue in load_issues(s)}, names)


def pick_builds(engine: Engine, names: Sequence[str], empty: Callable[[Build], bool]) -> tuple[Build, ...]:
    with reading(engine) as s:
        return builds_of(load_builds(s), names, empty)


def known_now(engine: Engine) -> Known:
    with reading(engine) as s:
        return load_known(s, datetime.now(UTC))
