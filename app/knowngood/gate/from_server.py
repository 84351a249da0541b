"""Asking a server of ours: one request of the standard library's, which takes 40 ms to import where httpx takes 200."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.message import Message
from functools import partial
from http.client import HTTPException
from typing import TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from knowngood.domain.errors import BadRequest, KnownGoodError, ServerUnusable
from knowngood.gate.asking import CODES, Answer

_TIMEOUT_S = 30
_WAITS_S = (0.5, 1.0, 1.5)
_BUSY = frozenset({429, 502, 503, 504})
_NOT_LET_IN = frozenset({401, 403})
_CLIENT_ERRORS = range(400, 500)
_Answered = TypeVar("_Answered")


opener = OpenerDirector()
"""Follows no redirect: Python would ask there without the question, and hand the token over."""
for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
    opener.add_handler(handler())


def ask_server(address: str, fields: Mapping[str, object], forms: Sequence[str], *, advisory: bool) -> Answer:
    """Raises BadRequest where the server does not understand the question, and ServerUnusable."""
    refuse_address(address)
    body = json.dumps(fields).encode()
    how = "&advisory=true" if advisory else ""
    answers = {form: _ask(f"{address.rstrip('/')}/api/v1/gate?format={form}{how}", body) for form in forms}
    decisions = [decision for decision, _ in answers.values()]
    if not CODES.keys() >= set(decisions):
        raise ServerUnusable(f"{place_of(address)} does not answer as a Known Good server would; is the address right?")
    return decisions[0], {form: text for form, (_, text) in answers.items()}


def note_from_server(address: str, build: str, to: str, issues: Sequence[str], hardware: Sequence[str]) -> str:
    """The server's note on the move from a build, in Markdown; where it says to without `to`. Raises as `ask_server`
    does.
    """
    query = urlencode({"from": build, "to": [to] if to else [], "issues": issues, "hardware": hardware}, doseq=True)
    return _ask(f"{address.rstrip('/')}/upgrade.md?{query}")[1]


def refuse_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.username is not None or parts.password is not None:
        raise BadRequest("--server takes no name and password in the address; send a token in KNOWNGOOD_TOKEN")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadRequest(f'--server "{address}" is no address; write for example https://knowngood.example.org')


def _ask(address: str, body: bytes | None = None) -> tuple[str, str]:
    """The decision that the answer's head tells, if any, and the answer."""
    return patiently(address, partial(_send, address, body), _WAITS_S, hopeless=TimeoutError)


def patiently(
    address: str,
    send: Callable[[], _Answered],
    waits_s: Iterable[float],
    *,
    most_s: float = 10,
    on_wait: Callable[[float], None] = lambda _: None,
    refuse: Callable[[str], KnownGoodError] = BadRequest,
    hopeless: type[Exception] | tuple[()] = (),
) -> _Answered:
    """The answer, after as many tries as there are waits between them; a busy server may ask for another wait, up to
    `most_s`. Raises ServerUnusable, and what `refuse` makes of a server's reason not to take what was sent.
    """
    left = iter(waits_s)
    while True:
        try:
            return send()
        except (HTTPException, OSError) as error:
            wait_s, code = next(left, None), getattr(error, "code", None)
            if wait_s is None or code not in {None, *_BUSY} or isinstance(error, hopeless):
                raise _refusal(address, error, refuse) from None
            wait_s = asked_wait_s(error.headers, wait_s, most_s) if isinstance(error, HTTPError) else wait_s
        on_wait(wait_s)
        time.sleep(wait_s)


def _send(address: str, body: bytes | None) -> tuple[str, str]:
    headers = {"User-Agent": "knowngood"} | ({"Content-Type": "application/json"} if body else {})
    if token := os.environ.get("KNOWNGOOD_TOKEN", "").strip():  # a secret that was pasted ends in a line end
        if not (token.isascii() and token.isprintable()):
            raise BadRequest("KNOWNGOOD_TOKEN holds what no token does; it is one line, kg_ and letters and digits")
        headers["Authorization"] = f"Bearer {token}"
    request = Request(address, body, headers)  # noqa: S310 - its scheme was checked
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        return answer.headers.get("Knowngood-Decision", ""), answer.read().decode()


def asked_wait_s(headers: Message, otherwise: float, most: float) -> float:
    """The seconds that a server asks to be left alone, `most` at most; `otherwise` where it does not say."""
    seconds = headers.get("Retry-After", "")
    return min(float(seconds) if seconds.isdigit() else otherwise, most)


def _refusal(address: str, error: Exception, refuse: Callable[[str], KnownGoodError]) -> KnownGoodError:
    place = place_of(address)
    if not isinstance(error, HTTPError):
        return ServerUnusable(f"{place} cannot be reached: {getattr(error, 'reason', error)}")
    detail = _detail_of(error)
    if error.code in _NOT_LET_IN:
        return ServerUnusable(f"{place} lets nobody in without the right KNOWNGOOD_TOKEN: {detail}")
    if target := error.headers.get("Location", ""):
        return ServerUnusable(f"{place} sends elsewhere ({target}); name that place with --server")
    if error.code in _CLIENT_ERRORS and error.headers.get_content_type() == "application/problem+json":
        return refuse(detail)
    return ServerUnusable(f"{place} answers {error.code}: {detail}")


def _detail_of(error: HTTPError) -> str:
    """The detail of a problem, and for anything else the status in words."""
    try:
        return str(json.loads(error.read(100_000))["detail"])
    except (ValueError, TypeError, KeyError, OSError):
        return str(error.reason)


def place_of(address: str) -> str:
    """The server of an address, without what is asked of it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
