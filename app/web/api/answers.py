"""What every route of the API shares: how refusals are documented."""

from typing import Any

from app.web.errors import PROBLEM_MEDIA, Problem

_PROBLEM = {"content": {PROBLEM_MEDIA: {"schema": Problem.model_json_schema()}}}

REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"description": "No such thing here; `suggestions` are the nearest addresses", **_PROBLEM},
    422: {"description": "A parameter cannot be understood or names nothing we have", **_PROBLEM},
    503: {"description": "The database cannot be used at the moment", **_PROBLEM},
}
