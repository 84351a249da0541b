"""Refusals as answers: problem details (RFC 9457) for programs, a page for people. Status codes live here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, NamedTuple

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from knowngood.domain import issue_selectors
from knowngood.domain.access import NotAllowed, NotSignedIn
from knowngood.domain.errors import Busy, KnownGoodError, StoreUnusable, TextTooCostly, Unreadable
from knowngood.domain.issue_selectors import UnknownWatchList, WatchListTaken
from knowngood.domain.message import Message
from knowngood.domain.threads import Thread
from knowngood.query.parser import BadQuery
from knowngood.query.search_box import Marked, marked
from knowngood.web.middleware.headers import HEADERS, REQUEST_ID, methods_at
from knowngood.web.middleware.rate_limit import TooMany
from knowngood.web.middleware.request_bodies import BadBody

logger = structlog.get_logger(__name__)

PROBLEM_MEDIA = "application/problem+json"


class Suggestion(NamedTuple):
    """An address that a reader may have meant; `chinese` where the text is none of the interface's own."""

    text: str
    address: str
    chinese: str = ""


class NotFound(KnownGoodError):
    """The address names nothing we have; `nearest` are the beginnings of Suggestion. `thread` is what an unknown issue
    is upstream.
    """

    def __init__(self, message: str, nearest: Iterable[Sequence[str]] = (), thread: Thread | None = None) -> None:
        super().__init__(message)
        self.nearest = tuple(Suggestion(*pair) for pair in nearest)
        self.thread = thread


class Gone(KnownGoodError):
    """An address that a release took away; the text says what takes its place."""


class InvalidParameter(KnownGoodError):
    """A parameter that cannot be understood or names nothing we have; the text says what would do.

    `field` is the parameter, or the place in the body, that is at fault; empty where no single one is.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class QueryRefused(InvalidParameter):
    """The parameter `q` holds a query that cannot be read, or leaves nothing to be shown."""

    def __init__(self, text: str, error: BadQuery) -> None:
        super().__init__(str(error), "q")
        self.marked = marked(text, error)


class UnsupportedMediaType(InvalidParameter):
    """A body of a media type that is not read here; the text says which are."""


class FieldFault(BaseModel):
    """The fault of one field: a parameter, `path`, `header`, or a place in the body (`policy.watch`)."""

    field: str
    detail: str


class Stopping(KnownGoodError):
    """The server was asked to stop."""


class Problem(BaseModel):
    """RFC 9457. `suggestions` are addresses that the caller may have meant; `errors` name the fields at fault;
    `request_id` finds the request in the server's log; it and `instance` are empty where no request could be read.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str = ""
    suggestions: Annotated[list[str], Field(default_factory=list)]
    errors: Annotated[list[FieldFault], Field(default_factory=list)]
    request_id: str = ""


_MOST_FAULTS = 20  # of 10,000 wrong ids the first ones say it all
_LONGEST_NAME = 200  # comparing takes as long as both names together, and ours are short


def nearest(wanted: str, known: Iterable[str], limit: int = 4) -> list[str]:
    """The known ids most like what was typed: same number first, then alike letters."""
    return issue_selectors.nearest(wanted, set(known), limit, longest=_LONGEST_NAME)


def or_nearest(ids: list[str]) -> str:
    return f"; nearest: {', '.join(ids)}" if ids else ""


STATUS: tuple[tuple[type[KnownGoodError], HTTPStatus], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (Gone, HTTPStatus.GONE),
    (UnknownWatchList, HTTPStatus.NOT_FOUND),
    (Unreadable, HTTPStatus.NOT_FOUND),
    (WatchListTaken, HTTPStatus.CONFLICT),
    (NotSignedIn, HTTPStatus.UNAUTHORIZED),
    (NotAllowed, HTTPStatus.FORBIDDEN),
    (TooMany, HTTPStatus.TOO_MANY_REQUESTS),
    (UnsupportedMediaType, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (InvalidParameter, HTTPStatus.UNPROCESSABLE_ENTITY),
    (TextTooCostly, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (Stopping, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreUnusable, HTTPStatus.SERVICE_UNAVAILABLE),
    (KnownGoodError, HTTPStatus.UNPROCESSABLE_ENTITY),
)


def status_of(error: KnownGoodError) -> HTTPStatus:
    return next(status for kind, status in STATUS if isinstance(error, kind))


def headers_of(error: KnownGoodError) -> dict[str, str]:
    """Headers by which a program does better next time."""
    match error:
        case NotSignedIn():
            return {"WWW-Authenticate": f'{_BEARER}, error="invalid_token"' if error.is_presented else _BEARER}
        case NotAllowed():
            wanted = f', scope="{error.scope}"' if error.scope else ""
            return {"WWW-Authenticate": f'{_BEARER}, error="insufficient_scope"{wanted}'}
        case TooMany():
            return {"Retry-After": str(error.wait_s)}
        case StoreUnusable():
            return {"Retry-After": "10"}
        case Busy():
            return {"Retry-After": "5"}
        case _:
            return {}


_BEARER = 'Bearer realm="Known Good"'


REFUSED_WORDS = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address",
    HTTPStatus.GONE: "What was at this address is gone",
    HTTPStatus.CONFLICT: "This exists already, or was changed meanwhile",
    HTTPStatus.UNAUTHORIZED: "Sign in to see this",
    HTTPStatus.FORBIDDEN: "Your token does not allow this",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address does not accept that",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "This is more than the server reads",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The server does not read this kind of file",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This question cannot be answered as it was asked",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many questions at once; try again soon",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The server made a mistake",
    HTTPStatus.SERVICE_UNAVAILABLE: "The server cannot answer now; try again soon",
}
"""Words by status for readers whose language the details of a refusal are not in."""
_OTHER_WORDS = "This cannot be answered"


@dataclass(frozen=True)
class ErrorPage:
    """The values of templates/error.html; `query` where the box of the matrix is to be tried again, `thread` where an
    unknown issue is one upstream, `why` where the detail has words in every language.
    """

    status: int
    title: str
    detail: str
    nearest: tuple[Suggestion, ...]
    faults: tuple[FieldFault, ...] = ()
    query: Marked | None = None
    thread: Thread | None = None
    why: Message | None = None

    @property
    def in_short(self) -> str:
        """The refusal without its details."""
        return next((words for status, words in REFUSED_WORDS.items() if status == self.status), _OTHER_WORDS)


ShowError = Callable[[Request, ErrorPage], Response]


def install(app: FastAPI, show: ShowError) -> Callable[[Request, KnownGoodError], Response]:
    """Answer every refusal in one shape: `show` makes the page, this file the problem details. Gives the function that
    answers our own errors.
    """

    def answer(request: Request, page: ErrorPage, headers: Mapping[str, str] | None = None) -> Response:
        response = _problem(request, page) if is_for_a_program(request) else show(request, page)
        response.headers["Cache-Control"] = "no-store"
        response.headers.update(headers or {})
        return response

    @app.exception_handler(KnownGoodError)
    def refused(request: Request, error: KnownGoodError) -> Response:
        return answer(request, _page_of(error), headers_of(error))

    @app.exception_handler(RequestValidationError)
    def misunderstood(request: Request, error: RequestValidationError) -> Response:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        faults = tuple(
            FieldFault(field=_place(fault["loc"]), detail=fault["msg"]) for fault in error.errors()[:_MOST_FAULTS]
        )
        detail = "; ".join(f"{fault.field}: {fault.detail}" for fault in faults)
        return answer(request, ErrorPage(status, status.phrase, detail, (), faults))

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            return without_method(request)
        if status is HTTPStatus.BAD_REQUEST:
            return refused(request, InvalidParameter(_unreadable(error.__cause__), "body"))
        detail = error.detail if error.detail != status.phrase else REFUSED_WORDS.get(status, status.description)
        return answer(request, ErrorPage(status, status.phrase, detail, ()), error.headers)

    def without_method(request: Request) -> Response:
        """OPTIONS asks just what the refusal of another method tells."""
        status = HTTPStatus.METHOD_NOT_ALLOWED
        allow = {"Allow": ", ".join(methods_at(request))}
        if request.method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers=allow)
        detail = f"{request.method} is not taken here; this address takes {allow['Allow']}"
        return answer(request, ErrorPage(status, status.phrase, detail, ()), allow)

    app.exception_handler(BadBody)(lambda request, error: refused(request, _question_of(error)))

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        """Our fault. The server prints the traceback by itself; the answer gives nothing away."""
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        name = request.scope.get(REQUEST_ID, "")  # the middleware that logs and sends it is left by now
        logger.error("request failed", error=type(error).__name__, request_id=name)
        detail = "This is a fault of the server, not of your question. Its log says more; the data is unharmed."
        # The outermost middleware answers here, outside of the one that adds the security headers.
        return answer(request, ErrorPage(status, status.phrase, detail, ()), {**HEADERS, "X-Request-ID": name})

    return refused


def _page_of(error: KnownGoodError) -> ErrorPage:
    """The reason why the store cannot be used names files and addresses of the server, so only its log gets it."""
    status = status_of(error)
    if isinstance(error, StoreUnusable):
        logger.error("the store cannot be used", reason=str(error))  # which request it was says the line of the request
        detail = "The database cannot be used at the moment; the server's log says why. Nothing is lost; try again."
        return ErrorPage(status, status.phrase, detail, ())
    # Errors of other rooms name the part of the question that is at fault as well.
    field = getattr(error, "field", "")
    return ErrorPage(
        status,
        status.phrase,
        str(error),
        nearest=error.nearest if isinstance(error, NotFound) else (),
        faults=(FieldFault(field=field, detail=getattr(error, "message", str(error))),) if field else (),
        query=error.marked if isinstance(error, QueryRefused) else None,
        thread=error.thread if isinstance(error, NotFound) else None,
        why=getattr(error, "why", None),
    )


def _question_of(error: BadBody) -> InvalidParameter:
    is_unread = error.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return (UnsupportedMediaType if is_unread else InvalidParameter)(error.detail, "body")


def _unreadable(cause: BaseException | None) -> str:
    """FastAPI says of every body it cannot read that it could not; here is why."""
    match cause:
        case UnicodeDecodeError():
            return f"is no UTF-8 from byte {cause.start} on"
        case RecursionError():
            return "is nested too deeply"
        case _:
            return "cannot be read"


_FOR_PROGRAMS = ("/api/v1", "/openapi.json", "/healthz", "/readyz", "/metrics", "/feeds/", "/badge/")


def is_for_a_program(request: Request) -> bool:
    return request.url.path.startswith(_FOR_PROGRAMS)


def _problem(request: Request, page: ErrorPage) -> Response:
    body = Problem(
        title=page.title,
        status=page.status,
        detail=_sendable(page.detail),
        instance=request.url.path,
        suggestions=[suggestion.address for suggestion in page.nearest],
        errors=[FieldFault(field=_sendable(fault.field), detail=_sendable(fault.detail)) for fault in page.faults],
        request_id=request.scope.get(REQUEST_ID, ""),
    )
    return Response(body.model_dump_json(), page.status, media_type=PROBLEM_MEDIA)


def _sendable(text: str) -> str:
    """JSON may write half of a surrogate pair, which no UTF-8 can send back."""
    return text.encode(errors="replace").decode()


def _place(loc: Sequence[str | int]) -> str:
    """`limit` of ("query", "limit"); `body.policy.watch` of a place in the body; `body` alone for all of it."""
    return ".".join(str(part)[:_LONGEST_NAME] for part in (loc if loc[0] == "body" else loc[1:] or loc))
