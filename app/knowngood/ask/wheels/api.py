"""`/api/v1/wheels`: whether the public index has a wheel, from the table that comes with this release."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.domain.errors import BadRequest
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.matrix.overview.selection import Words
from knowngood.web.errors import InvalidParameter
from knowngood.web.request_context import Context

router = APIRouter(tags=["wheels"])


class WheelsQuery(BaseModel):
    package: Annotated[Words, Field(description="torch, or a package beside it")] = "torch"
    release: Annotated[Words, Field(description="2.8.0; empty: the newest that has such a wheel")] = ""
    python: Annotated[Words, Field(description="3.14, or 3.14t without the GIL; empty: any")] = ""
    platform: Annotated[Words, Field(description="linux-x86_64, windows-x86_64, macos-arm64, ...; empty: any")] = ""

    @property
    def answer(self) -> WheelAnswer:
        """Raises InvalidParameter for what is no version, Python or platform."""
        try:
            return find_wheel(self.package, self.release, self.python, self.platform, shipped_wheels())
        except BadRequest as error:
            raise InvalidParameter(str(error), "query") from None


@router.get("/wheels", response_model=WheelAnswer)
def wheels(context: Context, query: Annotated[WheelsQuery, Query()]) -> Response:
    """Is there a wheel on the public index, and what to change where there is none? No index is asked."""
    return context.json(query.answer)
