"""A cache of what is known, from one reading to the next: a page reads only what was written in between."""

from datetime import datetime

from knowngood.domain.verdicts.known import Known
from knowngood.store.engine import Session
from knowngood.store.knowledge.loader import KnowledgeSnapshot, load_knowledge


class KnownCache:
    """The knowledge of one process, for many threads.

    It stays the very same value until something is written. Whoever makes something of it may keep that for as long.
    """

    def __init__(self) -> None:
        self._kept: KnowledgeSnapshot | None = None  # read and written whole, by whichever thread

    def load(self, s: Session, now: datetime) -> Known:
        """As of the transaction that `s` is in. A store that went backwards is read anew."""
        return self.load_snapshot(s, now).knowledge.known

    def load_snapshot(self, s: Session, now: datetime) -> KnowledgeSnapshot:
        """The same with the watch lists, and whether anything had to be left out."""
        self._kept = snapshot = load_knowledge(s, now, self._kept, whole=False)
        return snapshot
