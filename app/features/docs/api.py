"""`/api/v1/docs`: the documents as Markdown, for programs that read on a person's behalf."""

from fastapi import APIRouter, Response

from knowngood.app.features.docs.library import library
from knowngood.app.features.docs.page import find_document
from knowngood.app.web.json_body import Body, read_from
from knowngood.app.web.request_context import Context

router = APIRouter(tags=["docs"])


class DocumentLine(Body):
    """`lead` is the first paragraph as plain text."""

    name: str
    title: str
    lead: str
    url: str = read_from("address")


class DocumentsBody(Body):
    documents: list[DocumentLine]


class DocumentBody(DocumentLine):
    markdown: str = read_from("text")


@router.get("/docs", response_model=DocumentsBody)
def documents(context: Context) -> Response:
    """The documents of this release, without their text."""
    return context.json(DocumentsBody(documents=[DocumentLine.of(one) for one in library().values()]))


@router.get("/docs/{name}", response_model=DocumentBody)
def document(context: Context, name: str) -> Response:
    """One document, as Markdown. Relative links in it are those of the repository."""
    return context.json(DocumentBody.of(find_document(name)))
