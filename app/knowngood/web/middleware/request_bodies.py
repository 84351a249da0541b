"""Limits on what a body may hold, counted in its bytes before anything is decoded: decoders take seconds for what is
counted in a tenth of one, and while they do no other request is answered.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus

from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException

# A watch list has 2,000 names at most (domain/watch_list.py): as many fields of its form, which has a few more.
MOST_NAMES = 2_500
"""Names in a body, fields of a form, parameters of an address."""

_MOST_VALUES = 10_000  # of lists: names of watched issues
_DEEPEST = 64

_TOKENS = re.compile(rb'[^"\[\]{},:]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},:]', re.DOTALL)
_OPENING, _CLOSING, _COLON, _COMMA, _QUOTE = b"[{", b"]}", ord(":"), ord(","), ord('"')
_ENCODED = ("multipart/form-data", "application/x-www-form-urlencoded")
_UTF_8 = frozenset({"", "utf-8", "utf8", "us-ascii", "ascii"})


class BadBody(HTTPException):
    """A body that is not decoded. FastAPI passes only its own kind of exception through while it reads a body."""

    def __init__(self, detail: str, status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> None:
        super().__init__(status, detail)


def media_of(kind: str) -> str:
    """The media type in a Content-Type. The code that decodes a body asks here too: where one took for JSON what
    another does not, it would be decoded without having been counted.
    """
    return kind.partition(";")[0].strip().lower()


def look_at(kind: str, body: bytes) -> None:
    """Raises BadBody. `kind` is the Content-Type."""
    media, options = media_of(kind), parse_options_header(kind)[1]
    is_json = media.endswith("json")
    if not is_json and media not in _ENCODED:
        return
    _refuse_charset(options)
    if is_json:
        look_at_json(body)
    elif media.endswith("urlencoded"):
        if body.count(b"&") >= MOST_NAMES:
            raise BadBody(f"has more than {MOST_NAMES:,} fields; send fewer at once")
    elif body.count(b"\n--" + options.get(b"boundary", b"")) > MOST_NAMES:
        raise BadBody(f"has more than {MOST_NAMES:,} parts; send fewer at once")


def _refuse_charset(options: Mapping[bytes, bytes]) -> None:
    charset = options.get(b"charset", b"").decode("latin-1")
    if charset.strip().lower() not in _UTF_8:
        raise BadBody(f'is in "{charset[:40]}"; UTF-8 alone is read here', HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def look_at_json(body: bytes) -> None:
    """Raises BadBody for what is no UTF-8, or holds more names, values or levels than any question here. What is no
    JSON is left to the code that decodes it.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise BadBody(f"is no UTF-8 from byte {error.start} on") from None
    if b"\0" in body:
        raise BadBody("holds a NUL byte, as UTF-16 does; UTF-8 alone is read here")
    depth = names = values = texts = 0
    for token in _TOKENS.finditer(body):
        first = body[token.start()]
        if first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
        names += first == _COLON
        values += first == _COMMA
        texts += first == _QUOTE
        if depth > _DEEPEST:
            raise BadBody(f"is nested too deeply; {_DEEPEST} levels are read here")
        if names > MOST_NAMES:
            raise BadBody(f"has more than {MOST_NAMES:,} names; ask about fewer at once")
        if max(values, texts - names) > _MOST_VALUES + MOST_NAMES:
            raise BadBody(f"has more than {_MOST_VALUES:,} values; ask about fewer at once")
