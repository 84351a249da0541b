"""What a form of ours sends: names and texts, urlencoded."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from app.web.bodies import MOST_NAMES, media_of
from app.web.errors import BadQuestion


async def _read_body(request: Request) -> bytes:
    kind = media_of(request.headers.get("content-type", ""))
    if kind != "application/x-www-form-urlencoded":
        raise BadQuestion("this page takes a form as browsers send it (application/x-www-form-urlencoded)")
    return await request.body()


def _read_fields(body: Annotated[bytes, Depends(_read_body)]) -> Mapping[str, list[str]]:
    """In a thread: millions of percent signs take seconds."""
    try:
        sent = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_NAMES)
    except ValueError:
        raise BadQuestion(f"the form is not UTF-8, or has more than {MOST_NAMES:,} fields") from None
    found: dict[str, list[str]] = {}
    for name, text in sent:
        found.setdefault(name, []).append(text)
    return found


def _read_form(fields: Annotated[Mapping[str, list[str]], Depends(_read_fields)]) -> Mapping[str, str]:
    return {name: texts[-1] for name, texts in fields.items()}


Form = Annotated[Mapping[str, str], Depends(_read_form)]
"""Each name with its one text."""

Fields = Annotated[Mapping[str, list[str]], Depends(_read_fields)]
"""The same where a name may be sent several times: boxes that were ticked."""
