"""Things by the id in an address: found, or refused with the nearest ids."""

from collections.abc import Mapping
from contextlib import suppress

from knowngood.domain import issue_selectors
from knowngood.domain.builds import build_names
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import UnknownBuild, UnknownIssue
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import WatchList
from knowngood.domain.threads import ThreadIndex, thread_named
from knowngood.store.engine import Session
from knowngood.store.queries import (
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
    refuse_unreadable_build,
)
from knowngood.store.watch_lists import load_watch_list, load_watch_lists
from knowngood.web.errors import NotFound, Suggestion, nearest
from knowngood.web.urls import MATRIX, build_address, issue_address, run_address, watch_list_address

_RECENT_RUNS = 20


def find_issue(session: Session, id_: str) -> Issue:
    """Find the issue that is meant: by its id, which costs one row, or by another of its names. An unknown one is
    refused with its thread upstream and the command that would add it.
    """
    with suppress(UnknownIssue):
        return load_issue(session, id_)
    issues = {issue.id: issue for issue in load_issues(session)}
    try:
        return issue_selectors.find_issue(id_, issues)
    except UnknownIssue as error:
        index = ThreadIndex(issues.values())
        thread = thread_named(f"#{id_}" if id_.isdecimal() else id_, index.projects)
        near = dict.fromkeys([*error.nearest, *(index.near(thread.number) if thread else ())])
        raise NotFound(
            error.problem, [_named(near_id, issues.get(near_id)) for near_id in near], thread=thread
        ) from None


def _named(id_: str, issue: Issue | None) -> Suggestion:
    if issue is None:
        return Suggestion(id_, issue_address(id_))
    return Suggestion(f"{id_}: {issue.title}", issue_address(id_), issue.title_zh and f"{id_}: {issue.title_zh}")


def find_build(session: Session, text: str) -> tuple[Build, Mapping[str, Build]]:
    """Find the build that is meant, or the wheel where no Python is named, with all builds by id in release order."""
    builds = {build.id: build for build in load_builds(session)}
    try:
        return build_names.find_build_or_wheel(text, builds), builds
    except UnknownBuild as error:
        refuse_unreadable_build(session, text)
        raise NotFound(error.problem, [(near, build_address(near)) for near in error.nearest]) from None


def find_attempt(session: Session, id_: str) -> AttemptDetail:
    try:
        return load_attempt(session, id_)
    except UnknownAttempt:
        raise NotFound(
            f'no attempt "{id_}" is stored here; it may have been pruned, or its issue left the catalogue',
            [("the matrix", MATRIX)],
        ) from None


def find_run(session: Session, id_: str) -> RunRow:
    try:
        return load_run(session, id_)
    except UnknownRun:
        ids = nearest(id_, (run.id for run in load_runs(session, _RECENT_RUNS)))
        near = [(id_, run_address(id_)) for id_ in ids]
        raise NotFound(f'no run is called "{id_}" here', [*near, ("all runs", "/runs")]) from None


def find_watch_list(session: Session, name: str, version: int | None = None) -> WatchList:
    watch_list = load_watch_list(session, name, version)
    if watch_list is not None:
        return watch_list
    if version is not None and load_watch_list(session, name) is not None:
        raise NotFound(f'the watch list "{name}" has no version {version}', [(name, watch_list_address(name))])
    near = nearest(name, load_watch_lists(session))
    offered = [(near_name, watch_list_address(near_name)) for near_name in near] or [("all watch lists", "/watchlists")]
    raise NotFound(f'no watch list is called "{name}" here', offered)
