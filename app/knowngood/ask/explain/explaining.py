"""A paste held against the library, for pages and terminals alike; and what a library keeps of a failure."""

import time
from dataclasses import replace

from knowngood import foreign_text
from knowngood.ask.explain.matcher import (
    Explanation,
    FailureLibrary,
    SearchBudget,
    complete,
    held_against,
    recognise,
)
from knowngood.environments.resolve import resolve_build
from knowngood.store.knowledge.model import Knowledge

_SEARCHES_S = 1.2
"""Of the time that a foreign text may take: a signature that is slow on it is named, before all of it is refused."""


def explain_paste(text: str, library: FailureLibrary, knowledge: Knowledge, build: str = "") -> Explanation:
    """The explanation of a paste. `build` outweighs what the paste says.

    Raises UnknownBuild for what is no build id, and what `foreign_text.read` does.
    """
    read = foreign_text.read(read_failure, text, shared=library)
    found = complete(read, knowledge)
    if not build:
        return found
    stated = found.resolved
    named = resolve_build(build, knowledge.known.builds, knowledge.tested, platforms=stated.platforms)
    return held_against(replace(read, resolved=replace(named, gpus=stated.gpus)), knowledge.known)


def read_failure(library: FailureLibrary, text: str) -> Explanation:
    """By the processor's time, so that a machine which is busy with others says the same, later."""
    return recognise(library, text, SearchBudget(time.thread_time, _SEARCHES_S))
