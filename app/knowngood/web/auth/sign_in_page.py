"""`/sign-in`, `/sign-out`: a token once, then a session in a cookie. Without scripts."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import NotAllowed
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.tokens import close_session, find_token, open_session
from knowngood.web.auth.principal import SESSION_COOKIE, is_from_here, require_own_form
from knowngood.web.forms import Form, own_address
from knowngood.web.request_context import Context, RequestContext, see_other, uncached

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(context: Context, to: Annotated[str, Query(max_length=4000)] = "/") -> Response:
    return _page(context, own_address(to))


@router.post("/sign-in")
def sign_in(context: Context, request: Request, form: Form) -> Response:
    if not is_from_here(request):
        raise NotAllowed("this form did not come from a page of this server; open the page and send it from there")
    to = own_address(form.get("to", "/"))
    with reading(context.state.engine) as s:
        lookup = find_token(s, form.get("token", "").strip(), context.now)
    if lookup.token is None:
        return _page(context, to, lookup.problem)
    with unit_of_work(context.state.engine) as s:
        secret, ends = open_session(s, lookup.token, context.now)
    response = see_other(to)
    response.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=int((ends - context.now).total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/sign-out")
def sign_out(context: Context, request: Request, form: Form) -> Response:
    require_own_form(request, form.get("form_token", ""))
    if context.principal.token is not None:
        with unit_of_work(context.state.engine) as s:
            close_session(s, context.principal.session, context.principal.token.actor, context.now)
    response = see_other("/sign-in")
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


def _page(context: RequestContext, to: str, problem: str = "") -> Response:
    """`problem` is why the last try did not do; `to` where it leads."""
    page = {"to": to, "problem": problem}
    return uncached(context.page("sign_in.html", page, HTTPStatus.FORBIDDEN if problem else HTTPStatus.OK))
