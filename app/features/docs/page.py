"""`/docs` and `/docs/{name}`: the documents of the project, as this release has them."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from fastapi import APIRouter, Response

from knowngood.app.features.docs.library import (
    FOLDER,
    MEDIA,
    Document,
    DocumentGroup,
    Heading,
    Rendered,
    files,
    library,
    render,
    shelves,
)
from knowngood.app.web.errors import NotFound, nearest
from knowngood.app.web.request_context import Context
from knowngood.app.web.urls import API

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class DocsPage:
    shelves: tuple[DocumentGroup, ...]
    json_address: str


@dataclass(frozen=True)
class DocPage:
    document: Document
    text: Rendered
    headings: tuple[Heading, ...]
    source_address: str
    json_address: str


@router.get(FOLDER)
def docs(context: Context) -> Response:
    return context.page("docs.html", DocsPage(shelves(), f"{API}{FOLDER}"))


@router.get(f"{FOLDER}/{{name:path}}")
def doc(context: Context, name: str) -> Response:
    """A document, its Markdown (`api.md`), or a file that documents link to."""
    if name in files():
        path = files()[name]
        return context.text(path.read_bytes(), MEDIA.get(path.suffix, "text/plain; charset=utf-8"), path.name)
    if name.endswith(".md") and name.removesuffix(".md") in library():
        document = library()[name.removesuffix(".md")]
        return context.text(document.text, "text/markdown; charset=utf-8", name)
    document = find_document(name)
    text = render(document)
    page = DocPage(document, text, text.headings, f"{document.address}.md", f"{API}{document.address}")
    return context.page("doc.html", page)


def find_document(name: str) -> Document:
    if name not in library():
        near = nearest(PurePosixPath(name).stem.lower(), library())
        offered = [(library()[one].title, library()[one].address) for one in near]
        raise NotFound(f'no document is called "{name}" here', offered or [("all documents", FOLDER)])
    return library()[name]
