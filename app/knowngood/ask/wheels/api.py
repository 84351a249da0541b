"""`/api/v1/wheels`: whether the public index has a wheel, from the table that comes with this release.

`/api/v1/facts`: all that such answers rest on.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from knowngood.ask.wheels.facts import Facts, facts_of
from knowngood.ask.wheels.machine import on_machine, read_machine
from knowngood.domain.errors import BadRequest
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel
from knowngood.environments.wheels.table import shipped_claims, shipped_wheels
from knowngood.matrix.overview.selection import Words
from knowngood.web.errors import InvalidParameter
from knowngood.web.request_context import Context, RequestContext

router = APIRouter(tags=["wheels"])


class WheelsQuery(BaseModel):
    package: Annotated[Words, Field(description="torch, or a package beside it")] = "torch"
    release: Annotated[Words, Field(description="2.8.0; empty: the newest that has such a wheel")] = ""
    python: Annotated[Words, Field(description="3.14, or 3.14t without the GIL; empty: any")] = ""
    platform: Annotated[Words, Field(description="linux-x86_64, windows-x86_64, macos-arm64, ...; empty: any")] = ""

    hardware: Annotated[Words, Field(description="The GPU that it must have code for: H100, RTX 5090, sm_90")] = ""
    driver: Annotated[Words, Field(description="NVIDIA's driver that it must run on: 550.54.15")] = ""
    cuda: Annotated[Words, Field(description="The CUDA that it must be built for: 12.8")] = ""

    def answer(self, context: RequestContext) -> WheelAnswer:
        """Raises InvalidParameter for what is no version, Python, platform or GPU. Only for a GPU the store is read."""
        try:
            machine, table = read_machine(self.hardware, self.driver, self.cuda), shipped_wheels()
            known = context.state.knowledge.now().knowledge.known if machine.gpu else None
            found = find_wheel(self.package, self.release, self.python, self.platform, table)
            return on_machine(found, machine, known, table, shipped_claims(), is_named=bool(self.release))
        except BadRequest as error:
            raise InvalidParameter(str(error), "query") from None


@router.get("/wheels", response_model=WheelAnswer)
def wheels(context: Context, query: Annotated[WheelsQuery, Query()]) -> Response:
    """Is there a wheel on the public index, does it run on that GPU and driver, and what to change if not? No index is
    asked.
    """
    return context.json(query.answer(context))


@router.get("/facts", response_model=Facts)
def facts(context: Context) -> Response:
    """The facts of wheels that answers here rest on, as one document: what the public index lists, what was read in
    installed wheels, GPUs and drivers by name, and claims with their sources.
    """
    return context.answer(lambda session: facts_of(context.known(session)), context.json)
