"""The web application: rooms, doors and the order of middleware. Holds an engine; knows nothing of settings or SQL."""

from collections.abc import Callable
from datetime import datetime
from functools import cache

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.middleware.gzip import GZipMiddleware

from app.store.session import Engine
from app.web import document, errors
from app.web.api import attempts as api_attempts
from app.web.api import audit as api_audit
from app.web.api import builds as api_builds
from app.web.api import cells as api_cells
from app.web.api import changes as api_changes
from app.web.api import compare as api_compare
from app.web.api import coverage as api_coverage
from app.web.api import docs as api_docs
from app.web.api import errors_api, health, metrics
from app.web.api import events as api_events
from app.web.api import exports as api_exports
from app.web.api import gate as api_gate
from app.web.api import hygiene as api_hygiene
from app.web.api import issues as api_issues
from app.web.api import matrix as api_matrix
from app.web.api import notes as api_notes
from app.web.api import quality as api_quality
from app.web.api import results as api_results
from app.web.api import runs as api_runs
from app.web.api import upgrade as api_upgrade
from app.web.api import voids as api_voids
from app.web.api import watch_lists as api_watch_lists
from app.web.api import whoami as api_whoami
from app.web.api import workers as api_workers
from app.web.api.answers import REFUSALS
from app.web.assets import edition, read_assets, static_router
from app.web.doorkeeper import Doorkeeper
from app.web.errors import ErrorPage
from app.web.known import Knowledge
from app.web.limits import Bodies
from app.web.metrics import Instruments
from app.web.pages import (
    attempt,
    audit,
    badge,
    build,
    cell,
    changes,
    compare,
    coverage,
    docs,
    hygiene,
    issue,
    matrix,
    notes,
    paste,
    pieces,
    preferences,
    quality,
    reference,
    run,
    runs,
    sign_in,
    upgrade,
    watch_list_form,
    watch_lists,
    workers,
)
from app.web.plain import read_plainly
from app.web.reader import Rules
from app.web.repeating import Repeater
from app.web.security import HeadAsGet, ReadFromAnywhere, RequestId, SecurityHeaders
from app.web.templating import make_templates
from app.web.visit import API, Answers, House, Streams, visit_from
from app.web.watching import Watcher

DESCRIPTION = (
    "Which PyTorch / CUDA / Triton build is known good for the bugs you care about. Every page of the site has its "
    "JSON twin here. Answers carry an ETag: send it back as If-None-Match and an unchanged answer costs one query."
)


# Level 3 makes 55 kB of the matrix of 100 issues x 40 builds in 2.6 ms; the next better one, 5, makes 50 kB in 5.4 ms
# (one core of a shared machine, 2026-11-21).
_COMPRESSION = 3
_KEPT_BYTES = 32_000_000  # thirty such matrices


def create_app(
    engine: Engine,
    *,
    clock: Callable[[], datetime],
    version: str = "0",
    rules: Rules | None = None,
    instruments: Instruments | None = None,
) -> FastAPI:
    """`clock` tells the time in UTC, aware. The database is asked per request, so it may come up later than this."""
    rules = rules or Rules()
    assets = read_assets()
    app = FastAPI(
        title="Known Good",
        version=version,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(read_plainly)],
        generate_unique_id_function=document.name_operation,
    )
    document.install(app)
    instruments = instruments or Instruments()
    app.state.house = House(
        engine,
        clock,
        make_templates(assets),
        f"{version}-{edition(assets)}",
        Streams(),
        Answers(_KEPT_BYTES),
        Knowledge(engine, clock, on_failure=instruments.fell_behind),
        rules,
        rules.buckets(),
        instruments=instruments,
    )
    app.state.results_buckets = rules.results_buckets()
    app.include_router(_api())
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(static_router(assets))
    pages = (
        matrix,
        issue,
        cell,
        attempt,
        build,
        compare,
        upgrade,
        runs,
        run,
        changes,
        hygiene,
        coverage,
        quality,
        badge,
        watch_list_form,  # before the lists themselves: `~new` is no name of one
        watch_lists,
        notes,
        workers,
        audit,
        sign_in,
        preferences,
        reference,
        docs,
        pieces,
        paste,
    )
    for page in pages:
        app.include_router(page.router)
    errors.install(app, _error_page)
    app.add_middleware(Repeater)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=_COMPRESSION)
    app.add_middleware(
        Bodies,
        limit_of=lambda path: rules.results_limit if path == api_results.RESULTS else rules.body_limit,
        streamed={api_results.RESULTS},
    )
    app.add_middleware(Doorkeeper)
    app.add_middleware(ReadFromAnywhere)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Watcher)
    app.add_middleware(RequestId)
    return app


def begin_to_stop(app: FastAPI) -> None:
    """For whoever runs the server, when it is asked to stop: it is not ready any more, and event streams end.

    Everything else is answered on.
    """
    app.state.house.streams.is_stopping = True
    end_streams(app)


def end_streams(app: FastAPI) -> None:
    """End every event stream within a second."""
    app.state.house.streams.is_closing = True


@cache  # an application of each test's own is made hundreds of times
def _api() -> APIRouter:
    api = APIRouter(prefix=API, responses=REFUSALS)
    for name, room in (
        ("gate", api_gate),  # the first, because it is asked most and routes are looked through in their order
        ("matrix", api_matrix),
        ("errors", errors_api),
        ("upgrade", api_upgrade),
        ("issues", api_issues),
        ("builds", api_builds),
        ("cells", api_cells),
        ("attempts", api_attempts),
        ("compare", api_compare),
        ("runs", api_runs),
        ("hygiene", api_hygiene),
        ("coverage", api_coverage),
        ("quality", api_quality),
        ("changes", api_changes),
        ("export", api_exports),
        ("notes", api_notes),
        ("watchlists", api_watch_lists),
        ("results", api_results),
        ("voids", api_voids),
        ("whoami", api_whoami),
        ("workers", api_workers),
        ("audit", api_audit),
        ("docs", api_docs),
        ("events", api_events),
    ):
        api.include_router(room.router, tags=[name])
    return api


def _error_page(request: Request, page: ErrorPage) -> Response:
    return visit_from(request).page("error.html", page, status=page.status)
