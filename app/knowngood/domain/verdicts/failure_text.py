"""The words of a failure, as against those it quoted: the part of an attempt's texts in which a signature is looked
for.

A traceback quotes the script's source, and so do Dynamo, Triton and whoever prints a traceback into the log. A
signature that stands in a call or a comment there would be found whenever anything failed near it. What is quoted of
other files stays: an `assert` without a message has no other words.
"""

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache

_FRAME = re.compile(
    r"""[\s|+]*(?:File "[^"\n]*", line \d+|(?:Exception Group )?Traceback \(most recent call last\):)"""
)
_MARGIN = " \t\r|"  # of what a group of exceptions quotes, too
_HANDLING = "\nDuring handling of the above exception, another exception occurred:\n"


def raised_text(message: str, traceback: str, script: str) -> str:
    """The message of an exception, then those of the exceptions that it was raised from, as they were raised.

    What was only being handled when it was raised is left out: the failure is not that. So is where a traceback was,
    in either text, and what it quotes of the script.
    """
    own = traceback.rpartition(_HANDLING)[2]
    lines = f"{message}\n{own}".split("\n")
    return without_source("\n".join(line for line in lines if not _FRAME.match(line)), script)


def without_source(text: str, script: str) -> str:
    """The text less every line that stands in the script, as a traceback or Triton quotes it."""
    source = _source_lines(script)
    return "\n".join(line for line in text.split("\n") if line.strip(_MARGIN) not in source)


@lru_cache(maxsize=512)
def _source_lines(script: str) -> AbstractSet[str]:
    return frozenset(filter(None, (line.strip(_MARGIN) for line in script.split("\n"))))
