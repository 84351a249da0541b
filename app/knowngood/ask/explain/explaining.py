"""A paste held against the library, for pages and terminals alike."""

import time

from knowngood import foreign_text
from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.matcher import FailureLibrary, complete, recognise
from knowngood.ask.text_index import SearchBudget
from knowngood.store.knowledge.model import Knowledge

_SEARCHES_S = 1.2
"""Seconds for the searches, out of the time that a foreign text may take: a signature that is slow on it is named,
before all of it is refused.
"""


def explain_paste(text: str, library: FailureLibrary, knowledge: Knowledge, build: str = "") -> Explanation:
    """The explanation of a paste. `build` outweighs what the paste says.

    Raises UnknownBuild for what is no build id, and what `foreign_text.read` does.
    """
    read: Explanation = foreign_text.read(read_failure, text, shared=library)
    return complete(read, library.issues, knowledge, build)


def read_failure(library: FailureLibrary, text: str) -> Explanation:
    """By the processor's time, so that a machine which is busy with others says the same, later."""
    return recognise(library, text, SearchBudget(time.thread_time, _SEARCHES_S))
