"""`/hygiene`: what a keeper of the catalogue should look at, by kind."""

from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import APIRouter, Response

from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.health.coverage.hygiene import HEADINGS, MismatchKind, Remark, remarks_of
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Kind:
    trouble: MismatchKind
    heading: str
    lines: tuple[tuple[Issue, Remark], ...]


@dataclass(frozen=True)
class HygienePage:
    kinds: tuple[Kind, ...]


@router.get("/hygiene")
def hygiene(context: Context) -> Response:
    return context.answer(
        lambda session: remarks_of(context.known(session)),
        lambda found: context.page("hygiene.html", hygiene_page(context, found)),
    )


def hygiene_page(context: RequestContext, found: Iterable[tuple[Issue, Remark]]) -> HygienePage:
    lines = grouped(found, lambda line: line[1].trouble)
    told = (trouble for trouble in MismatchKind if trouble in lines)
    return HygienePage(tuple(Kind(one, context.say(HEADINGS[one]), tuple(lines[one])) for one in told))
