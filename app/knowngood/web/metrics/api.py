"""`/metrics`: for Prometheus. Whoever may read pages may read it; it holds counts and digests, no name and no text."""

import structlog
from fastapi import APIRouter, Response

from knowngood.domain.errors import StoreUnusable
from knowngood.store.engine import reading
from knowngood.store.gauges import Gauges, load_gauges
from knowngood.web.api_responses import REFUSALS
from knowngood.web.metrics.collector import write_metrics
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
    """None where the store cannot be read: what the processes counted is told all the same."""
    try:
        with reading(context.state.engine) as session:
            return load_gauges(session, context.now)
    except StoreUnusable as error:
        logger.warning("the store cannot be read for metrics", reason=str(error))
        return None
