"""`/api/v1/results`: evidence from workers elsewhere, as the bundle that `knowngood run` writes there.

`/api/v1/changes`: verdicts that became other ones, newest first; `/feeds/` has the same as feeds.
`/api/v1/export/{format}`: a part of the matrix, or its evidence, as a file in the words of other tools.
"""

from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import Annotated, Any, BinaryIO, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BeforeValidator, Field
from starlette.responses import StreamingResponse

from knowngood.domain.access import Actor, Scope
from knowngood.domain.errors import StoreUnusable
from knowngood.domain.message import english
from knowngood.domain.verdicts.changes import CellTurn, Change
from knowngood.domain.verdicts.matrix import Columns, stale_cells
from knowngood.matrix.overview.selection import MatrixQuery, Names, Selection, known_classes, select
from knowngood.serialization.message_field import MessageField
from knowngood.share.atom import summary as in_summary
from knowngood.share.exports.extract import Extract, links_at
from knowngood.share.exports.formats import FORMATS, WRITERS, Format
from knowngood.share.service import ChangesQuery, load_changes
from knowngood.share.store import export_bundle, take_in_bundle
from knowngood.store.engine import Session
from knowngood.store.queries import load_hardware
from knowngood.store.records import ExportSelection as Evidence
from knowngood.store.records import ImportReport
from knowngood.web.app_state import state_of
from knowngood.web.auth.principal import RequireScope
from knowngood.web.errors import InvalidParameter
from knowngood.web.json_body import Body, CellUrl, OfCellBody, fields_of, read_from
from knowngood.web.request_context import Context, RequestContext
from knowngood.web.urls import run_address

router = APIRouter()

_BUNDLE = {"schema": {"type": "string", "format": "binary"}}
_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A result bundle (JSON Lines), gzipped or not",
        "content": {"application/gzip": _BUNDLE, "application/octet-stream": _BUNDLE, "application/x-ndjson": _BUNDLE},
    }
}

_needs = RequireScope(Scope.SUBMIT)


async def _submitter(request: Request) -> Actor:
    """The sender, counted against how many bundles their token may send; all before the body is read."""
    actor = await _needs(request)
    state_of(request.app).results_buckets.take(actor.token)
    return actor


Submitter = Annotated[Actor, Depends(_submitter)]


@fields_of(ImportReport, without={"changed", "replaced", "refused", "notes"})
class TakenBody(Body):
    """`added` attempts are new here, `known` were here before. Of the added, `unknown` belong to issues or builds that
    this catalogue does not have, `superseded` to another state of their repro; `voided` are of a worker and a time
    whose results do not count; `replaced` took the place of others under their number, which were voided. Of `refused`
    another attempt stands here under the number (`clashes` are the first of these numbers): who runs this server can
    void it, and then the bundle may come again. `changed` cells read differently now.
    """

    changed: Annotated[int, BeforeValidator(len)]
    replaced: int = 0
    refused: Annotated[int, BeforeValidator(len)] = 0
    clashes: Annotated[
        list[str],
        BeforeValidator(lambda refused: [clash.id for clash in refused[:20]]),
        Field(validation_alias="refused", default_factory=list),
    ]


async def _received(request: Request) -> AsyncGenerator[Path]:
    """The body in a file, written as it comes: memory does not grow with it. `Bodies` ends one that is too long."""
    try:
        with TemporaryFile() as file:  # without a name: it goes with this process, however that ends
            async for chunk in request.stream():
                file.write(chunk)
            file.flush()
            yield Path(f"/proc/self/fd/{file.fileno()}")
    except OSError as error:  # also as it is closed, which writes what was not written
        raise StoreUnusable(f"there is no room for a bundle that comes in: {error.strerror or error}") from error


@router.post("/results", tags=["results"], response_model=TakenBody, openapi_extra=_TAKES, operation_id="post_results")
def submit(context: Context, submitter: Submitter, bundle: Annotated[Path, Depends(_received)]) -> Response:
    """Take in a bundle: one of up to 8 MiB (unpacked) whole or not at all, a larger one in steps, once all of it was
    found to be right; where that is broken off it goes on when it is sent again, and once more changes nothing. Its
    origin is the name of your token.
    """
    if bundle.stat().st_size == 0:
        raise InvalidParameter("the body is empty; send a bundle, such as `--data-binary @results.jsonl.gz`")
    report = take_in_bundle(context.state.engine, bundle, context.now, by=submitter, vouched=True)
    return context.json(TakenBody.of(report))


@fields_of(CellTurn)
class CellTurnBody(OfCellBody):
    """One cell before and after. `workarounds` are those whose verdict is another one, by id.

    `first` says that nobody had ever measured it. `earlier` is the last verdict of a cell whose repro has become
    another one since, so that it was not run.
    """

    first: bool = read_from("is_first")
    reason: MessageField
    url: CellUrl = read_from("key")


@fields_of(Change, without={"turns"})
class ChangeBody(Body):
    """The changes by one cause. `run` and `run_url` where the cause is a run, `origin` where it is an import, `builds`
    where the package index was asked: it has no cells then.
    """

    run_url: Annotated[str | None, BeforeValidator(lambda run: run_address(run) if run else None)] = read_from("run")
    issues: list[str]
    summary: Annotated[str, BeforeValidator(lambda news: english(in_summary(news)))] = read_from("news")
    cells: list[CellTurnBody] = read_from("turns")


class ChangesBody(Body):
    """Newest first."""

    changes: list[ChangeBody]


@router.get("/changes", tags=["changes"], response_model=ChangesBody)
def changes(context: Context, query: Annotated[ChangesQuery, Query()]) -> Response:
    """One entry per cause (a run, an import, an edit of the catalogue), with each cell before and after it.

    First measurements are no changes: `first=true` adds them, marked as such.
    """
    return context.answer(lambda session: load_changes(session, query), lambda news: context.json(ChangesBody.of(news)))


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
    tags=["export"],
    description="\n".join(f"`{form}`: {info.contents}." for form, info in FORMATS.items()),
    response_class=Response,
    responses={200: {"description": "The file; its media type goes with the format", "content": _MEDIA}},
)
def export(
    context: Context, form: Annotated[Format, InPath(alias="format")], query: Annotated[ExportQuery, Query()]
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


def extract_of(selection: Selection, now: datetime, base: str) -> Extract:
    """Every cell of the selection, by hardware class, issue and build, and all builds of the catalogue."""
    known = selection.known
    cells = tuple(
        cell for class_ in selection.classes for issue in selection.issues for cell in selection.rows[issue.id, class_]
    )
    return Extract(
        selection.issues, known, cells, stale_cells(cells, known.builds, now), now, links_at(base), selection.columns
    )
