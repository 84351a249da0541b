"""`/my-build`: the reader says once which build and which GPU they have, and pages answer for these first."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from knowngood.domain.access import NotAllowed
from knowngood.domain.builds.build_names import find_build_or_wheel
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.hardware_names import hardware_named
from knowngood.domain.message import quoted
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.environments.service import NoSuchBuild
from knowngood.store.engine import reading
from knowngood.web.auth.principal import is_from_elsewhere
from knowngood.web.forms import Form, own_address
from knowngood.web.my_build import MY_BUILD, MyBuild, read_packages, remember
from knowngood.web.request_context import Context, RequestContext, see_other
from knowngood.web.urls import API

router = APIRouter(include_in_schema=False)


@router.get(MY_BUILD)
def my_build(context: Context, to: Annotated[str, Query(max_length=4000)] = "/") -> Response:
    lead = own_address(to)
    own = context.mine
    sent = {"build": own.build, "hardware": own.hardware, "packages": " ".join(own.packages), "to": lead}
    return context.answer(context.known, lambda known: _page(context, known, sent))


@router.post(MY_BUILD)
def choose(request: Request, context: Context, form: Form) -> Response:
    """Keep what was chosen as cookies and lead back; what is empty is forgotten. No other site may choose for its
    readers.
    """
    if is_from_elsewhere(request):
        raise NotAllowed("this form was sent by a page of another site; open /my-build and choose there")
    lead = own_address(form.get("to", "/"))
    with reading(context.state.engine) as session:
        known = context.known(session)
    try:
        own = _chosen(form, known)
    except NoSuchBuild as error:
        return _page(context, known, form, context.write(error.why), error.nearest, HTTPStatus.UNPROCESSABLE_ENTITY)
    response = see_other(lead)
    remember(response, own.build, own.hardware, " ".join(own.packages))
    return response


def _chosen(form: Mapping[str, str], known: Known) -> MyBuild:
    build, hardware = form.get("build", "").strip(), form.get("hardware", "").strip()
    if hardware and hardware_named(hardware) is None:
        raise NoSuchBuild(
            quoted(f'no hardware is called "{hardware[:60]}"; write a class such as cuda-sm_90, or a name such as H100')
        )
    words = form.get("packages", "").split()
    packages = read_packages(" ".join(words))
    if lost := [word for word in words if word not in packages]:
        raise NoSuchBuild(
            quoted(f'"{lost[0][:60]}" is no package, or beyond the forty that are kept; write xformers==0.0.31.post1')
        )
    return MyBuild(_named(build, known) if build else "", hardware, packages)


def _named(build: str, known: Known) -> str:
    try:
        return find_build_or_wheel(build, known.builds).id
    except UnknownBuild as error:
        raise NoSuchBuild(quoted(error.problem), error.nearest) from None


def _page(
    context: RequestContext,
    known: Known,
    sent: Mapping[str, str],
    problem: str = "",
    nearest: tuple[str, ...] = (),
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """`problem` is why what was sent names no build here (empty: it does); `nearest` may have been meant."""
    return context.page(
        "my_build.html",
        sent,
        status,
        builds=[build.id for build in reversed(shown_builds(known))],
        classes=known.hardware,
        problem=problem,
        nearest=nearest,
        json_address=f"{API}/builds",
    )
