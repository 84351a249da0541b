"""Pages of the server itself. `/sign-in`, `/sign-out`: a token once, then a session in a cookie; without scripts.

`/preferences`: keep the reader's language or theme in a cookie and lead back. A link: it works without scripts. One of
another site leads there and keeps nothing.

`/signs`: what the signs of the matrix mean. `/api/docs`: the API reference, made from the same document that
`/openapi.json` serves. No script, no other host. `/llms.txt`: what agents can ask, as llmstxt.org has it.
"""

from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse

from knowngood.domain.access import NotAllowed
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.tokens import close_session, find_token, open_session
from knowngood.web.auth.principal import SESSION_COOKIE, is_from_elsewhere, is_from_here, require_own_form
from knowngood.web.forms import Form, own_address
from knowngood.web.html.i18n import Language
from knowngood.web.html.status_labels import LEGEND
from knowngood.web.request_context import (
    LANGUAGE_COOKIE,
    THEME_COOKIE,
    Context,
    RequestContext,
    remember_preferences,
    see_other,
    uncached,
)

router = APIRouter(include_in_schema=False)

_FOR_AGENTS = (files("knowngood.web") / "templates" / "llms.txt").read_text(encoding="utf-8")


@router.get("/sign-in")
def sign_in_page(context: Context, to: Annotated[str, Query(max_length=4000)] = "/") -> Response:
    return _sign_in_page(context, own_address(to))


@router.post("/sign-in")
def sign_in(context: Context, request: Request, form: Form) -> Response:
    if not is_from_here(request):
        raise NotAllowed("this form did not come from a page of this server; open the page and send it from there")
    to = own_address(form.get("to", "/"))
    with reading(context.state.engine) as s:
        lookup = find_token(s, form.get("token", "").strip(), context.now)
    if lookup.token is None:
        return _sign_in_page(context, to, lookup.problem)
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


def _sign_in_page(context: RequestContext, to: str, problem: str = "") -> Response:
    """`problem` is why the last try did not do; `to` where it leads."""
    page = {"to": to, "problem": problem}
    return uncached(context.page("sign_in.html", page, HTTPStatus.FORBIDDEN if problem else HTTPStatus.OK))


@router.get("/preferences")
def preferences(
    request: Request,
    to: Annotated[str, Query(max_length=4000)] = "/",
    lang: Language | None = None,
    theme: Literal["light", "dark", "system"] | None = None,
) -> Response:
    response = see_other(own_address(to))
    if not is_from_elsewhere(request):
        remember_preferences(response, **{LANGUAGE_COOKIE: lang, THEME_COOKIE: theme})
    return response


@router.get("/signs")
def signs(context: Context) -> Response:
    return context.page("signs.html", LEGEND)


@router.get("/llms.txt")
def for_agents(context: Context) -> Response:
    return PlainTextResponse(_FOR_AGENTS.format(base=context.base))


@router.get("/api/docs")
def reference(context: Context) -> Response:
    """The template reads the document by itself, with two functions: a type by name, and any in words."""
    return context.page(
        "reference.html", {"document": context.request.app.openapi(), "name_of": name_of, "kind_of": kind_of}
    )


def name_of(schema: Mapping[str, Any]) -> str:
    """`CellBody` of a reference to it, or to it and its shorter forms; empty for a type without a name."""
    first = schema.get("anyOf", [schema])[0]
    return str(schema.get("$ref", first.get("$ref", ""))).rpartition("/")[2]


def kind_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """A type in a few words: `string`, `list of CellBody`, `pass | match`. Names in `schemas` are spelt out."""
    name = name_of(schema) if "anyOf" not in schema else ""
    if name:
        return kind_of(schemas[name], {}) if name in schemas else name
    if "anyOf" in schema:
        return " or ".join(kind_of(option, schemas) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}), schemas)}"
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    return str(schema.get("type", "any"))
