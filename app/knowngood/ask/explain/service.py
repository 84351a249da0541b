"""The library that pastes are held against, kept in memory and made anew when what it is made of has changed.

A paste itself passes through: it is held by the request that brought it, and by nothing else.
"""

import threading
from collections.abc import Mapping

from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import FailureLibrary, make_failure_library
from knowngood.ask.explain.store import find_failures, load_failures
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.app_state import AppState
from knowngood.web.errors import InvalidParameter


class Recogniser:
    """For many threads: one makes the library, whoever needs it meanwhile waits.

    Making it of 87 issues takes 0.2 s, answering a paste of 40 kB from it 40 ms (one core of a shared machine,
    2026-11-21).
    """

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._generation = -1
        self._made_of: object = None
        self._library: FailureLibrary | None = None

    def open_library(self, engine: Engine, snapshot: KnowledgeSnapshot) -> FailureLibrary:
        """The library as of `snapshot`, or a newer one."""
        with self._making:
            if self._library is None or self._generation != snapshot.generation:
                self._library = self._made(engine, snapshot)
                self._generation = snapshot.generation
            return self._library

    def _made(self, engine: Engine, snapshot: KnowledgeSnapshot) -> FailureLibrary:
        """Make the library, or keep it: most changes to the store leave the chosen failures as they are."""
        with reading(engine) as session:
            failures = find_failures(session)
            made_of = (snapshot.revisions, failures)
            if self._library is not None and self._made_of == made_of:
                return self._library
            library = make_failure_library(snapshot.knowledge.known.issues.values(), load_failures(session, failures))
        self._made_of = made_of
        return library


def explain_text(state: AppState, text: str, build: str) -> tuple[Explanation, Mapping[str, Issue], Known]:
    """Explain a text. Returns the explanation, the issues that the text was compared with, and what was known. Raises
    InvalidParameter where `build` is no build id.
    """
    snapshot = state.knowledge.now()
    library = state.own(Recogniser).open_library(state.engine, snapshot)
    try:
        explanation = explain_paste(text, library, snapshot.knowledge, build)
    except UnknownBuild as error:
        raise InvalidParameter(str(error), "build") from None
    return explanation, library.issues, snapshot.knowledge.known
