"""The answer to a search, as JSON."""

from collections.abc import Sequence

from pydantic import Field

from knowngood.ask.search.service import HitKind, SearchAnswer
from knowngood.ask.search.views import HitView, Say
from knowngood.web.json_body import Body


class HitBody(Body):
    """`name` is an issue's id, a build's, a hardware class, a query, or a thread (`pytorch/pytorch#999999`). `url` is a
    page here, of a `thread` the one on GitHub. `told` says why it is here or what to do, and `command` does it.
    Of an issue, `history` is where it fails, and `verdict` that on the build that the text names, empty where it names
    none.
    """

    kind: HitKind
    name: str
    title: str
    told: str
    history: str
    url: str
    command: str = Field(description="To be run in a shell; empty where there is none")
    verdict: str


class SearchBody(Body):
    """Hits stand best first. `sure`: the first is what is meant; `leads_to` is then its page. `read_as` has the words
    that were taken for others, `note` what could not be done as asked. `build` and `hardware` are those that the text
    names, empty where it names none. `total` counts hits beyond the limit too.
    """

    asked: str
    sure: bool
    leads_to: str
    read_as: dict[str, str]
    note: str
    build: str
    hardware: str
    total: int
    hits: list[HitBody]


def search_body(answer: SearchAnswer, hits: Sequence[HitView], say: Say) -> SearchBody:
    return SearchBody(
        asked=answer.asked,
        sure=answer.is_sure,
        leads_to=answer.leads_to,
        read_as=dict(answer.read_as),
        note=say(answer.note) if answer.note else "",
        build=answer.build,
        hardware=answer.hardware,
        total=len(answer.hits),
        hits=[HitBody.of(hit) for hit in hits],
    )
