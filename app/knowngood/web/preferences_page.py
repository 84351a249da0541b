"""`/preferences`: keep the reader's language or theme in a cookie and lead back. A link: it works without
scripts. One of another site leads there and keeps nothing.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from knowngood.web.auth.principal import is_from_elsewhere
from knowngood.web.forms import own_address
from knowngood.web.html.i18n import Language
from knowngood.web.request_context import LANGUAGE_COOKIE, THEME_COOKIE, remember_preferences, see_other

router = APIRouter(include_in_schema=False)


@router.get("/preferences")
def preferences(
    request: Request,
    to: Annotated[str, Query(max_length=4000)] = "/",
    lang: Language | None = None,
    theme: Literal["light", "dark", "system"] | None = None,
) -> Response:
    response = see_other(own_address(to))
    if not is_from_elsewhere(request):
        remember_preferences(response, **{LANGUAGE_COOKIE: lang, THEME_COOKIE: theme})
    return response
