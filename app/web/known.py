"""What the gate knows, kept in memory by each server process and swapped when the store moves."""

import threading
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from app.domain.errors import StoreUnusable
from app.store.known import Edition, load_edition
from app.store.reads import load_generation
from app.store.session import Engine, reading

logger = structlog.get_logger(__name__)

_PATIENCE_S = 0.25


class Knowledge:
    """The newest edition, for many threads. Each process asks the store itself, so all of them see what one wrote.

    The store's generation is asked for at most every `look_every_s` seconds: the query takes 1 ms with its session
    (one core of a shared machine, 2026-11-21). One thread at a time brings what is known up
    to date; whoever asks meanwhile gets what was known before, after at most a quarter of a second. Only the first
    load is waited for.
    """

    def __init__(self, engine: Engine, clock: Callable[[], datetime], look_every_s: float = 0.2) -> None:
        self._engine = engine
        self._clock = clock
        self._look_every_s = look_every_s
        self._edition: Edition | None = None
        self._look_at = 0.0
        self._first = threading.Lock()
        self._looking = threading.Lock()

    def at_hand(self) -> Edition | None:
        """What is known; None where the store is to be asked first. Never waits."""
        return self._edition if time.monotonic() < self._look_at else None

    def now(self) -> Edition:
        """What is known. Raises StoreUnusable where the store cannot be asked."""
        edition = self._edition or self._load_first()
        if time.monotonic() < self._look_at or not self._looking.acquire(blocking=False):
            return edition
        try:
            has_moved = self._generation() != edition.generation
            self._look_at = time.monotonic() + self._look_every_s
        except BaseException:
            self._looking.release()
            raise
        if has_moved:
            return self._brought_up(edition)
        self._looking.release()
        return edition

    def _load_first(self) -> Edition:
        with self._first:
            if self._edition is None:
                with reading(self._engine) as session:
                    self._edition = load_edition(session, self._clock())
            return self._edition

    def _generation(self) -> int:
        with reading(self._engine) as session:
            return load_generation(session)

    def _brought_up(self, before: Edition) -> Edition:
        done = threading.Event()
        threading.Thread(target=self._bring_up, args=(before, done), name="knowledge", daemon=True).start()
        done.wait(_PATIENCE_S)
        return self._edition or before

    def _bring_up(self, before: Edition, done: threading.Event) -> None:
        try:
            with reading(self._engine) as session:
                self._edition = load_edition(session, self._clock(), before)
        except StoreUnusable as error:
            self._look_at = 0.0  # the next reader asks again, and is told
            logger.warning("what the gate knows could not be brought up to date", reason=str(error))
        finally:
            self._looking.release()
            done.set()
