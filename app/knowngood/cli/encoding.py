"""Output that its reader takes as it is meant: a terminal that lacks our signs, and a CI system that obeys its log.

Where the encoding lacks a sign (`LC_ALL=C`, a Latin-1 terminal), one that it has stands for it; without this a matrix
ends in a UnicodeEncodeError half-way. Signs keep their width, so that columns stay straight.

CI systems take lines of a log for commands: GitHub those that begin with `::`, and `##[..]` anywhere, as Azure does
`##vso[..]`. Files, names and answers of servers hold what anybody wrote, so what goes to a log is defused here.
"""

import codecs
import re
import sys
from io import TextIOWrapper

_STAND_INS = str.maketrans("✓✕≠·⊘□∆°½…–—→×“”‘’↑↻◷", "+x!.0_^*-.-->x\"\"''M@S")  # noqa: RUF001 - these are the ones that ASCII lacks
_NAME = "knowngood.stand_in"
SCREEN = 24
"""The lines that an answer has at most unless all of it is asked for; one more says what answered."""

# Runners end lines at more signs than \n, skip blanks, and compare as a language does, which passes over the unseen.
_UNSEEN = "\0-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_BLANKS = f"{_UNSEEN}\t \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_COLONS = re.compile(rf"\A([{_BLANKS}]*):(?=[{_UNSEEN}]*:)")
_HASHES = re.compile(rf"(#[{_UNSEEN}]*)#(?=[{_UNSEEN}]*\w*[{_UNSEEN}]*\[)")
_ESCAPED_HASH = {"{": r"\u0023", "[": r"\u0023", "<": "&#35;"}


def stand_in(error: UnicodeError) -> tuple[str, int]:
    """For `codecs.register_error`: what stands for the signs that could not be written."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_STAND_INS)
    return "".join(sign if sign.isascii() else "?" for sign in lacking), error.end


def one_printable_line(text: str) -> str:
    """Text as one line; a replacement character stands for each sign that cannot be seen."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))


def defused(text: str) -> str:
    """Text in which no CI system finds a command. JSON and XML, by how they begin, are escaped and hold the same."""
    hash_, colon = _ESCAPED_HASH.get(text[:1], "# "), "&#58;" if text[:1] == "<" else ": "
    lines = _HASHES.sub(lambda match: match[1] + hash_, text).splitlines(keepends=True)
    return "".join([_COLONS.sub(rf"\1{colon}", line) for line in lines])


def write_what_can_be_read() -> None:
    """For this process' standard output and error. A terminal obeys no command, and gets texts as they are."""
    codecs.register_error(_NAME, stand_in)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_NAME)
            if not stream.isatty():
                _defuse(stream)


def _defuse(stream: TextIOWrapper) -> None:
    write = stream.write
    stream.write = lambda text: write(defused(text))  # type: ignore[method-assign]
