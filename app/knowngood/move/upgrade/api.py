"""`/api/v1/upgrade`: which build to move to, as JSON. The page takes the same parameters, checked in one place, and has
the same answer.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BeforeValidator, Field, WithJsonSchema

from knowngood.matrix.overview.selection import Names, Words, none_where_empty
from knowngood.move.schemas import UpgradeBody, upgrade_body
from knowngood.move.upgrade.candidates import LEAST
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, read_upgrade
from knowngood.store.engine import Session, reading
from knowngood.store.jobs.durations import load_environment_s
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.queries import load_durations
from knowngood.web.app_state import AppState
from knowngood.web.request_context import Context

_LEAST = round(LEAST * 100)


def _several(description: str) -> Any:  # noqa: ANN401 - what a parameter is declared with
    return Query(default_factory=list, description=description)


def _request(
    *,
    start: Annotated[
        Words, Query(alias="from", description="The build one is on: its id, or the version of torch")
    ] = "",
    watch: Annotated[Names, _several("Names of watch lists; where nothing is named, every issue is watched")],
    issues: Annotated[Names, _several("Issue ids, or the addresses of their reports; `all` for all of them")],
    component: Annotated[Names, _several("Every issue of these components")],
    package: Annotated[Names, _several("Every issue that needs these packages")],
    severity: Annotated[Words, Query(description="Every issue of this severity or a higher one")] = "",
    python: Annotated[
        Words, Query(description="The Python it must be for, such as 3.12; that of `from` unless said")
    ] = "",
    platform: Annotated[
        Words, Query(description="Where it runs: linux-x86_64 unless said, and the answer says so")
    ] = "",
    cuda: Annotated[Words, Query(description="The CUDA it must be built for: 12.8, or a specifier like <13")] = "",
    driver: Annotated[Words, Query(description="The NVIDIA driver it must run on, such as 550.54.15")] = "",
    hardware: Annotated[Names, _several("Hardware classes that count; every measured one unless said")],
    pin: Annotated[Names, _several("Pins of torch, triton, python or cuda, such as triton==3.4.0")],
    has: Annotated[
        Names,
        _several(
            "Packages that the environment has, such as torchao or torchvision==0.22.1: issues of a package count "
            "only for who has it. `none` where it has none of them; left out, only those named by `issues` or "
            "`package` count"
        ),
    ],
    enough: Annotated[
        Annotated[int, Field(ge=_LEAST, le=100)] | None,
        BeforeValidator(none_where_empty),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": _LEAST, "maximum": 100}, {"const": ""}]}),
        Query(
            description="Of what does not fail there, the percentage that must be known to pass before a build is "
            "recommended; 80 unless said",
        ),
    ] = None,
) -> UpgradeRequest:
    """From which build, for what is watched, under which constraints. What is left out constrains nothing."""
    return UpgradeRequest(
        start=start,
        watch=tuple(watch),
        issues=tuple(issues),
        component=tuple(component),
        package=tuple(package),
        severity=severity,
        python=python,
        platform=platform,
        cuda=cuda,
        driver=driver,
        hardware=tuple(hardware),
        pin=tuple(pin),
        has=tuple(has),
        enough=enough,
    )


Requested = Annotated[UpgradeRequest, Depends(_request)]


def times_of(state: AppState) -> Recorded:
    if state.site is not None:
        return state.site.recorded
    with reading(state.engine) as session:
        return load_times(session)


def load_times(session: Session) -> Recorded:
    return Recorded(load_durations(session), load_environment_s(session))


def advice_on(request: UpgradeRequest, knowledge: Knowledge, state: AppState) -> UpgradeAdvice:
    """Raises BadField."""
    return advise(read_upgrade(request, knowledge, times_of(state)), knowledge.known)


router = APIRouter(tags=["upgrade"])


@router.get("/upgrade", response_model=UpgradeBody)
def upgrade(context: Context, request: Requested) -> Response:
    """Newer builds ranked for what is watched, under constraints: what each fixes, breaks and leaves open, and why."""
    return context.answer_from_in_turn(
        lambda snapshot: context.json(upgrade_body(advice_on(request, snapshot.knowledge, context.state)))
    )
