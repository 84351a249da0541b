"""The box that a query of the matrix is written in: examples beside it, and the place where a text went wrong."""

from dataclasses import dataclass

from knowngood.query.parser import BadQuery


@dataclass(frozen=True)
class Marked:
    """A query as it was written, in three parts: what stands before the fault, the fault, what follows it.

    The fault is empty where something is missing there; `error` says what is wrong, and what would do.
    """

    before: str
    wrong: str
    after: str
    error: BadQuery

    @property
    def text(self) -> str:
        return self.before + self.wrong + self.after

    @property
    def mended(self) -> str:
        """The query with the word that may have been meant; empty where there is none."""
        is_near = self.error.column and self.error.nearest
        return f"{self.before}{self.error.nearest}{self.after}" if is_near else ""


def marked(text: str, error: BadQuery) -> Marked:
    """A fault without a column is the whole of it."""
    start = error.column - 1 if error.column else 0
    end = start + error.length if error.column else len(text)
    return Marked(text[:start], text[start:end], text[end:], error)


EXAMPLE_MEANINGS = {
    "bmm stride": "both words stand in the id, the title or the component",
    "component:inductor silent:yes": "wrong numbers without an error, in any Inductor component",
    "status:affected build:>=2.8": "fails on some build from 2.8 on; only these columns are shown",
    "status:affected workaround:none": "fails somewhere, and no workaround is known to help there",
    "status:affected upstream:closed": "closed upstream, and fails on some build",
    "(build:2.7 status:affected) (build:2.8 status:not_affected)": "fails on 2.7 and passes on 2.8",
    "build:2.6..2.8 age:>90d -severity:low": "an answer older than 90 days among these columns, and not minor",
}
