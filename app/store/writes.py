"""Every change to the store, by the product's verbs. Each is called inside one `unit_of_work`, which commits it.

The verbs live by subject: `catalogue` (what people wrote), `jobs` (the queue), `results` (what workers saw),
`exchange` (bundles), `upkeep`; `cells` keeps derived verdicts up to date beneath them all.
"""

from app.store.catalogue import save_catalogue
from app.store.exchange import export_bundle, take_in_bundle
from app.store.jobs import (
    DISPATCHER,
    cancel_run,
    claim_job,
    create_run,
    give_lease_back,
    load_cancelled_jobs,
    load_orphans,
    release_job,
    renew_jobs,
    take_lease,
)
from app.store.results import LOSS_LIMIT, lose_job, record_event
from app.store.rows import CellChange, ImportReport, PruneReport, Selection, StaleEvent
from app.store.upkeep import prune, reclassify

__all__ = [
    "DISPATCHER",
    "LOSS_LIMIT",
    "CellChange",
    "ImportReport",
    "PruneReport",
    "Selection",
    "StaleEvent",
    "cancel_run",
    "claim_job",
    "create_run",
    "export_bundle",
    "give_lease_back",
    "load_cancelled_jobs",
    "load_orphans",
    "lose_job",
    "prune",
    "reclassify",
    "record_event",
    "release_job",
    "renew_jobs",
    "save_catalogue",
    "take_in_bundle",
    "take_lease",
]
