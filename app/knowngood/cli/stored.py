"""Knowledge from a store of any kind and in any state: brought up, and with the catalogue taken in."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from knowngood.cli.catalogue import opened_with_catalogue, take_in_catalogue
from knowngood.cli.choice import builds_of, issues_of
from knowngood.cli.context import opened
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.settings import Settings, read_settings
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.loader import load_knowledge, load_known
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.queries import load_builds, load_durations, load_issues


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
