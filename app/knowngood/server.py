"""The web application: rooms, doors and the order of middleware. Holds an engine; knows nothing of settings or SQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import cache

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware

from knowngood import foreign_text
from knowngood.ask.explain import api as diagnose_api
from knowngood.ask.explain import page as diagnose_page
from knowngood.ask.front import api as api_overview
from knowngood.ask.front import my_build_page
from knowngood.ask.front import page as front_page
from knowngood.ask.lookup import api as api_environment
from knowngood.ask.lookup import page as environment_page
from knowngood.ask.search import api as api_search
from knowngood.ask.search import page as search_page
from knowngood.ask.wheels import api as api_wheels
from knowngood.ask.wheels import page as wheels_page
from knowngood.gate import api as api_gate
from knowngood.gate.watchlists import api as api_watch_lists
from knowngood.gate.watchlists import page as watchlists_page
from knowngood.health import api as api_health
from knowngood.health import page as health_page
from knowngood.matrix.charts import api as api_charts
from knowngood.matrix.charts import page as charts_page
from knowngood.matrix.evidence import api as api_evidence
from knowngood.matrix.evidence import page as evidence_page
from knowngood.matrix.issues import api as api_issues
from knowngood.matrix.issues import page as issues_page
from knowngood.matrix.overview import api as api_matrix
from knowngood.matrix.overview import page as matrix_page
from knowngood.matrix.runs import api as api_runs
from knowngood.matrix.runs import page as runs_page
from knowngood.move.compare import api as api_compare
from knowngood.move.compare import page as compare_page
from knowngood.move.releases import api as api_releases
from knowngood.move.releases import page as releases_page
from knowngood.move.upgrade import api as api_upgrade
from knowngood.move.upgrade import page as upgrade_page
from knowngood.share import api as api_share
from knowngood.share import page as changes_page
from knowngood.share.exports import badge_api
from knowngood.store.engine import Engine
from knowngood.store.knowledge.cache import KnowledgeCache
from knowngood.web import errors, openapi, removed
from knowngood.web import page as own_pages
from knowngood.web.app_state import AppState, ResponseCache, StaticSite, state_of
from knowngood.web.auth import api as api_auth
from knowngood.web.auth.middleware import AuthMiddleware
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.html.markdown import load_lexers
from knowngood.web.html.templates import assets_version, load_templates, make_templates, read_assets, static_router
from knowngood.web.metrics import api as metrics_api
from knowngood.web.metrics.collector import Instruments
from knowngood.web.metrics.middleware import AccessLogMiddleware
from knowngood.web.middleware.headers import HeadAsGet, PublicReads, RequestHead
from knowngood.web.middleware.rate_limit import Bodies
from knowngood.web.openapi import REFUSALS
from knowngood.web.parameter_validation import read_plainly
from knowngood.web.request_context import context_of
from knowngood.web.urls import API, MATRIX, RESULTS

DESCRIPTION = (
    "Which PyTorch / CUDA / Triton build is known good for the bugs you care about. Every page of the site has its "
    "JSON twin here. Answers carry an ETag: send it back as If-None-Match and an unchanged answer costs one query."
)


# Level 3 makes 55 kB of the matrix of 100 issues x 40 builds in 2.6 ms; the next better one, 5, makes 50 kB in 5.4 ms
# (one core of a shared machine, 2026-11-21).
_COMPRESSION = 3
_THREADS = 80
_PATIENCE_S = 5.0  # a store that does not answer keeps no server from beginning
_CACHE_BYTES = 32_000_000  # thirty such matrices


def create_app(
    engine: Engine,
    *,
    clock: Callable[[], datetime],
    version: str = "0",
    rules: AccessPolicy | None = None,
    instruments: Instruments | None = None,
    site: StaticSite | None = None,
) -> FastAPI:
    """`clock` tells the time in UTC, aware. The database is read per request, so it may come up later than this. With
    `site` pages are made to be stored as files.
    """
    rules = rules or AccessPolicy()
    instruments = instruments or Instruments()
    assets = read_assets()
    app = FastAPI(
        title="Known Good",
        version=version,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(read_plainly)],
        generate_unique_id_function=openapi.name_operation,
        lifespan=_made_ready,
    )
    openapi.install(app)
    app.state.state = AppState(
        engine,
        clock,
        make_templates(assets),
        f"{version}-{assets_version(assets)}",
        ResponseCache(_CACHE_BYTES),
        KnowledgeCache(engine, clock, on_failure=instruments.fell_behind),
        rules,
        refuse=errors.install(
            app, lambda request, page: context_of(request).page("error.html", page, status=page.status)
        ),
        buckets=rules.buckets(),
        results_buckets=rules.results_buckets(),
        instruments=instruments,
        site=site,
    )
    app.include_router(removed.router_of(removed.REMOVED))  # before what takes a part of the path for a name
    app.include_router(_api())
    app.include_router(metrics_api.router)
    app.include_router(static_router(assets))
    pages = (
        matrix_page,
        front_page,
        my_build_page,
        issues_page,
        evidence_page,
        releases_page,
        compare_page,
        charts_page,
        upgrade_page,
        runs_page,
        changes_page,
        health_page,
        badge_api,
        watchlists_page,
        own_pages,
        diagnose_page,
        search_page,
        environment_page,
        wheels_page,
    )
    for page in pages:
        app.include_router(page.router)
    app.add_middleware(api_gate.GateFastPath)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=_COMPRESSION)
    app.add_middleware(
        Bodies,
        limit_of=lambda path: rules.results_limit if path == RESULTS else rules.body_limit,
        streamed={RESULTS},
    )
    app.add_middleware(AuthMiddleware)
    app.add_middleware(PublicReads)
    app.add_middleware(HeadAsGet)
    app.add_middleware(AccessLogMiddleware)
    app.add_middleware(RequestHead)
    return app


@asynccontextmanager
async def _made_ready(app: FastAPI) -> AsyncIterator[None]:
    """Make what any page needs before the first request, and the thread pool, which is there from then on. Most of its
    threads may wait for a long question or a reader's turn, and others are to be answered meanwhile.
    """
    current_default_thread_limiter().total_tokens = _THREADS
    await run_in_threadpool(_load_for_pages, app)
    await asyncio.wait({asyncio.ensure_future(run_in_threadpool(_make_first_pages, app))}, timeout=_PATIENCE_S)
    yield


def _load_for_pages(app: FastAPI) -> None:
    load_templates(state_of(app).templates)
    load_lexers()
    foreign_text.is_ready()
    for route in app.routes:  # FastAPI makes each ready when somebody first asks for what stands behind it
        route.matches({"type": "http", "method": "GET", "path": ""})


def _make_first_pages(app: FastAPI) -> None:
    """Make the two pages that say most of the store, for nobody: what they are made of is kept. The first readers of
    either waited for 0.9 s of a processor with the shipped results, those who came next for 0.1.
    """
    head = {"type": "http", "method": "GET", "query_string": b"", "headers": [], "server": ("", 80), "app": app}
    with suppress(Exception):  # whoever asks is told of a store that cannot be read
        releases_page.releases(context_of(Request({**head, "path": "/releases"})))
        every = matrix_page.MatrixPageQuery.model_validate({})
        matrix_page.matrix(context_of(Request({**head, "path": MATRIX})), every)


def begin_to_stop(app: FastAPI) -> None:
    """Report the application as not ready and end event streams; for whoever runs the server, when it is to stop.

    Everything else is answered on.
    """
    state_of(app).streams.is_stopping = True
    end_streams(app)


def end_streams(app: FastAPI) -> None:
    """End every event stream within a second."""
    state_of(app).streams.is_closing = True


@cache  # an application of each test's own is made hundreds of times
def _api() -> APIRouter:
    api = APIRouter(prefix=API, responses=REFUSALS)
    for router in (
        api_gate.router,  # the first, because it is asked most and routes are looked through in their order
        api_matrix.router,
        api_overview.router,
        diagnose_api.router,
        api_search.router,
        api_environment.router,
        api_wheels.router,
        api_upgrade.router,
        api_issues.router,
        api_evidence.router,
        api_compare.router,
        api_releases.router,
        api_charts.router,
        api_runs.router,
        api_health.router,
        api_share.router,
        api_watch_lists.router,
        api_auth.router,
    ):
        api.include_router(router)
    return api
