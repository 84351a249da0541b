"""`/badge/{issue}.svg` and `/badge/watchlists/{name}.svg`: what is known, for a README; `.json` for shields.io to draw.

A picture in a README is asked for by every reader of it, so that an answer may be kept for five minutes; after that it
costs one query for whoever asks with its tag.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import Watch, watched_issues
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, is_stale
from knowngood.matrix.lookups import find_build, find_issue, find_watch_list
from knowngood.matrix.overview.selection import Words, known_classes, one_class
from knowngood.share.exports.badge import (
    Badge,
    badge_of,
    badge_svg,
    list_badge,
    shields_endpoint,
    unmeasured_badge,
    watch_list_standing,
)
from knowngood.store.engine import Session
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)

_KEPT_S = 300

Asked = Annotated[Words, Query()]


@router.get("/badge/watchlists/{name}.svg")
@router.get("/badge/watchlists/{name}.json")
def list_badge_of(context: Context, name: str, build: Asked = "", hardware: Asked = "") -> Response:
    return context.answer(
        lambda session: _list_badge(context, session, name, build, hardware), partial(_shown, context)
    )


@router.get("/badge/{issue}.svg")
@router.get("/badge/{issue}.json")
def badge(context: Context, issue: str, build: Asked = "", hardware: Asked = "") -> Response:
    return context.answer(lambda session: _badge(context, session, issue, build, hardware), partial(_shown, context))


def _shown(context: RequestContext, badge: Badge) -> Response:
    """As the address ends. Private ones stay with their reader. A badge has no language: all readers get the same."""
    if context.request.url.path.endswith(".svg"):
        response = context.text(badge_svg(badge), "image/svg+xml", "badge.svg")
    else:
        response = context.text(shields_endpoint(badge), "application/json", "badge.json")
    if response.headers["Cache-Control"] == "no-cache":
        response.headers["Cache-Control"] = f"public, max-age={_KEPT_S}"
        del response.headers["Vary"]
    return response


def _badge(context: RequestContext, session: Session, id_: str, build: str, hardware: str) -> Badge:
    """Without a build, that of the newest release with an answer; without a class, the CPU's or the first with one."""
    issue = find_issue(session, id_)
    known = context.known(session)
    cells = known.stored(issue.id)
    answered = dict.fromkeys(cell.hardware for cell in cells if cell.verdict in CONCLUSIVE)
    class_ = one_class(hardware, known.hardware if hardware else tuple(answered))
    named = _named_or_newest(session, known, build, [cell for cell in cells if cell.hardware == class_])
    if named is None:
        return unmeasured_badge(issue.id)
    cell = known.cell(issue, named, class_)
    return badge_of(cell, _in_short(named), is_stale=is_stale(cell, named, context.now))


def _list_badge(context: RequestContext, session: Session, name: str, build: str, hardware: str) -> Badge:
    """Without a build, the newest release with any answer; without a class, those of the list, else all measured."""
    watch_list = find_watch_list(session, name)
    known = context.known(session)
    watched = _watched(known, watch_list.content.watch)
    measured = known.hardware
    asked = [hardware] if hardware else [one for one in watch_list.content.hardware if one in measured]
    classes = known_classes(asked, measured)
    cells = [cell for one in watched for cell in known.stored(one.id) if cell.hardware in classes]
    named = _named_or_newest(session, known, build, cells)
    if named is None:
        return unmeasured_badge(name)
    rows = [[known.cell(issue, named, class_) for class_ in classes] for issue in watched]
    old = any(is_stale(cell, named, context.now) for row in rows for cell in row)
    only = classes[0] if len(classes) == 1 else ""
    return list_badge(name, watch_list_standing(rows, is_stale=old), _in_short(named), only)


def _watched(known: Known, watch: Watch) -> tuple[Issue, ...]:
    """None where the list names what has left the catalogue: half of a list must not pass for the whole."""
    try:
        return watched_issues(watch, known.issues, known.names)[0]
    except BadRequest:
        return ()


def _in_short(build: Build) -> str:
    return build.id.removeprefix("torch-")


def _named_or_newest(session: Session, known: Known, asked: str, cells: Sequence[Cell]) -> Build | None:
    """The build that is asked for, else the newest release among `cells` with an answer."""
    if asked:
        return find_build(session, asked)[0]
    answered = {cell.build for cell in cells if cell.verdict in CONCLUSIVE}
    return next((one for one in reversed(tuple(known.builds.values())) if one.id in answered and is_release(one)), None)
