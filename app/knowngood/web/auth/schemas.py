"""Who asks, as JSON."""

from datetime import datetime

from pydantic import BaseModel

from knowngood.domain.access import Scope


class WhoBody(BaseModel):
    """Who asks: the name of the token that came along (null: none) and what it may."""

    name: str | None
    scopes: list[Scope]
    expires_at: datetime | None
    reads: str
