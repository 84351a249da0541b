"""The one comment of the Action on a pull request that moves torch, which later runs edit in place.

The token is the job's own, and written by nobody else: a comment counts as ours where a bot wrote it and it begins with
our mark. Two jobs at once may each write one, so one job of a workflow should comment. The standard library alone.
"""

import json
import os
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request

from knowngood.domain.errors import BadRequest, ServerUnusable
from knowngood.gate.from_server import opener

_MOST_CHARACTERS = 65_536 - 500
"""GitHub refuses a comment of more than 65,536 characters whole; the rest is for our mark and what ends a cut one."""

_MARK = "<!-- knowngood -->"
_PER_PAGE, _MOST_PAGES = 100, 30
_TIMEOUT_S = 30


def fitting(text: str) -> str:
    """The whole lines that GitHub takes, each block closed, and how many it does not take."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    kept = text[:_MOST_CHARACTERS].rpartition("\n")[0]
    closed = "\n```" * (kept.count("\n```") % 2)
    closed += "\n\n</details>" * (kept.count("<details>") - kept.count("</details>"))
    left = text[len(kept) :].strip().count("\n") + 1
    return f"{kept}{closed}\n\n**Cut: {left} more lines do not fit into a comment. This job's summary has them.**\n"


def comment(text: str, *, begins: bool) -> None:
    """Edit the comment of this job's pull request; write one where there is none and it `begins`.

    Raises BadRequest where the job is for no pull request, and ServerUnusable where GitHub does not let it write: the
    token of a pull request from a fork may only read.
    """
    repository, number = quote(os.environ.get("GITHUB_REPOSITORY", "")), os.environ.get("GATE_PULL_REQUEST", "")
    if not number:
        raise BadRequest("comment: this job is for no pull request; run it on the event pull_request")
    comments = f"/repos/{repository}/issues/{number}/comments"
    body = f"{_MARK}\n{text}"
    own = _own(comments)
    if own and own["body"] != body:
        _ask("PATCH", f"/repos/{repository}/issues/comments/{int(own['id'])}", {"body": body})
    elif not own and begins:
        _ask("POST", comments, {"body": body})


def _own(comments: str) -> Mapping[str, Any] | None:
    for page in range(1, _MOST_PAGES + 1):
        found = _ask("GET", f"{comments}?per_page={_PER_PAGE}&page={page}")
        for each in found:
            if each["user"] and each["user"]["type"] == "Bot" and (each["body"] or "").startswith(_MARK):
                return dict(each)
        if len(found) < _PER_PAGE:
            break
    return None


def _ask(method: str, path: str, body: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - whatever JSON holds
    address = os.environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/") + path
    head = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ.get('GATE_GITHUB_TOKEN', '')}",
        "Content-Type": "application/json",
        "User-Agent": "knowngood",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = json.dumps(body).encode() if body else None
    try:
        with opener.open(Request(address, data, head, method=method), timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)
    except HTTPError as error:
        why = "; the token needs pull-requests: write" if error.code in {401, 403, 404} else ""
        raise ServerUnusable(f"GitHub answers {error.code} to {method} {path.partition('?')[0]}{why}") from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise ServerUnusable(f"GitHub cannot be asked for the comment: {getattr(error, 'reason', error)}") from None
