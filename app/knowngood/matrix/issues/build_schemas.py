"""A build as JSON."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator

from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.verdict import Cell
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_body
from knowngood.web.json_body import Body, fields_of, read_from
from knowngood.web.urls import build_address


@fields_of(Build, without={"companions"})
class BuildBody(Body):
    """`torch` is the version as imported, `requirement` as asked of the index.

    `mismatched` says that Triton is not that torch's own pin; `git` is torch's revision, empty where nobody knows it.
    """

    mismatched: bool = read_from("is_mismatched")
    url: Annotated[str, AfterValidator(build_address)] = read_from("id")


class BuildsBody(Body):
    """`next` stands only where the list is in parts: the address of the builds after these (null: there are none)."""

    builds: list[BuildBody]
    next: str | None = None


class ArchitecturesBody(Body):
    """`names` as the compiler has them: `sm_90`, and `compute_90` for code that the driver compiles."""

    names: list[str] = read_from("architectures")
    read_at: datetime


class BuildDetailBody(BuildBody):
    """`cells` are all issues on one hardware class, not_run ones too. `architectures` are those that this very wheel
    holds code for, as they were read in it (null: nobody read them).
    """

    architectures: ArchitecturesBody | None
    cells: list[CellBody]


def build_detail(build: Build, cells: Iterable[Cell], wheel: WheelCode | None, now: datetime) -> BuildDetailBody:
    return BuildDetailBody(
        **vars(BuildBody.of(build)),
        architectures=ArchitecturesBody.of(wheel) if wheel else None,
        cells=[cell_body(cell, build, now) for cell in cells],
    )
