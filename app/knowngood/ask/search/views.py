"""Hits in the words that are shown: the same for the page, the API and the command line."""

from collections.abc import Callable
from dataclasses import dataclass

from knowngood.ask.search.service import Hit, HitKind, SearchAnswer
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import telling_class
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell
from knowngood.move.upgrade.candidates import Message

Say = Callable[[Message], str]


@dataclass(frozen=True)
class HitView:
    """`told` says why it is here or what to do; `history`, as the rules say it, where an issue fails (empty: no issue,
    or nothing is measured of it).
    """

    kind: HitKind
    name: str
    title: str
    told: str
    history: str
    url: str
    command: str
    issue: Issue | None
    cell: Cell | None

    @property
    def verdict(self) -> str:
        return self.cell.verdict if self.cell else ""


def views_of(
    answer: SearchAnswer, known: Known, say: Say, title_of: Callable[[Issue], str], limit: int
) -> tuple[HitView, ...]:
    """The first `limit` hits. The `cell` of an issue is on the build and the hardware that the text names."""
    return tuple(_view(hit, answer, known, say, title_of) for hit in answer.hits[:limit])


def _view(hit: Hit, answer: SearchAnswer, known: Known, say: Say, title_of: Callable[[Issue], str]) -> HitView:
    title = title_of(hit.issue) if hit.issue else say(hit.title) if hit.title else hit.name
    return HitView(
        kind=hit.kind,
        name=hit.name,
        title=title,
        told=say(hit.told) if hit.told else "",
        history=_history(hit.issue, known) if hit.issue else "",
        url=hit.address,
        command=hit.command,
        issue=hit.issue,
        cell=_cell(hit.issue, answer, known) if hit.issue and answer.build else None,
    )


def _cell(issue: Issue, answer: SearchAnswer, known: Known) -> Cell | None:
    """Of several hardware classes one on which it fails stands for it."""
    build = known.builds[answer.build]
    classes = [answer.hardware] if answer.hardware else known.hardware
    cells = [known.cell(issue, build, class_) for class_ in classes]
    return min(cells, key=lambda cell: (cell.verdict not in FAILING, cell.verdict not in CONCLUSIVE), default=None)


def _history(issue: Issue, known: Known) -> str:
    measured = tuple(class_ for class_ in known.hardware if known.measured(issue.id, class_))
    if not measured:
        return ""
    class_ = measured[0] if len(measured) == 1 else telling_class(known.stored(issue.id), measured)
    return f"{class_}: {known.told(issue, class_)}."
