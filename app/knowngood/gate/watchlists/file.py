"""Watch lists as a repository's file keeps them: a table for each, or the [watch] table of a policy file.

[watchlists.vision-team]
description = "What our vision models compile"
components = ["Inductor C++"]
hardware = ["cpu-x86_64"]
"""

import tomllib
from collections.abc import Mapping

from pydantic import BaseModel, Field

from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.watch_list import WatchListContent
from knowngood.gate.policy_file import POLICY_CHARACTERS, parse_policy
from knowngood.gate.watchlists.schemas import WatchListChange
from knowngood.serialization.toml_models import STRICT, read_document

_TABLE = "watchlists"
_SHOWN_PROBLEMS = 5


class WatchListTable(BaseModel):
    model_config = STRICT

    description: str = ""
    issues: list[str] = []
    components: list[str] = []
    packages: list[str] = []
    severity: Severity | None = Field(default=None, strict=False)
    hardware: list[str] = []


class WatchListsFile(BaseModel):
    model_config = STRICT

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
        told = [f"{'.'.join(map(str, path))}: {words}" for path, words in findings[:_SHOWN_PROBLEMS]]
        raise BadRequest(f"{where}: {'; '.join(told)}")
    return {name: content_of(table) for name, table in document.watchlists.items()}


def content_of(table: WatchListTable | WatchListChange) -> WatchListContent:
    """The list that a file or a request states."""
    watch = Watch(tuple(table.issues), tuple(table.components), tuple(table.packages), table.severity)
    return WatchListContent(watch, tuple(table.hardware), table.description)
