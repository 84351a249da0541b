"""The forms in which a part of the matrix leaves: by name, with media type and ending."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from knowngood.share.exports.csv import table
from knowngood.share.exports.extract import Extract
from knowngood.share.exports.junit import junit_matrix
from knowngood.share.exports.markdown import matrix_markdown
from knowngood.share.exports.osv import osv_document


class Format(StrEnum):
    """`bundle` is the evidence itself, which another installation imports; the others tell what follows from it."""

    OSV = "osv"
    CSV = "csv"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    BUNDLE = "bundle"


@dataclass(frozen=True)
class FormatInfo:
    """`contents` is what stands in the file, in words; `folded` where Pythons that agree share a line."""

    media: str
    ending: str
    contents: str
    folded: bool = False


FORMATS = {
    Format.OSV: FormatInfo("application/json", "osv.json", "issues as OSV records with our own id prefix"),
    Format.CSV: FormatInfo("text/csv; charset=utf-8; header=present", "csv", "a line per cell"),
    Format.JUNIT: FormatInfo("application/xml", "junit.xml", "a test case per cell"),
    Format.MARKDOWN: FormatInfo(
        "text/markdown; charset=utf-8",
        "md",
        "the table as the page shows it, Pythons folded where they agree",
        folded=True,
    ),
    Format.BUNDLE: FormatInfo("application/gzip", "jsonl.gz", "the evidence, to be imported elsewhere"),
}

WRITERS: dict[Format, Callable[[Extract], Iterator[bytes]]] = {
    Format.OSV: lambda extract: iter((osv_document(extract),)),
    Format.CSV: table,
    Format.JUNIT: junit_matrix,
    Format.MARKDOWN: matrix_markdown,
}
"""The document in pieces. A bundle is no extract: the store writes it (`export_bundle`)."""
