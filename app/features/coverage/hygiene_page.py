"""`/hygiene`: what a keeper of the catalogue should look at, by kind."""

from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.app.features.coverage.hygiene import HEADINGS, Trouble, remarks_of
from knowngood.app.web.request_context import Context
from knowngood.app.web.urls import API, issue_address

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class RemarkLine:
    issue: str
    title: str
    address: str
    hardware: str
    sentence: str


@dataclass(frozen=True)
class Kind:
    trouble: Trouble
    heading: str
    lines: tuple[RemarkLine, ...]


@dataclass(frozen=True)
class HygienePage:
    kinds: tuple[Kind, ...]
    json_address: str

    @property
    def count(self) -> int:
        return sum(len(kind.lines) for kind in self.kinds)


@router.get("/hygiene")
def hygiene(context: Context) -> Response:
    with context.reading() as session:
        found = remarks_of(context.known(session))
    lines: dict[Trouble, list[RemarkLine]] = {trouble: [] for trouble in Trouble}
    for issue, remark in found:
        address = issue_address(issue.id, hardware=remark.hardware)
        title = context.in_language(issue.title, issue.title_zh)
        lines[remark.trouble].append(RemarkLine(issue.id, title, address, remark.hardware, remark.sentence))
    kinds = tuple(Kind(trouble, context.say(HEADINGS[trouble]), tuple(of)) for trouble, of in lines.items() if of)
    return context.page("hygiene.html", HygienePage(kinds, f"{API}/hygiene"))
