"""`/environment`: what fails in the reader's environment, and what to do first.

What is pasted is held by its request alone. The address of an answer names versions: torch, Python, the GPU, the
driver, the platform, and the packages that issues or wheels are about.
"""

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from knowngood.ask.lookup.api import EnvironmentQuery
from knowngood.ask.lookup.service import EnvironmentAnswer, answer_environment, help_of
from knowngood.ask.lookup.several import upgrade_request
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.builds.platforms import LINUX, platform_words
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_names import several_gpus
from knowngood.domain.message import Message
from knowngood.gate.renderers.common import best_workaround, code_of
from knowngood.gate.request import AttachedFile, BadField, GateRequest
from knowngood.move.upgrade.page import UPGRADE
from knowngood.store.knowledge.model import Knowledge
from knowngood.web.forms import Form
from knowngood.web.request_context import Context, RequestContext, uncached
from knowngood.web.urls import API, ENVIRONMENT

router = APIRouter(include_in_schema=False)

_SHOWN = 6
_LONGEST_ECHO = 200_000  # characters that are sent back in the box


@router.get(ENVIRONMENT)
def environment(context: Context, query: Annotated[EnvironmentQuery, Query()]) -> Response:
    """Without a build in the address, the environment that the reader chose (`/my-build`), if they did."""
    asked = query if query.build else _own(context)
    return context.answer_from(lambda snapshot: _page(context, asked, snapshot.knowledge))


@router.post(ENVIRONMENT)
def pasted_environment(context: Context, form: Form) -> Response:
    query, knowledge = EnvironmentQuery(hardware=[], has=[]), context.state.knowledge.now().knowledge
    return uncached(_page(context, query, knowledge, form.get("q", ""), form.get("groups", "")))


def _page(
    context: RequestContext, query: EnvironmentQuery, knowledge: Knowledge, text: str = "", groups: str = ""
) -> Response:
    """Of a `text` that was pasted, with the extras and `groups` that are installed, else of what an address names.
    `problem` says what cannot be understood.
    """
    answer, problem, nearest = None, "", tuple[str, ...]()
    try:
        if text.strip():
            named = tuple(group.strip() for group in groups.split(",") if group.strip())
            request = GateRequest(environment=AttachedFile(text.replace("\r\n", "\n")), groups=named)
            answer = answer_environment(request, knowledge, context.now)
        elif query.build:
            answer = query.answer(knowledge, context.now)
    except BadField as error:
        problem, nearest = context.write(error.why), error.nearest
    return context.page(
        "environment.html",
        answer,
        HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK,
        query=query,
        text=text[:_LONGEST_ECHO],
        groups=groups,
        problem=problem,
        nearest=nearest,
        **(_values_of(query, answer, knowledge) if answer else {"json_address": f"{API}/builds"}),
    )


def _values_of(query: EnvironmentQuery, answer: EnvironmentAnswer, knowledge: Knowledge) -> dict[str, Any]:
    """Values that the template cannot read off the answer. `address` holds versions alone; it is empty where these do
    not say which environment it is, or not all that is wrong with it.
    """
    resolved = answer.resolved
    request = upgrade_request(answer, knowledge, query.hardware)
    stated = {name: getattr(request, name) for name in ("python", "platform", "hardware", "driver", "has")}
    lost = {fact.name.partition(" ")[0] for fact in answer.facts if fact.holds is False} & {*resolved.packages}
    is_whole = len(resolved.platforms) <= 1 and lost <= {has.partition("==")[0] for has in request.has}
    none = Message("no_build_here", why=resolved.why_none)
    runs = not any(refusal.hardware for refusal in answer.ruling.refusals)
    asked = urlencode({name: value for name, value in {"build": resolved.torch, **stated}.items() if value}, doseq=True)
    return {
        "link": EnvironmentQuery(build=resolved.torch, **stated),
        "address": f"{ENVIRONMENT}?{asked}" if resolved.torch and is_whole else "",
        "upgrade": f"{UPGRADE}{request.asking()}" if request.start else "",
        "json_address": f"{API}{ENVIRONMENT}?{asked}",
        "platform": platform_words(request.platform or LINUX),
        "wheel": knowledge.known.builds.get(resolved.build or ""),
        "issues": knowledge.known.issues,
        "builds": knowledge.known.builds,
        "classes": list(map(plain_name, answer.ruling.hardware)),
        "help_of": help_of,
        "best_of": lambda reason: best_workaround(reason) or reason.elsewhere,
        "code_of": lambda workaround: "\n".join(code_of(workaround.snippet)) or workaround.title,
        "runs": runs,
        "notes": (*(resolved.notes if resolved.build else [none]), *several_gpus(resolved.gpus)),
        "first": answer.failing[:_SHOWN] if runs else (),
        "rest": grouped(answer.failing[_SHOWN:] if runs else (), lambda reason: reason.component),
    }


def own_environment(context: RequestContext, knowledge: Knowledge) -> tuple[str, Mapping[str, int]] | None:
    """The address of the environment that the reader chose, with what fails there; None where they chose none that is
    tested.
    """
    query = _own(context)
    with suppress(BadField):
        answer = query.answer(knowledge, context.now) if query.build else None
        if answer and answer.resolved.build:
            return f"{ENVIRONMENT}?{urlencode(query.model_dump(exclude_defaults=True), doseq=True)}", answer.counts
    return None


def _own(context: RequestContext) -> EnvironmentQuery:
    mine = context.mine
    return EnvironmentQuery(build=mine.build, hardware=[mine.hardware] if mine.hardware else [], has=[*mine.packages])
