"""The words of a failure, as against those it quoted: the part of an attempt's texts in which a signature is looked
for.

A traceback quotes the script's source, and so do Dynamo, Triton and whoever prints a traceback into the log. A
signature that stands in a call or a comment there would be found whenever anything failed near it.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache

_FRAME = re.compile(r'(?P<indent>[\s|]*)File "[^"\n]*", line \d+')
_HEAD = re.compile(r"[\s|+]*(?:Exception Group )?Traceback \(most recent call last\):")
_HANDLING = "\nDuring handling of the above exception, another exception occurred:\n"


def raised_text(message: str, traceback: str, script: str) -> str:
    """The message of an exception, then those of the exceptions that it was raised from, as they were raised.

    What was only being handled when it was raised is left out: the failure is not that. So is what a traceback quotes,
    in either text: where it was, and the source there.
    """
    own = traceback.rpartition(_HANDLING)[2]
    return without_source("\n".join(_without_frames(f"{message}\n{own}")), script)


def without_source(text: str, script: str) -> str:
    """The text less every line that stands in the script, as a traceback or Triton quotes it."""
    source = _source_lines(script)
    return "\n".join(line for line in text.split("\n") if line.strip() not in source)


def _without_frames(text: str) -> Iterator[str]:
    frame: int | None = None
    for line in text.split("\n"):
        found = _FRAME.match(line)
        if found:
            frame = len(found["indent"])
        elif frame is not None and line.strip() and _indent(line) > frame:
            continue
        else:
            frame = None
            if not _HEAD.match(line):
                yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t|"))


@lru_cache(maxsize=512)
def _source_lines(script: str) -> AbstractSet[str]:
    return frozenset(filter(None, map(str.strip, script.split("\n"))))
