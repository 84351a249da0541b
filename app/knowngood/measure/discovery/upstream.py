"""The states of upstream's threads, by GitHub's REST API: each is asked only whether its last answer still holds, and
no more than the API allows.

Source: GitHub's documentation of the REST API, "Get an issue", "Rate limits" and "Best practices" (read 2026-11-29).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException
from urllib.error import HTTPError

from knowngood.domain.issue import Issue, Link, LinkKind, Look
from knowngood.gate.from_server import asked_wait_s
from knowngood_workers.provision.index_config import open_url
from knowngood_workers.provision.simple_index import limited, printable

_THREAD = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]{1,9})")
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_STATES = {"open": "open", "closed": "closed"}
_MOST_BYTES = 2 << 20  # an issue's text has 64 KiB at most
_NO_TOKEN = re.compile(r"[^!-~]")  # line ends of files, and what no header may hold
_DAY_S = 24 * 3600
_NUMBER = re.compile(r"[0-9]{1,12}")


def threads_of(issues: Iterable[Issue], looks: Mapping[str, Look]) -> dict[str, Link]:
    """The threads on GitHub, by address: first those by which issues are known, and of these the longest unseen."""
    links = [link for issue in issues for link in issue.links if _THREAD.fullmatch(link.url)]
    days, threads = {url: look.seen for url, look in looks.items()}, dict[str, Link]()
    for link in sorted(links, key=lambda link: (link.kind is not LinkKind.REPORT, days.get(link.url, date.min))):
        threads.setdefault(link.url, link)
    return threads


def read_states(
    threads: Iterable[str], looks: Mapping[str, Look], variables: Mapping[str, str], now: datetime
) -> Iterator[tuple[str, Look | str]]:
    """Yield a look at each thread, or why there is none; the last one where the API cannot be asked, or asks to be left
    alone. `variables` may name another server (GITHUB_API_URL) and hold a token (GITHUB_TOKEN).
    """
    for thread in threads:
        answer, again = _ask(thread, looks.get(thread), variables, now)
        yield thread, answer
        if again:
            return


def _ask(
    thread: str, before: Look | None, variables: Mapping[str, str], now: datetime
) -> tuple[Look | str, datetime | None]:
    """A look at a thread, or why there is none; and until when no other is to be asked for (None: go on)."""
    api = (variables.get("GITHUB_API_URL") or "https://api.github.com").rstrip("/")
    address = api + _THREAD.sub(r"/repos/\1/issues/\2", thread)
    headers = {**_HEADERS, **({"If-None-Match": before.etag} if before and before.etag else {})}
    try:
        token = _NO_TOKEN.sub("", variables.get("GITHUB_TOKEN", ""))
        with open_url(address, variables, headers=headers, timeout_s=20, token=token) as answer:
            state = _STATES[json.loads(limited(answer, _MOST_BYTES))["state"]]
            return Look(state, now.date(), answer.headers.get("ETag", "")), _again(answer.headers, HTTPStatus.OK, now)
    except HTTPError as error:
        again = _again(error.headers, error.code, now)
        if error.code == HTTPStatus.NOT_MODIFIED and before:
            return replace(before, seen=now.date()), again
        until = f"; no more until {again:%Y-%m-%d %H:%M} UTC" if again and again > now else ""
        return f"{error.code} ({printable(str(error.reason), 40)}){until}", again
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return f"the answer is no issue that is open or closed ({printable(repr(error), 100)})", None
    except (OSError, HTTPException) as error:
        return f"GitHub's API cannot be asked: {printable(str(error), 200)}", now


def _again(headers: Message, code: int, now: datetime) -> datetime | None:
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR or code == HTTPStatus.UNAUTHORIZED:
        return now
    after, reset = headers.get("Retry-After", ""), headers.get("X-RateLimit-Reset", "")
    if not after and headers.get("X-RateLimit-Remaining") != "0" and code != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    until_s = int(reset) - now.timestamp() if _NUMBER.fullmatch(reset) else 60
    return now + timedelta(seconds=min(max(asked_wait_s(headers, until_s, _DAY_S), 1), _DAY_S))
