"""Everything known, held in memory by each server process and brought up to date when the store moves."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import structlog

from knowngood.domain.errors import StoreUnusable
from knowngood.store.engine import Engine, Session, reading
from knowngood.store.knowledge.loader import KnowledgeSnapshot, load_knowledge
from knowngood.store.queries import load_generation

logger = structlog.get_logger(__name__)

_PATIENCE_S = 0.25
_AGAIN_S = 5.0  # after a failure; reading everything takes a second
_STALE_S = 300.0


class KnowledgeCache:
    """The newest snapshot, for many threads. Each process asks the store itself, so all of them see what one wrote.
    Pages are as of their own transaction (`load`); the gate, which opens none, is as of `now`.

    The store's generation is asked for at most every `look_every_s` seconds: the query takes 1 ms with its session
    (one core of a shared machine, 2026-11-21). One thread at a time brings what is known up
    to date; whoever asks meanwhile gets what was known before, after at most a quarter of a second. Only the first
    load is waited for. What cannot be brought up to date, for whatever reason, is told to `on_failure` and tried again;
    after five minutes what was known before is no answer any more.

    `instead`, where it is set, is the answer to everything: while a store is being filled with the evidence behind it.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], datetime],
        look_every_s: float = 0.2,
        *,
        on_failure: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._look_every_s = look_every_s
        self._on_failure = on_failure
        self._monotonic = monotonic
        self._failing_since: float | None = None
        self.instead: KnowledgeSnapshot | None = None
        self._snapshot: KnowledgeSnapshot | None = None
        self._of_pages: KnowledgeSnapshot | None = None  # read and written whole, by whichever thread
        self._look_at = 0.0
        self._first = threading.Lock()
        self._looking = threading.Lock()

    @property
    def known_at(self) -> datetime | None:
        """The time at which the store last held what is known here; None before anything was."""
        return self._snapshot.known_at if self._snapshot else None

    @property
    def is_behind(self) -> bool:
        """Whether the store has moved and could not be followed."""
        return self._failing_since is not None

    def at_hand(self) -> KnowledgeSnapshot | None:
        """The newest snapshot; None where the store has to be read first. Never waits."""
        snapshot = self._snapshot if self._monotonic() < self._look_at and not self.is_behind else None
        return self.instead or snapshot

    def now(self) -> KnowledgeSnapshot:
        """The newest snapshot. Raises StoreUnusable where the store cannot be read, or followed for too long."""
        if self.instead:
            return self.instead
        snapshot = self._look(self._snapshot or self._load_first())
        if self._failing_since is not None and self._monotonic() - self._failing_since > _STALE_S:
            raise StoreUnusable(f"what the gate knows is of {snapshot.known_at} and cannot be brought up to date")
        return snapshot

    def load(self, s: Session, now: datetime) -> KnowledgeSnapshot:
        """The snapshot as of the transaction that `s` is in, less what cannot be read; only what was written since is
        read.

        It stays the very same value until something is written. Whoever makes something of it may keep that for as
        long. A store that went backwards is read anew.
        """
        if self.instead:
            return self.instead
        self._of_pages = snapshot = load_knowledge(s, now, self._of_pages or self._snapshot, whole=False)
        return snapshot

    def _look(self, snapshot: KnowledgeSnapshot) -> KnowledgeSnapshot:
        if self._monotonic() < self._look_at or not self._looking.acquire(blocking=False):
            return snapshot
        try:
            now = self._clock()
            has_moved = self._generation() != snapshot.generation
            self._look_at = self._monotonic() + self._look_every_s
        except BaseException:
            self._looking.release()
            raise
        if has_moved:
            return self._brought_up(snapshot)
        self._snapshot, self._failing_since = replace(snapshot, known_at=now), None
        self._looking.release()
        return self._snapshot

    def _load_first(self) -> KnowledgeSnapshot:
        with self._first:
            if self._snapshot is None and self._monotonic() < self._look_at:
                raise StoreUnusable(f"what is stored could not be read; it is tried again every {_AGAIN_S:g} s")
            return self._snapshot or self._load(self._of_pages)

    def _load(self, before: KnowledgeSnapshot | None) -> KnowledgeSnapshot:
        """Load the snapshot. Raises StoreUnusable, whatever it was that could not be read."""
        now = self._clock()
        try:
            with reading(self._engine) as session:
                snapshot = load_knowledge(session, now, before)
        except Exception as error:
            self._failing_since = self._failing_since or self._monotonic()
            self._look_at = self._monotonic() + _AGAIN_S
            self._on_failure()
            logger.exception("what the gate knows could not be brought up to date")
            if isinstance(error, StoreUnusable):
                raise
            raise StoreUnusable(f"what is stored cannot be read: {type(error).__name__}") from error
        self._snapshot, self._failing_since = snapshot, None
        return snapshot

    def _generation(self) -> int:
        with reading(self._engine) as session:
            return load_generation(session)

    def _brought_up(self, before: KnowledgeSnapshot) -> KnowledgeSnapshot:
        done = threading.Event()
        threading.Thread(target=self._bring_up, args=(before, done), name="knowledge", daemon=True).start()
        done.wait(_PATIENCE_S)
        return self._snapshot or before

    def _bring_up(self, before: KnowledgeSnapshot, done: threading.Event) -> None:
        try:
            with suppress(StoreUnusable):  # it is told, and tried again
                self._load(before)
        finally:
            self._looking.release()
            done.set()
