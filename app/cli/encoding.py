"""Output where it is read in an encoding that lacks our signs (`LC_ALL=C`, a Latin-1 terminal): a sign that it has.

Without this a matrix ends in a UnicodeEncodeError half-way. Signs keep their width, so that columns stay straight.
"""

import codecs
import sys
from io import TextIOWrapper

_STAND_INS = str.maketrans("✓✕≠·⊘□∆°½…–—→×“”‘’", "+x!.0_^*-.-->x\"\"''")  # noqa: RUF001 - these are the ones that ASCII lacks
_NAME = "knowngood.stand_in"


def stand_in(error: UnicodeError) -> tuple[str, int]:
    """For `codecs.register_error`: what stands for the signs that could not be written."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_STAND_INS)
    return "".join(sign if sign.isascii() else "?" for sign in lacking), error.end


def write_what_can_be_read() -> None:
    """For this process' standard output and error."""
    codecs.register_error(_NAME, stand_in)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_NAME)
