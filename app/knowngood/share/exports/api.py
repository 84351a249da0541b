"""`/api/v1/export/{format}`: a part of the matrix, or its evidence, as a file in the words of other tools."""

from collections.abc import Iterator
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import Annotated, BinaryIO, cast

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from knowngood.domain.verdicts.matrix import Columns, stale_cells
from knowngood.matrix.overview.selection import MatrixQuery, Names, Selection, known_classes, select
from knowngood.share.bundles.store import export_bundle
from knowngood.share.exports.extract import Extract, Links
from knowngood.share.exports.formats import FORMATS, WRITERS, Format
from knowngood.store.engine import Session
from knowngood.store.queries import load_hardware
from knowngood.store.records import ExportSelection as Evidence
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import attempt_address, cell_address, issue_address

router = APIRouter(tags=["export"])

_IN_MEMORY_BYTES = 8_000_000
_PIECE_BYTES = 256 * 1024

_FILE = {"type": "string", "format": "binary"}
_MEDIA = {
    media: {"schema": {"type": "object"} if media == "application/json" else _FILE}
    for media in (form.media.partition(";")[0] for form in FORMATS.values())
}


class ExportQuery(MatrixQuery, extra="forbid"):
    """The parameters of the matrix. A bundle has the evidence of the same issues, builds and classes."""

    hardware: Annotated[
        Names, Field(description="Hardware classes, or names of GPUs such as H100; none means every measured one")
    ]
    columns: Annotated[Columns, Field(description="Which builds, where none are named")] = Columns.ALL


@router.get(
    "/export/{format}",
    description="\n".join(f"`{form}`: {info.contents}." for form, info in FORMATS.items()),
    response_class=Response,
    responses={200: {"description": "The file; its media type goes with the format", "content": _MEDIA}},
)
def export(
    context: Context, form: Annotated[Format, Path(alias="format")], query: Annotated[ExportQuery, Query()]
) -> Response:
    """Answer with the file in one of the `FORMATS`."""

    def load(session: Session) -> Response | Selection:
        classes = known_classes(query.hardware, load_hardware(session))
        folded = FORMATS[form].folded
        selection = select(
            session, query, classes, query.columns, cache=context.state.knowledge, now=context.now, folded=folded
        )
        return _bundle(context, session, query, selection) if form is Format.BUNDLE else selection

    def show(result: Response | Selection) -> Response:
        if isinstance(result, Response):
            return result
        pieces = WRITERS[form](extract_of(result, context.now, context.base))
        headers = context.attached(_file_name(context, form))
        return StreamingResponse(pieces, media_type=FORMATS[form].media, headers=headers)

    return context.answer(load, show)


def _bundle(context: RequestContext, session: Session, query: ExportQuery, selection: Selection) -> Response:
    """Written to its end before the first byte goes out: one reading of the store, and no half of a bundle."""
    evidence = Evidence(
        issues=frozenset(issue.id for issue in selection.issues),
        builds=frozenset(build.id for column in selection.columns for build in column.builds),
        hardware=frozenset(selection.classes) if query.hardware else None,
        only_counted=True,
    )
    file = cast("BinaryIO", SpooledTemporaryFile(_IN_MEMORY_BYTES))  # noqa: SIM115 - closed by whoever reads it out
    try:
        export_bundle(session, file, now=context.now, origin="knowngood", selection=evidence)
    except BaseException:
        file.close()
        raise
    # It is packed already. Without this word the middleware would pack it again.
    headers = {**context.attached(_file_name(context, Format.BUNDLE)), "Content-Encoding": "identity"}
    headers["Content-Length"] = str(file.tell())
    file.seek(0)
    return StreamingResponse(_read_out(file), media_type=FORMATS[Format.BUNDLE].media, headers=headers)


def _read_out(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _file_name(context: RequestContext, form: Format) -> str:
    return f"knowngood-{context.now:%Y-%m-%d}.{FORMATS[form].ending}"


# The extract that exports are made of: a selection with the addresses of this server.


def links_at(base: str) -> Links:
    """Addresses on the server at `base`."""
    return Links(
        issue=lambda issue: base + issue_address(issue),
        cell=lambda issue, build, hardware: base + cell_address(issue, build, hardware),
        attempt=lambda attempt: base + attempt_address(attempt),
    )


def extract_of(selection: Selection, now: datetime, base: str) -> Extract:
    """Every cell of the selection, by hardware class, issue and build, and all builds of the catalogue."""
    known = selection.known
    cells = tuple(
        cell for class_ in selection.classes for issue in selection.issues for cell in selection.rows[issue.id, class_]
    )
    return Extract(
        selection.issues, known, cells, stale_cells(cells, known.builds, now), now, links_at(base), selection.columns
    )
