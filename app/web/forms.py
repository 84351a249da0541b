"""What a form of ours sends: names and texts, urlencoded."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from app.web.errors import BadQuestion

_MOST_FIELDS = 2500  # a watch list of 2000 issues, ticked one by one


async def _read_fields(request: Request) -> Mapping[str, list[str]]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise BadQuestion("this page takes a form as browsers send it (application/x-www-form-urlencoded)")
    try:
        sent = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BadQuestion(f"the form is not UTF-8, or has more than {_MOST_FIELDS} fields") from None
    found: dict[str, list[str]] = {}
    for name, text in sent:
        found.setdefault(name, []).append(text)
    return found


async def _read_form(request: Request) -> Mapping[str, str]:
    return {name: texts[-1] for name, texts in (await _read_fields(request)).items()}


Form = Annotated[Mapping[str, str], Depends(_read_form)]
"""Each name with its one text."""

Fields = Annotated[Mapping[str, list[str]], Depends(_read_fields)]
"""The same where a name may be sent several times: boxes that were ticked."""
