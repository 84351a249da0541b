"""Watch lists as JSON, and as a repository's file keeps them: a table for each, or the [watch] table of a policy file.

[watchlists.vision-team]
description = "What our vision models compile"
components = ["Inductor C++"]
hardware = ["cpu-x86_64"]
"""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import Watch, WatchListContent
from knowngood.gate.policy_file import POLICY_CHARACTERS, parse_policy
from knowngood.serialization.toml_models import read_document
from knowngood.web.json_body import Body, read_from
from knowngood.web.urls import watch_list_address

_TABLE = "watchlists"
_SHOWN_PROBLEMS = 5

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Names = Annotated[list[_Name], Field(default_factory=list, max_length=2000)]


class WatchListTable(BaseModel, extra="forbid"):
    """The content of a list. Everything named counts together: an issue is watched if any part names it."""

    description: Annotated[str, Field(max_length=500)] = ""
    issues: Annotated[_Names, Field(description="Issue ids, or their reports such as pytorch/pytorch#151290")]
    components: _Names
    packages: Annotated[_Names, Field(description="Packages that issues need besides torch")]
    severity: Annotated[Severity | None, Field(description="Every issue of at least this severity")] = None
    hardware: Annotated[_Names, Field(description="Hardware classes that count; none: every measured one")]

    @property
    def content(self) -> WatchListContent:
        watch = Watch(tuple(self.issues), tuple(self.components), tuple(self.packages), self.severity)
        return WatchListContent(watch, tuple(self.hardware), self.description)


class WatchListChange(WatchListTable):
    """The new content of a list. Everything named counts together: an issue is watched if any part names it.

    `version` is the one that the change was made for: 409 where another one is there by now. 0: there must be none.
    Left out, whatever is there is replaced.
    """

    model_config = ConfigDict(
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

    version: Annotated[int | None, Field(ge=0, le=2_000_000_000)] = None


class WatchListBody(Body):
    """A list as it is now, or was in a version. Its owner may change it, and so may holders of the scope admin."""

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


class WatchListsFile(BaseModel, extra="forbid"):
    watchlists: dict[str, WatchListTable]


def parse_watch_lists(text: str, where: str, name: str = "") -> dict[str, WatchListContent]:
    """The lists of a file by name. `name` is for a policy file: what it watches becomes one list, under that name.

    Raises BadRequest, or BadPolicy, with the place of each problem.
    """
    if len(text) > POLICY_CHARACTERS:
        raise BadRequest(f"{where}: has {len(text)} characters; a file of watch lists has at most {POLICY_CHARACTERS}")
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{where}: is not TOML: {error}") from None
    if _TABLE in tables:
        lists = _lists(tables, where)
        if name and name not in lists:
            raise BadRequest(f'{where}: has no watch list "{name}"; it has {", ".join(lists)}')
        return {name: lists[name]} if name else lists
    if not name:
        raise BadRequest(
            f"{where}: has no table [{_TABLE}.NAME]; for the [watch] table of a policy file say --name as well"
        )
    policy = parse_policy(text, where)
    return {name: WatchListContent(policy.watch, policy.hardware)}


def _lists(tables: Mapping[str, object], where: str) -> dict[str, WatchListContent]:
    document, findings = read_document(WatchListsFile, tables)
    if document is None:
        problems = [f"{'.'.join(map(str, path))}: {words}" for path, words in findings[:_SHOWN_PROBLEMS]]
        raise BadRequest(f"{where}: {'; '.join(problems)}")
    return {name: table.content for name, table in document.watchlists.items()}
