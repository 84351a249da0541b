"""A part of the matrix on its way out: what every export is made from."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import Column
from knowngood.domain.verdicts.verdict import Cell, CellPlace
from knowngood.web.urls import attempt_address, cell_address, issue_address


@dataclass(frozen=True)
class Links:
    """Absolute addresses of things on the server that made the export."""

    issue: Callable[[str], str]
    cell: Callable[[str, str, str], str]
    attempt: Callable[[str], str]


def links_at(base: str) -> Links:
    """Addresses on the server at `base`."""
    return Links(
        issue=lambda issue: base + issue_address(issue),
        cell=lambda issue, build, hardware: base + cell_address(issue, build, hardware),
        attempt=lambda attempt: base + attempt_address(attempt),
    )


@dataclass(frozen=True)
class Extract:
    """Issues, all that is known, and every selected cell, not_run ones too.

    `links` is None where no server is known (the command line): exports then carry no addresses of ours. `columns` are
    those of a table, one cell of each row in each, where they are more than a build each; empty: they are not.
    """

    issues: tuple[Issue, ...]
    known: Known
    cells: tuple[Cell, ...]
    stale: frozenset[CellPlace]
    now: datetime
    links: Links | None = None
    columns: tuple[Column, ...] = ()

    @property
    def builds(self) -> Mapping[str, Build]:
        """Every build of the catalogue by id."""
        return self.known.builds

    def is_stale(self, cell: Cell) -> bool:
        return cell.key in self.stale

    def evidence_address(self, cell: Cell) -> str:
        """The address of the attempt that says most; empty where there is none, or no server."""
        return self.links.attempt(cell.evidence) if self.links and cell.evidence else ""


def utc(at: datetime) -> str:
    """`2026-11-21T12:00:00Z`: RFC 3339, without fractions of a second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


# What XML 1.0 has no way to write (section 2.2), escaped or not. A log or a message may hold any of it.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """`text` with a replacement character for each character that XML 1.0 cannot carry."""
    return _NOT_XML.sub("\ufffd", text)
