"""`/search`: what a text means. A sure answer leads on to its page; else everything that may be meant, best first.

What is pasted (an error, an environment) comes as a form, so that it is in no address: it is held by its request alone.
"""

from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from knowngood.ask.explain.page import answer_paste
from knowngood.ask.reading import HitKind, pasted
from knowngood.ask.search.api import LONGEST_TEXT, SEARCH_API
from knowngood.ask.search.service import MOST_HITS, SearchAnswer, SearchIndexes, cell_of, search, titled
from knowngood.domain.threads import USUAL
from knowngood.domain.verdicts.known import Known
from knowngood.store.engine import reading
from knowngood.web.forms import Form
from knowngood.web.request_context import Context, RequestContext, see_other, uncached
from knowngood.web.urls import ENVIRONMENT, SEARCH, search_address

router = APIRouter(include_in_schema=False)

GROUP_WORDS: Mapping[HitKind, str] = {
    HitKind.ISSUE: "Issues",
    HitKind.THREAD: "Not in the catalogue",
    HitKind.BUILD: "Builds",
    HitKind.HARDWARE: "Hardware",
    HitKind.QUERY: "In the matrix",
    HitKind.COMPARE: "Two builds",
    HitKind.UPGRADE: "Upgrade",
    HitKind.WHEELS: "Is there a wheel?",
    HitKind.ERROR: "Errors",
    HitKind.ENVIRONMENT: "Your environment",
}
EXAMPLE_WORDS: Mapping[str, str] = {
    "#151290": "an issue, in any notation",
    "2.7.1": "a build",
    "H100": "hardware, by its name or class",
    "2.5.1 H100 flex_attention": "some of them together",
    "2.7.1 -> 2.8.0": "what changed between two builds",
    "NoValidChoicesError": "words of a title, a message or a description",
    "status:affected workaround:none": "a query of the matrix",
}


@router.get(SEARCH)
def get_search(context: Context, q: Annotated[str, Query(max_length=LONGEST_TEXT)] = "") -> Response:
    index = context.state.own(SearchIndexes)

    def show(pair: tuple[Known, SearchAnswer]) -> Response:
        known, answer = pair
        return _led_on(context, q, answer) or _page(context, q, known, answer)

    return context.answer(
        lambda session: (known := context.known(session), search(q, known, index.of(known.issues))), show
    )


@router.post(SEARCH)
def post_search(context: Context, form: Form) -> Response:
    """As the box of a page sends it: a line has an address of its own, what is pasted has none."""
    text = form.get("q", "").strip()
    if pasted(text) is HitKind.ENVIRONMENT:
        return RedirectResponse(ENVIRONMENT, HTTPStatus.TEMPORARY_REDIRECT)  # with the same form
    with reading(context.state.engine) as session:
        known = context.known(session)
    answer = search(text, known, context.state.own(SearchIndexes).of(known.issues))
    if led := _led_on(context, text, answer):
        return led
    if len(text) <= LONGEST_TEXT and len(text.splitlines()) <= 1:
        return see_other(search_address(text) if text else SEARCH)
    return _page(context, text, known, answer)


def _led_on(context: RequestContext, text: str, answer: SearchAnswer) -> Response | None:
    if answer.hits and answer.hits[0].kind is HitKind.ERROR:
        return uncached(answer_paste(context, text))
    return see_other(answer.leads_to) if answer.leads_to else None


def _page(context: RequestContext, text: str, known: Known, answer: SearchAnswer) -> Response:
    """Hits of one kind stand together, in the order of the best of each, each with its cell and its words."""
    groups = defaultdict(list)
    for hit in titled(answer, known.issues, context.title_of, MOST_HITS).hits:
        issue = known.issues[hit.name] if hit.kind is HitKind.ISSUE else None
        cell = cell_of(issue, answer.build, answer.hardware, known) if issue else None
        groups[context.say(GROUP_WORDS[hit.kind])].append((hit, issue, cell))
    return context.page(
        "search.html",
        answer,
        text=text,
        groups=groups,
        examples=[(example, search_address(example), context.say(words)) for example, words in EXAMPLE_WORDS.items()],
        json_address=f"{SEARCH_API}{search_address(text).removeprefix(SEARCH)}" if text else SEARCH_API,
        upstream_address=f"https://github.com/{USUAL}/issues?{urlencode({'q': text[:200]})}",
    )
