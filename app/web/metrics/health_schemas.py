"""Whether the server is well, as JSON."""

from pydantic import BaseModel


class HealthBody(BaseModel):
    status: str
