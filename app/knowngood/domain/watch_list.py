"""Watch lists: a team's choice of issues under a name. `Watch` is the meaning; here is what is stored and checked."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches

from knowngood.domain.errors import KnownGoodError
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import Watch, names_of, watched_issues

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
HARDWARE_FORM = re.compile(r"(cpu|cuda)-[a-z0-9_]{1,30}\Z")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_MOST_NAMES = 2000
_LONGEST_DESCRIPTION = 500


class BadWatchList(KnownGoodError):
    """A watch list that is empty, or names something that does not exist."""


class UnknownWatchList(KnownGoodError):
    """A name that no watch list has."""


class WatchListTaken(KnownGoodError):
    """Another version is there than the one that a change was made for."""


@dataclass(frozen=True)
class WatchListContent:
    """The content of a list; each change of it is a version. `hardware` are the classes that count (none: all
    measured).
    """

    watch: Watch = field(default_factory=Watch)
    hardware: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class WatchList:
    """A list as it is now. Its `owner`, and holders of `admin`, may change it."""

    name: str
    owner: str
    version: int
    changed_at: datetime
    changed_by: str
    content: WatchListContent


def checked_name(name: str) -> str:
    if not _NAME.match(name):
        raise BadWatchList(
            f'"{name[:80]}" is no name for a watch list; use up to 64 small letters, digits, dots, dashes '
            "and underscores, such as vision-team"
        )
    return name


def checked(content: WatchListContent, issues: Mapping[str, Issue]) -> WatchListContent:
    """The content with each name once. Raises BadWatchList, or BadRequest for issues and components there are not.

    Packages need not be known: the first issue that needs one may come tomorrow.
    """
    watch = content.watch
    if watch.lists:
        raise BadWatchList("a watch list cannot name other lists; name its issues, components or packages")
    if watch.is_empty:
        raise BadWatchList("a watch list without issues, components, packages or severity watches nothing")
    if sum(map(len, (watch.issues, watch.components, watch.packages, content.hardware))) > _MOST_NAMES:
        raise BadWatchList(f"a watch list holds at most {_MOST_NAMES} names; watch a component instead")
    if len(content.description) > _LONGEST_DESCRIPTION or not content.description.isprintable():
        raise BadWatchList(f"description: one line of at most {_LONGEST_DESCRIPTION} characters")
    watched_issues(watch, issues, names_of(issues))
    _refuse_malformed("package", watch.packages, _PACKAGE)
    _refuse_malformed("hardware class", content.hardware, HARDWARE_FORM)
    named = replace(watch, issues=once(watch.issues), components=once(watch.components), packages=once(watch.packages))
    return replace(content, watch=named, hardware=once(content.hardware))


def _refuse_malformed(what: str, names: Iterable[str], form: re.Pattern[str]) -> None:
    for name in names:
        if not form.match(name):
            raise BadWatchList(f'"{name[:100]}" is no {what}')


def or_near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:100], list(known), n=3, cutoff=0.4)
    return f"; nearest: {', '.join(near)}" if near else ""


def once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
