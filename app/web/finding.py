"""Things by the id in an address: found, or refused with the nearest ids."""

from collections.abc import Mapping

from app.domain.build import Build, parse_build_id
from app.domain.errors import UnknownBuild, UnknownIssue
from app.domain.issue import Issue
from app.domain.watch_list import WatchList
from app.store.reads import (
    AttemptDetail,
    RunRow,
    UnknownAttempt,
    UnknownRun,
    load_attempt,
    load_builds,
    load_issue,
    load_issues,
    load_run,
    load_runs,
)
from app.store.session import Session
from app.store.watch import load_watch_list, load_watch_lists
from app.web.addresses import build_address, issue_address, run_address, watch_list_address
from app.web.errors import NotHere, nearest

_RECENT_RUNS = 20


def find_issue(session: Session, id_: str) -> Issue:
    try:
        return load_issue(session, id_)
    except UnknownIssue:
        ids = nearest(id_, (issue.id for issue in load_issues(session)))
        raise NotHere(f'no issue is called "{id_}" here', [(id_, issue_address(id_)) for id_ in ids]) from None


def find_build(session: Session, text: str) -> tuple[Build, Mapping[str, Build]]:
    """The build, and all builds by id in release order."""
    builds = {build.id: build for build in load_builds(session)}
    try:
        id_ = str(parse_build_id(text))
    except UnknownBuild as error:
        raise NotHere(str(error), _builds_near(text, builds)) from None
    if id_ not in builds:
        raise NotHere(f'no build is called "{id_}" here', _builds_near(id_, builds))
    return builds[id_], builds


def _builds_near(text: str, builds: Mapping[str, Build]) -> list[tuple[str, str]]:
    return [(id_, build_address(id_)) for id_ in nearest(text, builds)]


def find_attempt(session: Session, id_: str) -> AttemptDetail:
    try:
        return load_attempt(session, id_)
    except UnknownAttempt:
        raise NotHere(
            f'no attempt "{id_}" is stored here; it may have been pruned, or its issue left the catalogue',
            [("the matrix", "/")],
        ) from None


def find_run(session: Session, id_: str) -> RunRow:
    try:
        return load_run(session, id_)
    except UnknownRun:
        ids = nearest(id_, (run.id for run in load_runs(session, _RECENT_RUNS)))
        near = [(id_, run_address(id_)) for id_ in ids]
        raise NotHere(f'no run is called "{id_}" here', [*near, ("all runs", "/runs")]) from None


def find_watch_list(session: Session, name: str, version: int | None = None) -> WatchList:
    found = load_watch_list(session, name, version)
    if found is not None:
        return found
    if version is not None and load_watch_list(session, name) is not None:
        raise NotHere(f'the watch list "{name}" has no version {version}', [(name, watch_list_address(name))])
    near = nearest(name, load_watch_lists(session))
    offered = [(one, watch_list_address(one)) for one in near] or [("all watch lists", "/watchlists")]
    raise NotHere(f'no watch list is called "{name}" here', offered)
