"""A paste held against the library, for pages and terminals alike; and what a library keeps of a failure."""

import time
from dataclasses import replace

from knowngood.app.features.diagnose.matcher import Explanation, FailureLibrary, SearchBudget, explain
from knowngood.app.features.environments.resolve import resolve_build
from knowngood.app.knowledge.model import Knowledge


def explain_paste(text: str, library: FailureLibrary, knowledge: Knowledge, build: str = "") -> Explanation:
    """The explanation of a paste, found within the processor's time that one may take, so that a machine which is busy
    with others says the same, later. `build` outweighs what the paste says.

    Raises UnknownBuild for what is no build id.
    """
    found = explain(text, library, knowledge, SearchBudget(time.thread_time))
    return replace(found, resolved=resolve_build(build, knowledge.known.builds, knowledge.tested)) if build else found
