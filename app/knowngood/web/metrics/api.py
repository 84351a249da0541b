"""`/metrics`: for Prometheus. Whoever may read pages may read it; it holds counts and digests, no name and no text.

`/healthz`: requests are answered. `/readyz`: the server can also read a database of this release and pasted texts,
follows the database, and goes on.
"""

import structlog
from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from knowngood import foreign_text
from knowngood.domain.errors import Busy, StoreUnusable
from knowngood.store.engine import Engine, identity_of, reading, require_current
from knowngood.store.gauges import Gauges, load_gauges
from knowngood.web.app_state import state_of
from knowngood.web.errors import Stopping
from knowngood.web.metrics.collector import write_metrics
from knowngood.web.openapi import REFUSALS
from knowngood.web.request_context import Context

router = APIRouter(tags=["health"])

METRICS = "/metrics"

logger = structlog.get_logger(__name__)

_TEXT = {"text/plain": {"schema": {"type": "string"}}, "application/openmetrics-text": {"schema": {"type": "string"}}}


@router.get(METRICS, response_class=Response, responses={200: {"content": _TEXT}, 503: REFUSALS[503]})
def metrics(context: Context) -> Response:
    """The installation in numbers, in the text form of Prometheus or of OpenMetrics, as `Accept` asks."""
    text, media = write_metrics(
        context.state.instruments,
        _gauges(context),
        context.request.app.version,
        context.request.headers.get("accept", ""),
    )
    return Response(text, media_type=media, headers={"Cache-Control": "no-store"})


def _gauges(context: Context) -> Gauges | None:
    """None where the store cannot be read: the counts of the processes are answered all the same."""
    try:
        with reading(context.state.engine) as session:
            return load_gauges(session, context.now)
    except StoreUnusable as error:
        logger.warning("the store cannot be read for metrics", reason=str(error))
        return None


_SILENT_S = 10


class StoreFile:
    """The SQLite file that a server began with: one that is put in its place, or removed, is never noticed by the
    connections that are open.
    """

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None

    def require_same(self, engine: Engine) -> None:
        """Remember the file when first asked. Raises StoreUnusable where it is another one now, or gone."""
        now = identity_of(engine)
        self._first = self._first or now
        if now != self._first:
            reason = "its file was replaced or removed under the server; start the server again"
            logger.error("the store is another one", reason=reason)
            raise StoreUnusable(reason)


class HealthBody(BaseModel):
    status: str


@router.get("/healthz")
async def healthz(request: Request) -> HealthBody:
    """Answered by the event loop, which waits for no thread: 503 where all threads are taken, others wait for one, and
    none has answered for 10 s.
    """
    silent_s = state_of(request.app).pulse.silent_s()
    if current_default_thread_limiter().statistics().tasks_waiting and silent_s > _SILENT_S:
        raise Busy(f"no request has been answered for {silent_s:.0f} s; this process should be started again")
    return HealthBody(status="ok")


@router.get("/readyz", responses={503: REFUSALS[503]})
def readyz(request: Request) -> HealthBody:
    state = state_of(request.app)
    if state.streams.is_stopping:
        raise Stopping("this server was asked to stop and answers only what is asked now; another one is ready")
    state.own(StoreFile).require_same(state.engine)
    require_current(state.engine)
    foreign_text.is_ready()
    if state.turns.is_full:
        raise Busy("as many long questions wait as may; ask another server")
    state.knowledge.now()
    if state.knowledge.is_behind:
        return HealthBody(
            status=f"ready, but the gate knows nothing newer than {state.knowledge.known_at}; see the log"
        )
    return HealthBody(status="ready")
