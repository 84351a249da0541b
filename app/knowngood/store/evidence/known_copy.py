"""A store made of what is known, from wherever: catalogue and cells without the attempts they were derived from.

For pages that are made of more than the local store, or where there is none (`knowngood site`).
"""

from datetime import datetime

from knowngood.domain.verdicts.known import Known
from knowngood.serialization import codec
from knowngood.store import bulk_insert
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Session
from knowngood.store.queries import load_generation
from knowngood.store.tables import cells


def save_known(s: Session, known: Known, now: datetime) -> None:
    """Into an empty store. Cells of issues or builds that the catalogue lacks are of no use there."""
    save_catalogue(s, tuple(known.issues.values()), tuple(known.builds.values()), now)
    generation = load_generation(s)
    found = (known.cells[place] for place in sorted(known.cells))
    rows = [
        (
            *cell.key,
            cell.verdict.value,
            cell.measured_at,
            generation,
            codec.CELL.dump_json(cell, exclude_defaults=True).decode(),
        )
        for cell in found
        if cell.issue in known.issues and cell.build in known.builds
    ]
    bulk_insert.insert(s, cells, rows)
