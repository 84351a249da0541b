"""The answer to a search, as JSON."""

from collections.abc import Callable

from pydantic import Field

from knowngood.ask.search.notation import HitKind
from knowngood.ask.search.service import Hit, SearchAnswer
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import telling_class
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell
from knowngood.move.upgrade.candidates import Message
from knowngood.web.json_body import Body

Say = Callable[[Message], str]
TitleOf = Callable[[Issue], str]


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


def search_body(answer: SearchAnswer, known: Known, say: Say, title_of: TitleOf, limit: int) -> SearchBody:
    """The first `limit` hits of the answer, in the words that are shown."""
    return SearchBody(
        asked=answer.asked,
        sure=answer.is_sure,
        leads_to=answer.leads_to,
        read_as=dict(answer.read_as),
        note=say(answer.note) if answer.note else "",
        build=answer.build,
        hardware=answer.hardware,
        total=len(answer.hits),
        hits=[hit_body(hit, cell_of(hit, answer, known), known, say, title_of) for hit in answer.hits[:limit]],
    )


def hit_body(hit: Hit, cell: Cell | None, known: Known, say: Say, title_of: TitleOf) -> HitBody:
    """`cell` is that of an issue on the build and the hardware that the text names."""
    return HitBody(
        kind=hit.kind,
        name=hit.name,
        title=title_of(hit.issue) if hit.issue else say(hit.title) if hit.title else hit.name,
        told=say(hit.told) if hit.told else "",
        history=_history(hit.issue, known) if hit.issue else "",
        url=hit.address,
        command=hit.command,
        verdict=cell.verdict if cell else "",
    )


def cell_of(hit: Hit, answer: SearchAnswer, known: Known) -> Cell | None:
    """Of several hardware classes one on which it fails stands for it."""
    if hit.issue is None or not answer.build:
        return None
    classes = [answer.hardware] if answer.hardware else known.hardware
    cells = [known.cell(hit.issue, known.builds[answer.build], class_) for class_ in classes]
    return min(cells, key=lambda cell: (cell.verdict not in FAILING, cell.verdict not in CONCLUSIVE), default=None)


def _history(issue: Issue, known: Known) -> str:
    measured = tuple(class_ for class_ in known.hardware if known.measured(issue.id, class_))
    if not measured:
        return ""
    class_ = measured[0] if len(measured) == 1 else telling_class(known.stored(issue.id), measured)
    return f"{class_}: {known.told(issue, class_)}."
