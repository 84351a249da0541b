"""`/upgrade`: which build to move to, for what a team watches. `/upgrade.md`: the note for the pull request.

An environment that is pasted is held by its request alone: it leads to the address of the build that it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.message import Message
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.gate.request import BadField
from knowngood.matrix.overview.selection import Words
from knowngood.move.compare.page import MARKDOWN, notes
from knowngood.move.upgrade.api import Requested, advice_on
from knowngood.move.upgrade.candidates import ENOUGH, LEAST, WEIGHING_WORDS, Candidate
from knowngood.move.upgrade.ranking import RANKING_WORDS, UpgradeAdvice
from knowngood.move.upgrade.renderers import migration_note
from knowngood.move.upgrade.request import (
    NO_PACKAGE,
    UpgradeRequest,
    gpus_of,
    relevant_packages,
    start_name,
    start_of,
    with_uses,
)
from knowngood.move.upgrade.wording import (
    COLUMN_WORDS,
    SECTION_WORDS,
    because,
    candidate_in_detail,
    changes,
    index_of,
    left_out_by_reason,
    measured,
    requirements,
    sections,
    steps,
    verdict,
)
from knowngood.store.knowledge.model import Knowledge
from knowngood.web.forms import Form
from knowngood.web.html.grid import Choice
from knowngood.web.request_context import Context, RequestContext, see_other
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)

UPGRADE = "/upgrade"
NOTE = "/upgrade.md"


def _request_of_page(request: Requested, to: Words = "") -> UpgradeRequest:
    return replace(request, to=to)


RequestedPage = Annotated[UpgradeRequest, Depends(_request_of_page)]


@router.get(UPGRADE)
def upgrade(context: Context, request: RequestedPage, uses: Annotated[str, Query(max_length=2000)] = "") -> Response:
    """`uses` is a line of the form: it leads to the address of what is named in it."""
    if uses.strip():
        knowledge = context.state.knowledge.now().knowledge
        try:
            return see_other(f"{UPGRADE}{with_uses(uses, request, knowledge).asking()}")
        except BadField as error:
            return _page(context, request, knowledge, problem=context.write(error.why), uses=uses)

    def show(knowledge: Knowledge) -> Response:
        try:
            advice = advice_on(request, knowledge, context.state) if request.start.strip() else None
        except BadField as error:
            problem = context.write(error.why) if error.field == "from" else str(error)
            return _page(context, request, knowledge, problem=problem, nearest=error.nearest)
        return _page(context, request, knowledge, advice)

    return context.answer_from_in_turn(lambda snapshot: show(snapshot.knowledge))


@router.post(UPGRADE)
def upgrade_from_environment(context: Context, form: Form) -> Response:
    """Leads to the page of the build that the environment is; nothing of it is kept but, in the address, which of its
    packages some issue concerns.
    """
    knowledge = context.state.knowledge.now().knowledge
    content, python = form.get("environment", ""), form.get("python", "").strip()
    watch, component = (
        tuple(part.strip() for part in form.get(name, "").split(",") if part.strip()) for name in ("watch", "component")
    )
    request = UpgradeRequest(python=python, watch=watch, component=component)
    try:
        resolved = start_of("", content, python, knowledge)
    except BadField as error:
        problem = context.write(Message("no_build_here", why=error.why))
        return _page(context, request, knowledge, problem=problem, environment=content)
    if resolved.build is None:
        problem = context.write(Message("no_build_here", why=resolved.why_none))
        return _page(context, request, knowledge, problem=problem, nearest=resolved.nearest, environment=content)
    packages = relevant_packages(resolved.packages, knowledge)
    has = packages if resolved.is_whole or packages != (NO_PACKAGE,) else ()
    platform = LINUX if resolved.platforms else ""
    start = replace(
        request,
        start=start_name(resolved),
        python="",
        has=has,
        platform=platform,
        hardware=gpus_of(resolved),
        driver=resolved.driver,
    )
    return see_other(f"{UPGRADE}{start.asking()}")


@router.get(NOTE)
def note(context: Context, request: RequestedPage) -> Response:
    def show(knowledge: Knowledge) -> Response:
        advice = advice_on(request, knowledge, context.state)
        candidate = _chosen(advice, request.to)
        name = f"upgrade-{candidate.build.id}.md".replace("+", "-") if candidate else "upgrade.md"
        return Response(_note(context, request, advice, candidate), media_type=MARKDOWN, headers=context.attached(name))

    return context.answer_from_in_turn(lambda snapshot: show(snapshot.knowledge))


def _note(context: RequestContext, request: UpgradeRequest, advice: UpgradeAdvice, candidate: Candidate | None) -> str:
    page = f"{UPGRADE}{request.asking(to=candidate.build.id) if candidate else request.asking()}"
    return migration_note(advice, candidate, base=context.base, page=page, now=context.now)


def _chosen(advice: UpgradeAdvice, named: str) -> Candidate | None:
    """The candidate that is named, else the recommended one: links of yesterday may name what has left."""
    try:
        return advice.chosen(named)
    except UnknownBuild:
        return advice.best


def _page(
    context: RequestContext,
    request: UpgradeRequest,
    knowledge: Knowledge,
    advice: UpgradeAdvice | None = None,
    *,
    problem: str = "",
    nearest: Sequence[str] = (),
    environment: str = "",
    uses: str = "",
) -> Response:
    """There is no advice while no build is named, or where the question has a `problem`; `nearest` may have been meant,
    `environment` was pasted, and `uses` is the line of what one uses.
    """
    builds = sorted(knowledge.known.builds.values(), key=lambda build: build.build_id, reverse=True)
    return context.page(
        "upgrade.html",
        advice,
        HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK,
        query=request,
        knowledge=knowledge,
        builds=builds,
        pythons=sorted(
            {build.python for build in builds}, key=lambda python: [int(part) for part in python.split(".")]
        ),
        problem=problem,
        nearest=[Choice(name, f"{UPGRADE}{request.asking(start=name)}", is_chosen=False) for name in nearest],
        environment=environment,
        uses=uses or ", ".join((*request.component, *request.package, *request.issues)),
        ways=_ways(context, request, knowledge.known, builds) if context.is_file else None,
        ranking=RANKING_WORDS,
        weighing=WEIGHING_WORDS,
        enough=round(ENOUGH * 100),
        least=round(LEAST * 100),
        json_address=f"{API}{UPGRADE}{request.asking(to='')}" if advice else f"{API}/builds",
        **(_values_of(context, request, advice) if advice else {}),
    )


def _ways(
    context: RequestContext, request: UpgradeRequest, known: Known, builds: Sequence[Build]
) -> Mapping[str, Sequence[Choice]]:
    """The other questions that have a page where pages are files: from another build, on another class, about
    one component.
    """

    def choice(label: str, *, is_chosen: bool, **changes: object) -> Choice:
        return Choice(label, f"{UPGRADE}{request.asking(**changes)}", is_chosen)

    components = sorted({issue.component for issue in known.issues.values()}, key=str.casefold)
    return {
        "starts": context.reachable(choice(build.in_words, is_chosen=False, start=build.id) for build in builds),
        "classes": [
            choice(plain_name(class_), is_chosen=class_ in request.hardware, hardware=[class_])
            for class_ in known.hardware
        ],
        "components": [
            choice(context.say("all"), is_chosen=not request.component, component=[]),
            *(
                choice(component, is_chosen=component in request.component, component=[component])
                for component in components
            ),
        ],
    }


def _values_of(context: RequestContext, request: UpgradeRequest, advice: UpgradeAdvice) -> dict[str, Any]:
    """Values that the template cannot read off the advice. `shown` is the candidate in detail (None: none); only
    of one that is `chosen`, recommended or asked for by name, it is said how to go there.
    """
    chosen = _chosen(advice, request.to)
    shown = chosen or candidate_in_detail(advice)
    values: dict[str, Any] = {
        "verdict": context.write(verdict(advice)),
        "because": context.write(because(advice)),
        "measured": measured,
        "columns": COLUMN_WORDS,
        "left_out": left_out_by_reason(advice),
        "chosen": chosen,
        "shown": shown,
    }
    if shown is None:
        return values
    return values | {
        "changes": changes(advice.start, shown.build),
        "requirements": requirements(shown.build, shown.packages),
        "index": index_of(shown.build),
        "sections": sections(shown),
        "headings": SECTION_WORDS,
        "own_reason": own_reason,
        "notes": partial(notes, context),
        "steps": steps(shown),
        "note": _note(context, request, advice, shown) if chosen else "",
        "note_address": f"{NOTE}{request.asking(to=shown.build.id)}",
    }
