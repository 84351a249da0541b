"""`/docs` and `/docs/{name}`: the documents of the project, as this release has them."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from fastapi import APIRouter, Response

from knowngood.app.features.docs.library import (
    FOLDER,
    MEDIA,
    Document,
    Heading,
    Rendered,
    Shelf,
    files,
    library,
    render,
    shelves,
)
from knowngood.app.web.errors import NotHere, nearest
from knowngood.app.web.request_context import Visiting
from knowngood.app.web.urls import API

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class DocsPage:
    shelves: tuple[Shelf, ...]
    json_address: str


@dataclass(frozen=True)
class DocPage:
    document: Document
    text: Rendered
    headings: tuple[Heading, ...]
    source_address: str
    json_address: str


@router.get(FOLDER)
def docs(visit: Visiting) -> Response:
    return visit.page("docs.html", DocsPage(shelves(), f"{API}{FOLDER}"))


@router.get(f"{FOLDER}/{{name:path}}")
def doc(visit: Visiting, name: str) -> Response:
    """A document, its Markdown (`api.md`), or a file that documents link to."""
    if name in files():
        path = files()[name]
        return visit.text(path.read_bytes(), MEDIA.get(path.suffix, "text/plain; charset=utf-8"), path.name)
    if name.endswith(".md") and name.removesuffix(".md") in library():
        document = library()[name.removesuffix(".md")]
        return visit.text(document.text, "text/markdown; charset=utf-8", name)
    document = find_document(name)
    text = render(document)
    page = DocPage(document, text, text.headings, f"{document.address}.md", f"{API}{document.address}")
    return visit.page("doc.html", page)


def find_document(name: str) -> Document:
    if name not in library():
        near = nearest(PurePosixPath(name).stem.lower(), library())
        offered = [(library()[one].title, library()[one].address) for one in near]
        raise NotHere(f'no document is called "{name}" here', offered or [("all documents", FOLDER)])
    return library()[name]
