"""`/wheels`: four choices, and whether the public index has such a wheel."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from knowngood.ask.wheels.api import WheelsQuery
from knowngood.domain.builds.platforms import PLATFORMS, platform_words
from knowngood.environments.wheels.answer import pythons_in_words
from knowngood.environments.wheels.table import PYTHONS, shipped_claims, shipped_wheels
from knowngood.web.request_context import Context
from knowngood.web.urls import API, asking

router = APIRouter(include_in_schema=False)


@router.get("/wheels")
def wheels(context: Context, query: Annotated[WheelsQuery, Query()]) -> Response:
    answer, table = query.answer(context), shipped_wheels()
    releases = table.packages.get(answer.package, ())
    return context.page(
        "wheels.html",
        answer,
        query=query,
        packages=list(dict.fromkeys([*table.packages, *(claim.package for claim in shipped_claims())])),
        releases=[str(each.version) for each in reversed(releases) if not each.version.is_prerelease],
        known_pythons=PYTHONS,
        platforms=[(platform, platform_words(platform)) for platform in PLATFORMS],
        pythons_in_words=pythons_in_words,
        json_address=asking(f"{API}/wheels", **query.model_dump(exclude_defaults=True)),
    )
