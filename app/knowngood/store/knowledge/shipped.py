"""The evidence that comes with this release, as one snapshot, which answers where there is no store."""

from datetime import datetime, timedelta
from functools import cache

from knowngood.catalogue_digest import SHIPPED
from knowngood.domain.errors import BadSnapshot
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import Snapshot, read_unsigned
from knowngood.store.knowledge.together import recorded_together

FILE = SHIPPED / "known.snapshot"
"""Written by tools/shipped.py."""

_OLD = timedelta(days=180)


@cache
def read_shipped() -> Snapshot:
    """Raises BadSnapshot where the file of this installation is damaged, or cannot be read."""
    try:
        return read_unsigned(FILE.read_bytes())
    except OSError as error:
        raise BadSnapshot(f"{FILE} comes with this release and cannot be read: {error.strerror}") from None


def recorded_with_shipped(own: Recorded) -> Recorded:
    """With what was timed before this release, for a guess at what nobody has timed here: no answer depends on it."""
    try:
        return recorded_together(own, read_shipped().recorded)
    except BadSnapshot:
        return own


def age_in_words(made_at: datetime, now: datetime) -> str:
    """A warning about results that are old; empty while they are not."""
    return f"{(now - made_at).days} days old; a newer release may know more" if now - made_at > _OLD else ""
