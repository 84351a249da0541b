"""What a form of ours sends: names and texts, urlencoded, each once."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from app.web.errors import BadQuestion

_MOST_FIELDS = 20


async def _read_form(request: Request) -> Mapping[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise BadQuestion("this page takes a form as browsers send it (application/x-www-form-urlencoded)")
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise BadQuestion(f"the form is not UTF-8, or has more than {_MOST_FIELDS} fields") from None


Form = Annotated[Mapping[str, str], Depends(_read_form)]
