"""Form data of our own pages: names and texts, urlencoded."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request

from knowngood.web.errors import InvalidParameter
from knowngood.web.middleware.request_bodies import MOST_NAMES, media_of

_PIECE = 1 << 16


async def _read_body(request: Request) -> bytes:
    kind = media_of(request.headers.get("content-type", ""))
    if kind != "application/x-www-form-urlencoded":
        raise InvalidParameter("this page takes a form as browsers send it (application/x-www-form-urlencoded)")
    return await request.body()


def _read_form(body: Annotated[bytes, Depends(_read_body)]) -> Mapping[str, str]:
    """In a thread: millions of `%` characters take seconds. Of a name that comes several times the last text counts."""
    sent = [pair.partition(b"=") for pair in body.split(b"&", MOST_NAMES) if pair]
    if len(sent) > MOST_NAMES:
        raise InvalidParameter(f"the form has more than {MOST_NAMES:,} fields")
    try:
        body.decode()
    except UnicodeDecodeError:
        raise InvalidParameter("the form is not UTF-8") from None
    return {_unquoted(name): _unquoted(text) for name, _, text in sent}


def _unquoted(text: bytes) -> str:
    """Piece by piece: the standard library makes an object of what follows each percent sign, all at once. For 8 MiB
    of them that was 300 MB, and nobody else was answered for 0.2 s while they were made, and again while they went.
    """
    pieces, at = [], 0
    while at < len(text):
        end = at + _PIECE
        sign = text.rfind(b"%", end - 2, end)
        end = sign if sign > at else end
        pieces.append(unquote_to_bytes(text[at:end].replace(b"+", b" ")))
        at = end
    return b"".join(pieces).decode(errors="replace")


Form = Annotated[Mapping[str, str], Depends(_read_form)]
"""Each name with its one text."""


def own_address(to: str) -> str:
    """The address that a form leads to afterwards. Raises InvalidParameter for what is no address of this server."""
    if not to.startswith("/") or to.startswith(("//", "/\\")):
        raise InvalidParameter("`to` must be an address of this server, such as /runs")
    return to
