"""`/watchlists/~new` and `/watchlists/{name}/edit`: making, changing and removing a watch list in a browser.

No list is called `~new`. These pages hold the word that only our own forms know, so no copy of them is ever kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby

from fastapi import APIRouter, Request, Response

from knowngood.app.dashboard.lookups import find_watch_list
from knowngood.app.domain.access import NotAllowed, Scope
from knowngood.app.domain.errors import KnownGoodError
from knowngood.app.domain.issue import Issue, Severity
from knowngood.app.domain.issue_selectors import Watch, is_all, meant_by, names_of
from knowngood.app.domain.watch_list import WatchList, WatchListContent, WatchListTaken
from knowngood.app.store.engine import reading, unit_of_work
from knowngood.app.store.queries import load_hardware, load_issues
from knowngood.app.store.watch_lists import ListOwner, remove_watch_list, save_watch_list
from knowngood.app.web.auth.principal import require, require_own_form
from knowngood.app.web.auth.sign_in_page import led_to_sign_in
from knowngood.app.web.errors import InvalidParameter
from knowngood.app.web.forms import Fields, Form
from knowngood.app.web.request_context import Context, RequestContext, see_other, uncached
from knowngood.app.web.urls import API, watch_list_address, watch_list_edit_address

router = APIRouter(include_in_schema=False)

NEW = "/watchlists/~new"


@dataclass(frozen=True)
class Box:
    """Something to tick. `value` is what is sent."""

    value: str
    label: str
    is_ticked: bool


@dataclass(frozen=True)
class BoxGroup:
    component: str
    boxes: tuple[Box, ...]
    ticked: int


@dataclass(frozen=True)
class Draft:
    """The content of the form: a stored list, or what somebody typed that could not be kept. Lists are lines of text.

    `version` is the one that the change is made for (0: there must be none).
    """

    name: str = ""
    description: str = ""
    issues: tuple[str, ...] = ()
    more_issues: str = ""
    components: tuple[str, ...] = ()
    packages: str = ""
    severity: str = ""
    hardware: tuple[str, ...] = ()
    version: int = 0

    def content(self) -> WatchListContent:
        """Raises InvalidParameter for a severity there is not."""
        if self.severity and self.severity not in set(Severity):
            raise InvalidParameter(f"known: {', '.join(Severity)}", "severity")
        watch = Watch(
            (*self.issues, *_words(self.more_issues)),
            self.components,
            _words(self.packages),
            Severity(self.severity) if self.severity else None,
        )
        return WatchListContent(watch, self.hardware, self.description.strip())


@dataclass(frozen=True)
class WatchListFormPage:
    """`address` is where the form is sent; `problem` says why the last try could not be kept."""

    draft: Draft
    is_new: bool
    address: str
    back: str
    problem: str
    groups: tuple[BoxGroup, ...]
    components: tuple[Box, ...]
    severities: tuple[Box, ...]
    hardware: tuple[Box, ...]
    form_token: str
    json_address: str


@router.get(NEW)
def new_form(context: Context, request: Request) -> Response:
    if context.principal.token is None:
        return led_to_sign_in(context)
    require(request, Scope.TRIAGE)
    return _shown(context, Draft(), is_new=True)


@router.post(NEW)
def make(context: Context, request: Request, fields: Fields) -> Response:
    return _kept(context, request, _draft(fields, ""), is_new=True)


@router.get("/watchlists/{name}/edit")
def edit_form(context: Context, request: Request, name: str) -> Response:
    if context.principal.token is None:
        return led_to_sign_in(context)
    require(request, Scope.TRIAGE)
    with reading(context.state.engine) as s:
        found = find_watch_list(s, name)
        issues = {issue.id: issue for issue in load_issues(s)}
    _refuse_other_owner(context, found)
    return _shown(context, _draft_of(found, issues), is_new=False)


@router.post("/watchlists/{name}/edit")
def change(context: Context, request: Request, name: str, fields: Fields) -> Response:
    return _kept(context, request, _draft(fields, name), is_new=False)


@router.post("/watchlists/{name}/remove")
def remove(context: Context, request: Request, name: str, form: Form) -> Response:
    require_own_form(request, form.get("form_token", ""))
    by = _keeper(context, request)
    if form.get("sure") != "yes":
        raise InvalidParameter("tick the box that says that you mean it; nothing was removed", "sure")
    with unit_of_work(context.state.engine) as s:
        remove_watch_list(s, name, by=by, now=context.now, based_on=_number(form.get("version", "")))
    return see_other("/watchlists")


def may_change(context: RequestContext, watch_list: WatchList) -> bool:
    """Whether the signed-in reader is shown the way to its form; the form itself looks again."""
    principal = context.principal
    is_own = principal.name == watch_list.owner or principal.may(Scope.ADMIN)
    return bool(principal.session) and principal.may(Scope.TRIAGE) and is_own


def _kept(context: RequestContext, request: Request, sent: tuple[Draft, str], *, is_new: bool) -> Response:
    draft, form_token = sent
    require_own_form(request, form_token)
    by = _keeper(context, request)
    try:
        with unit_of_work(context.state.engine) as s:
            kept = save_watch_list(s, draft.name, draft.content(), by=by, now=context.now, based_on=draft.version)
    except NotAllowed:
        raise
    except KnownGoodError as problem:  # whatever is wrong with it: what was typed is not lost
        status = HTTPStatus.CONFLICT if isinstance(problem, WatchListTaken) else HTTPStatus.UNPROCESSABLE_ENTITY
        return _shown(context, draft, str(problem), is_new=is_new, status=status)
    return see_other(watch_list_address(kept.name))


def _keeper(context: RequestContext, request: Request) -> ListOwner:
    return ListOwner(require(request, Scope.TRIAGE).actor, overrules=context.principal.may(Scope.ADMIN))


def _refuse_other_owner(context: RequestContext, watch_list: WatchList) -> None:
    if context.principal.name != watch_list.owner and not context.principal.may(Scope.ADMIN):
        raise NotAllowed(f'the watch list "{watch_list.name}" belongs to {watch_list.owner}', Scope.ADMIN)


def _draft_of(found: WatchList, issues: Mapping[str, Issue]) -> Draft:
    """Ids become ticks; what is written otherwise, or left the catalogue, stays as it is written."""
    watch, known = found.content.watch, names_of(issues)
    ticked = [text for text in watch.issues if text in issues]
    others = [text for text in watch.issues if text not in issues]
    return Draft(
        name=found.name,
        description=found.content.description,
        issues=tuple(ticked),
        more_issues="\n".join(sorted(others, key=lambda text: (not (is_all(text) or meant_by(text, known)), text))),
        components=watch.components,
        packages="\n".join(watch.packages),
        severity=watch.severity or "",
        hardware=found.content.hardware,
        version=found.version,
    )


def _draft(fields: Mapping[str, list[str]], name: str) -> tuple[Draft, str]:
    """The list that was sent, and the form's CSRF token."""

    def one(field: str) -> str:
        return fields.get(field, [""])[-1].replace("\r\n", "\n")

    return Draft(
        name=name or one("name").strip(),
        description=one("description"),
        issues=tuple(fields.get("issues", ())),
        more_issues=one("more_issues"),
        components=tuple(fields.get("components", ())),
        packages=one("packages"),
        severity=one("severity"),
        hardware=tuple(fields.get("hardware", ())),
        version=_number(one("version")),
    ), one("form_token")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - what a column holds
        raise InvalidParameter("the form says for which version the change is made; open the page again", "version")
    return int(text)


def _words(text: str) -> tuple[str, ...]:
    """Names between commas, spaces or ends of lines: lists are pasted from anywhere."""
    return tuple(text.replace(",", " ").split())


def _shown(
    context: RequestContext, draft: Draft, problem: str = "", *, is_new: bool, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    with reading(context.state.engine) as s:
        issues, measured = load_issues(s), load_hardware(s)
    address = watch_list_address(draft.name) if draft.name else "/watchlists"
    page = WatchListFormPage(
        draft=draft,
        is_new=is_new,
        address=NEW if is_new else watch_list_edit_address(draft.name),
        back="/watchlists" if is_new else address,
        problem=problem,
        groups=_groups(context, issues, draft),
        components=tuple(
            Box(name, name, name in draft.components)
            for name in sorted({*draft.components, *(issue.component for issue in issues)}, key=str.casefold)
        ),
        severities=tuple(Box(one, context.say(one), one == draft.severity) for one in Severity),
        hardware=tuple(Box(name, name, name in draft.hardware) for name in sorted({*measured, *draft.hardware})),
        form_token=context.principal.form_token,
        json_address=f"{API}/watchlists" if is_new else f"{API}{address}",
    )
    return uncached(context.page("watch_list_form.html", page, status))


def _groups(context: RequestContext, issues: tuple[Issue, ...], draft: Draft) -> tuple[BoxGroup, ...]:
    ticked = set(draft.issues)
    ordered = sorted(issues, key=lambda issue: (issue.component.casefold(), issue.id))
    groups = []
    for component, some in groupby(ordered, key=lambda issue: issue.component):
        boxes = tuple(Box(issue.id, context.title_of(issue), issue.id in ticked) for issue in some)
        groups.append(BoxGroup(component, boxes, sum(box.is_ticked for box in boxes)))
    return tuple(groups)
