"""Refusals as answers: problem details (RFC 9457) for programs, a page for people. Status codes live here."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from app.domain.errors import KnownGoodError, StoreUnusable
from app.web.security import HEADERS

logger = structlog.get_logger(__name__)

PROBLEM_MEDIA = "application/problem+json"

# Keep a copy, but ask before showing it again: the answer is a 304 after one query.
REVALIDATE = {"Cache-Control": "no-cache", "Vary": "Cookie"}


class NotHere(KnownGoodError):
    """The address names nothing we have; `nearest` are addresses that a reader may have meant, as (text, address)."""

    def __init__(self, message: str, nearest: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)


class BadQuestion(KnownGoodError):
    """A parameter that cannot be understood or names nothing we have; the text says what would do."""


class Busy(KnownGoodError):
    """More is asked for at once than this server gives; the text says what to do instead."""


class NotModified(Exception):
    """No fault: the copy that the reader holds is still right."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag = etag


@dataclass(frozen=True)
class Answer:
    """A complete answer, before compression."""

    body: bytes
    headers: Mapping[str, str]


class MadeBefore(Exception):
    """No fault: this very answer was made for somebody else."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class Problem(BaseModel):
    """RFC 9457. `suggestions` are addresses that the caller may have meant."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    suggestions: Annotated[list[str], Field(default_factory=list)]


def nearest(wanted: str, known: Iterable[str], limit: int = 4) -> list[str]:
    """The known ids most like what was typed: same number first, then alike letters."""
    pool = sorted(set(known))
    number = "".join(sign for sign in wanted if sign.isdigit())
    numbered = [id_ for id_ in pool if len(number) > 2 and number in id_]  # noqa: PLR2004 - shorter numbers say nothing
    return list(dict.fromkeys([*numbered, *difflib.get_close_matches(wanted, pool, n=limit, cutoff=0.5)]))[:limit]


def or_nearest(ids: list[str]) -> str:
    return f"; nearest: {', '.join(ids)}" if ids else ""


STATUS: tuple[tuple[type[KnownGoodError], HTTPStatus], ...] = (
    (NotHere, HTTPStatus.NOT_FOUND),
    (BadQuestion, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreUnusable, HTTPStatus.SERVICE_UNAVAILABLE),
    (KnownGoodError, HTTPStatus.UNPROCESSABLE_ENTITY),
)


def status_of(error: KnownGoodError) -> HTTPStatus:
    return next(status for kind, status in STATUS if isinstance(error, kind))


@dataclass(frozen=True)
class ErrorPage:
    """What templates/error.html shows."""

    status: int
    title: str
    detail: str
    nearest: tuple[tuple[str, str], ...]


ShowError = Callable[[Request, ErrorPage], Response]


def install(app: FastAPI, show: ShowError) -> None:
    """Answer every refusal in one shape: `show` makes the page, this file the problem details."""

    def answer(request: Request, page: ErrorPage, headers: Mapping[str, str] | None = None) -> Response:
        response = _problem(request, page) if _is_for_a_program(request) else show(request, page)
        response.headers["Cache-Control"] = "no-store"
        response.headers.update(headers or {})
        return response

    @app.exception_handler(KnownGoodError)
    def refused(request: Request, error: KnownGoodError) -> Response:
        status = status_of(error)
        suggestions = error.nearest if isinstance(error, NotHere) else ()
        return answer(request, ErrorPage(status, status.phrase, str(error), suggestions))

    @app.exception_handler(StoreUnusable)
    def without_store(request: Request, error: StoreUnusable) -> Response:
        """The reason names files and addresses of the server, so only its log gets it."""
        status = status_of(error)
        logger.error("the store cannot be used", path=request.url.path, reason=str(error))
        detail = "The database cannot be used at the moment; the server's log says why. Nothing is lost; try again."
        return answer(request, ErrorPage(status, status.phrase, detail, ()), {"Retry-After": "10"})

    @app.exception_handler(RequestValidationError)
    def misunderstood(request: Request, error: RequestValidationError) -> Response:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return answer(request, ErrorPage(status, status.phrase, _in_words(error), ()))

    @app.exception_handler(HTTPException)
    def other(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        detail = error.detail if error.detail != status.phrase else status.description
        return answer(request, ErrorPage(status, status.phrase, detail, ()), error.headers)

    @app.exception_handler(NotModified)
    def unchanged(_: Request, error: NotModified) -> Response:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": error.etag, **REVALIDATE})

    @app.exception_handler(MadeBefore)
    def repeated(_: Request, made: MadeBefore) -> Response:
        return Response(made.answer.body, headers=made.answer.headers)

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        """Our fault. The server prints the traceback by itself; the answer gives nothing away."""
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        logger.error("request failed", path=request.url.path, error=type(error).__name__)
        detail = "This is a fault of the server, not of your question. Its log says more; the data is unharmed."
        # The outermost middleware answers here, outside of the one that adds the security headers.
        return answer(request, ErrorPage(status, status.phrase, detail, ()), HEADERS)


def _is_for_a_program(request: Request) -> bool:
    return request.url.path.startswith(("/api/v1", "/openapi.json", "/healthz", "/readyz"))


def _problem(request: Request, page: ErrorPage) -> Response:
    body = Problem(
        title=page.title,
        status=page.status,
        detail=page.detail,
        instance=request.url.path,
        suggestions=[address for _, address in page.nearest],
    )
    return Response(body.model_dump_json(), page.status, media_type=PROBLEM_MEDIA)


def _in_words(error: RequestValidationError) -> str:
    return "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
