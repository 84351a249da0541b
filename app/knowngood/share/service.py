"""Recent changes: the same question for the page, its JSON twin and every feed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import is_all, names_of, watched_issues
from knowngood.domain.verdicts.changes import Change, changes_of, only
from knowngood.matrix.lookups import find_watch_list
from knowngood.matrix.overview.selection import Names, Words, named_issues, refuse_unknown
from knowngood.store.engine import Session
from knowngood.store.evidence.changes import load_checks, load_earlier, load_news
from knowngood.store.queries import load_builds, load_issues
from knowngood.web.errors import InvalidParameter
from knowngood.web.urls import CHANGES_FEED, feed_address

_STEPS = 5000  # of single cells, from which at most so many entries are made
_LINE = re.compile(r"(?:torch-)?([0-9]{1,4}\.[0-9]{1,4})(?:\.x)?\Z")


class ChangesQuery(BaseModel):
    """Parameters of `/changes`, `/api/v1/changes` and the feeds. Everything named must hold."""

    issues: Annotated[
        Names, Field(description="Only of these issues, repeated or comma-separated; `all` for all of them")
    ]
    component: Annotated[Words, Field(description="Only of issues of this component")] = ""
    line: Annotated[Words, Field(description="Only on builds of this line of torch, such as 2.8")] = ""
    watch: Annotated[Words, Field(description="Only of what this watch list watches")] = ""
    first: Annotated[bool, Field(description="First measurements too: verdicts that no other one stood before")] = False
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many, the newest")] = 100


@dataclass(frozen=True)
class News:
    """The changes, newest first, the catalogue's issues by id, and the question (issues by their ids), also in words
    and as a query.
    """

    changes: tuple[Change, ...]
    issues: Mapping[str, Issue]
    question: ChangesQuery
    about: str
    query: str


def load_changes(session: Session, query: ChangesQuery) -> News:
    """Load the changes that a query asks for. Raises InvalidParameter for unknown names, NotFound for an unknown watch
    list.
    """
    issues = {issue.id: issue for issue in load_issues(session)}
    line = _line(session, query.line)
    query = query.model_copy(update={"issues": _named(query.issues, issues), "line": line})
    if query.component:
        refuse_unknown("component", [query.component], {issue.component for issue in issues.values()}, "component")
    wanted, hardware = _wanted(session, query, issues)
    steps = load_news(session, _STEPS, issues=wanted, line=line)
    changes = changes_of(steps, load_earlier(session, steps), first=query.first)
    checks = load_checks(session, _STEPS, line) if wanted is None else ()
    found = sorted((*only(changes, hardware=hardware), *checks), key=lambda each: (each.at, each.key), reverse=True)
    return News(tuple(found[: query.limit]), issues, query, _about(query), _write_query(query))


def _named(names: Sequence[str], issues: Mapping[str, Issue]) -> list[str]:
    """The ids of the named issues; none where all are wanted: issues that left the catalogue have changes too."""
    if not names or any(map(is_all, names)):
        return []
    return [issue.id for issue in named_issues(tuple(issues.values()), names)]


def _wanted(
    session: Session, query: ChangesQuery, issues: Mapping[str, Issue]
) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """The issues that every part of the question names (None: all of them, also those that left the catalogue), and the
    hardware classes that count (none: all).
    """
    parts: list[set[str]] = [set(query.issues)] if query.issues else []
    if query.component:
        parts.append({issue.id for issue in issues.values() if issue.component == query.component})
    hardware: tuple[str, ...] = ()
    if query.watch:
        content = find_watch_list(session, query.watch).content
        hardware = content.hardware
        try:
            parts.append({issue.id for issue in watched_issues(content.watch, issues, names_of(issues))[0]})
        except BadRequest as error:  # the catalogue went on since the list was written
            raise InvalidParameter(
                f'the watch list "{query.watch}" cannot be read any more: {error}', "watch"
            ) from None
    return (frozenset(set.intersection(*parts)) if parts else None), hardware


def _line(session: Session, text: str) -> str:
    """`2.8` of `2.8`, `2.8.x` or `torch-2.8.x`."""
    if not text:
        return ""
    match = _LINE.match(text)
    line = match[1] if match else text
    refuse_unknown("line of torch", [line], {build.minor for build in load_builds(session)}, "line")
    return line


def _about(query: ChangesQuery) -> str:
    """`pytorch-151290 on torch 2.8.x`; empty where the question names nothing."""
    named = [
        ", ".join(query.issues),
        query.component,
        f"watch list {query.watch}" if query.watch else "",
        f"torch {query.line}.x" if query.line else "",
    ]
    return ", ".join(part for part in named if part)


def _write_query(query: ChangesQuery) -> str:
    """The question as a query, `?` included; empty where nothing was named."""
    parts = [
        *(("issues", issue) for issue in query.issues),
        *([("component", query.component)] if query.component else []),
        *([("line", query.line)] if query.line else []),
        *([("watch", query.watch)] if query.watch else []),
        *([("first", "true")] if query.first else []),
    ]
    return f"?{urlencode(parts)}" if parts else ""


def feed_of(query: ChangesQuery, query_text: str) -> str:
    """The feed's address for a question: by its own name where one thing is named, else by the query."""
    kinds = {
        "issues": query.issues,
        "components": [query.component],
        "lines": [query.line],
        "watchlists": [query.watch],
    }
    named = [(kind, name) for kind, names in kinds.items() for name in names if name]
    if query.first or len(named) > 1:
        return f"{CHANGES_FEED}{query_text}"
    return feed_address(*named[0]) if named else CHANGES_FEED
