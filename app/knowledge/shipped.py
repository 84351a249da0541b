"""The evidence that comes with this release, as one snapshot, which answers where there is no store."""

from datetime import datetime, timedelta
from functools import cache

from knowngood.app.catalogue_digest import SHIPPED
from knowngood.app.knowledge.snapshot import Snapshot, read_unsigned

FILE = SHIPPED / "known.snapshot"
"""Written by tools/shipped.py."""

_OLD = timedelta(days=180)


@cache
def read_shipped() -> Snapshot:
    """Raises BadSnapshot where the file of this installation is damaged, and OSError where it is not there."""
    return read_unsigned(FILE.read_bytes())


def age_in_words(made_at: datetime, now: datetime) -> str:
    """A warning about results that are old; empty while they are not."""
    return f"{(now - made_at).days} days old; a newer release may know more" if now - made_at > _OLD else ""
