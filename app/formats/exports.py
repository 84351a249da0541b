"""The forms in which a part of the matrix leaves: by name, with media type and ending."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.formats.extract import Extract
from app.formats.junit_matrix import junit_matrix
from app.formats.kcidb import kcidb_document
from app.formats.matrix_markdown import matrix_markdown
from app.formats.osv import osv_document
from app.formats.table import table


class Format(StrEnum):
    """`bundle` is the evidence itself, which another installation imports; the others tell what follows from it."""

    OSV = "osv"
    KCIDB = "kcidb"
    CSV = "csv"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    BUNDLE = "bundle"


@dataclass(frozen=True)
class Form:
    media: str
    ending: str


FORMS = {
    Format.OSV: Form("application/json", "osv.json"),
    Format.KCIDB: Form("application/json", "kcidb.json"),
    Format.CSV: Form("text/csv; charset=utf-8; header=present", "csv"),
    Format.JUNIT: Form("application/xml", "junit.xml"),
    Format.MARKDOWN: Form("text/markdown; charset=utf-8", "md"),
    Format.BUNDLE: Form("application/gzip", "jsonl.gz"),
}

_WRITERS: dict[Format, Callable[[Extract], Iterator[bytes]]] = {
    Format.OSV: lambda extract: iter((osv_document(extract),)),
    Format.KCIDB: lambda extract: iter((kcidb_document(extract),)),
    Format.CSV: table,
    Format.JUNIT: junit_matrix,
    Format.MARKDOWN: matrix_markdown,
}


def write_extract(format_: Format, extract: Extract) -> Iterator[bytes]:
    """The document in pieces. A bundle is no extract: the store writes it (`export_bundle`)."""
    return _WRITERS[format_](extract)
