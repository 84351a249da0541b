"""`/api/v1/search`: what a text means, as the box on every page understands it."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.ask.search.service import MOST_HITS, SearchAnswer, SearchIndexes, search, titled
from knowngood.web.request_context import Context
from knowngood.web.urls import API

router = APIRouter(tags=["search"])

SEARCH_API = f"{API}/search"
LONGEST_TEXT = 20_000  # characters of an address; what is longer is pasted as a form


@router.get("/search", response_model=SearchAnswer)
def get_search(
    context: Context,
    q: Annotated[
        str,
        Query(
            max_length=LONGEST_TEXT,
            description="An issue in any notation, a build, hardware, words, a query, a message, or several of them",
            examples=["#151290", "2.5.1 H100 flex_attention", "status:affected component:inductor"],
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_HITS, description="At most so many hits")] = 20,
) -> Response:
    """The meaning of a text: issues, builds, hardware, a part of the matrix, best first. Nothing found is an answer."""
    index = context.state.own(SearchIndexes)
    return context.answer(
        lambda session: (known := context.known(session), search(q, known, index.of(known.issues))),
        lambda pair: context.json(titled(pair[1], pair[0].issues, context.title_of, limit)),
    )
