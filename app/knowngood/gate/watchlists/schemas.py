"""Watch lists as JSON."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from knowngood.domain.issue import Severity
from knowngood.web.json_body import Body, read_from
from knowngood.web.urls import watch_list_address

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Names = Annotated[list[_Name], Field(default_factory=list, max_length=2000)]


class WatchListChange(BaseModel):
    """The new content of a list. Everything named counts together: an issue is watched if any part names it.

    `version` is the one that the change was made for: 409 where another one is there by now. 0: there must be none.
    Left out, whatever is there is replaced.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "description": "What our vision models compile",
                    "components": ["Inductor C++"],
                    "packages": ["torchvision"],
                    "hardware": ["cpu-x86_64"],
                    "version": 0,
                }
            ]
        },
    )

    description: Annotated[str, Field(max_length=500)] = ""
    issues: Annotated[_Names, Field(description="Issue ids, or their reports such as pytorch/pytorch#151290")]
    components: _Names
    packages: Annotated[_Names, Field(description="Packages that issues need beside torch")]
    severity: Annotated[Severity | None, Field(description="Every issue of at least this severity")] = None
    hardware: Annotated[_Names, Field(description="Hardware classes that count; none: every measured one")]
    version: Annotated[int | None, Field(ge=0, le=2_000_000_000)] = None


class WatchListBody(Body):
    """A list as it is now, or was in a version. `owner` may change it, and whoever holds the scope admin."""

    name: str
    owner: str
    version: int
    changed_at: datetime
    changed_by: str
    description: str = read_from("content", "description")
    issues: list[str] = read_from("content", "watch", "issues")
    components: list[str] = read_from("content", "watch", "components")
    packages: list[str] = read_from("content", "watch", "packages")
    severity: Severity | None = read_from("content", "watch", "severity")
    hardware: list[str] = read_from("content", "hardware")
    url: Annotated[str, AfterValidator(watch_list_address)] = read_from("name")


class WatchListsBody(Body):
    watchlists: list[WatchListBody]
