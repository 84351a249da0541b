"""`/api/v1/docs`: the documents as Markdown, for programs that read on a person's behalf."""

from fastapi import APIRouter, Response
from pydantic import BaseModel

from knowngood.app.features.docs.library import Document, library
from knowngood.app.features.docs.page import find_document
from knowngood.app.web.request_context import Context

router = APIRouter()


class DocumentLine(BaseModel):
    """`lead` is the first paragraph as plain text."""

    name: str
    title: str
    lead: str
    url: str


class DocumentsBody(BaseModel):
    documents: list[DocumentLine]


class DocumentBody(DocumentLine):
    markdown: str


@router.get("/docs", response_model=DocumentsBody)
def documents(context: Context) -> Response:
    """The documents of this release, without their text."""
    return context.json(DocumentsBody(documents=[_line(one) for one in library().values()]))


@router.get("/docs/{name}", response_model=DocumentBody)
def document(context: Context, name: str) -> Response:
    """One document, as Markdown. Relative links in it are those of the repository."""
    found = find_document(name)
    return context.json(DocumentBody(**_line(found).model_dump(), markdown=found.text))


def _line(document: Document) -> DocumentLine:
    return DocumentLine(name=document.name, title=document.title, lead=document.lead, url=document.address)
