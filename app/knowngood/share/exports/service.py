"""The extract that exports are made of: a selection with the addresses of this server."""

from datetime import datetime

from knowngood.domain.verdicts.matrix import stale_cells
from knowngood.matrix.overview.selection import Selection
from knowngood.share.exports.extract import Extract, Links
from knowngood.web.urls import attempt_address, cell_address, issue_address


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
