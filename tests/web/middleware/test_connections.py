"""Heads and bodies that do not come, readers that do not read, and one address that wants every connection."""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import ClassVar
from urllib.parse import urlsplit

import h11
import pytest
from fastapi import Response

from knowngood.store.engine import Engine
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.middleware.connections import Connection
from tests.serving import served
from tests.waiting import eventually
from tests.web.asking import app_over

PATIENCE_S = 30.0
HEAD = b"POST /api/v1/gate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


class Clocked(Connection):
    """By a clock that tests move: for a connection no time passes by itself, however busy the machine is."""

    look_every_s = 0.05
    most_of_one = 8
    made: ClassVar[list["Clocked"]] = []
    time_s: ClassVar[list[float]] = [1000.0]
    came = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.made.append(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.came += len(data)

    @property
    def awaits_a_body(self) -> bool:
        return self._waits_for is h11.SEND_BODY

    def now(self) -> float:
        return self.time_s[0]


class Patient(Clocked):
    """Waits for its reader for ever."""

    unread_s = 1e9


def let_pass(seconds: float) -> None:
    Clocked.time_s[0] += seconds


@pytest.fixture(scope="module")
def address(notebook: Engine) -> Iterator[str]:
    app = app_over(notebook, rules=AccessPolicy(requests_per_s=0))
    with served(app, http=Clocked) as address:
        yield urlsplit(address).netloc


@contextmanager
def sent(address: str, first: bytes) -> Iterator[tuple[socket.socket, Clocked]]:
    """A connection on which this has come to the server, and the server's end of it."""
    before = len(Clocked.made)
    with connected(address) as connection:
        connection.sendall(first)
        assert eventually(lambda: len(Clocked.made) > before and Clocked.made[-1].came == len(first))
        yield connection, Clocked.made[-1]


@contextmanager
def connected(address: str, source: str = "127.0.0.2") -> Iterator[socket.socket]:
    """From another address of this machine than the one that proxies are trusted at."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S, source_address=(source, 0)) as connection:
        yield connection


def told(connection: socket.socket) -> tuple[int, dict[str, object]]:
    """The status and the problem of an answer after which the connection ends; 0 where there was none."""
    got = b""
    with suppress(ConnectionResetError):
        while more := connection.recv(65536):
            got += more
    if not got:
        return 0, {}
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"content-security-policy" in head.lower()
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("first", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", HEAD])
def test_half_a_head_is_not_waited_for(address: str, first: bytes) -> None:
    with sent(address, first) as (connection, _):
        let_pass(Clocked.head_s + 1)
        status, problem = told(connection)
    assert (status, problem["status"]) == (408, 408)
    assert "10 s to come" in str(problem["detail"])


def test_a_trickle_is_no_head_either(address: str) -> None:
    with sent(address, b"G") as (connection, theirs):
        for n in range(2, int(Clocked.head_s)):
            let_pass(1)
            connection.sendall(b"G")
            assert eventually(lambda n=n: theirs.came == n)  # type: ignore[misc]
        let_pass(3)
        assert told(connection)[0] == 408


def test_half_of_a_second_head_is_not_waited_for(address: str) -> None:
    with sent(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as (connection, theirs):
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        came = theirs.came
        connection.sendall(b"GET /healthz HTT")
        assert eventually(lambda: theirs.came > came)
        let_pass(Clocked.head_s + 1)
        assert told(connection)[0] == 408


@pytest.mark.parametrize("length", [b"Content-Length: 100000", b"Transfer-Encoding: chunked"])
def test_half_a_body_is_not_waited_for(address: str, length: bytes) -> None:
    with sent(address, HEAD + length + b"\r\n\r\n2710\r\n" + b"x" * 4000) as (connection, theirs):
        assert eventually(lambda: theirs.awaits_a_body)
        let_pass(Clocked.body_s + 2)
        status, problem = told(connection)
    assert (status, "KiB" in str(problem["detail"])) == (408, True)


def test_half_a_body_is_not_waited_for_where_it_came_behind_another_request(address: str) -> None:
    """The second request begins without a byte coming, once the first one is answered."""
    first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD + b"Content-Length: 100000\r\n\r\nx"
    with sent(address, first) as (connection, theirs):
        got = connection.recv(65536)
        assert eventually(lambda: theirs.awaits_a_body)
        let_pass(Clocked.body_s + 2)
        while more := connection.recv(65536):
            got += more
    assert [got.startswith(b"HTTP/1.1 200"), got.count(b"HTTP/1.1 408")] == [True, 1]


def test_a_body_that_goes_on_coming_has_the_time_it_needs(address: str) -> None:
    """Twice what one has that does not come."""
    body = b'{"issues": ["fla-160"], "build": "torch-2.6.0+cu124", "x": "' + b"x" * 600_000 + b'"}'
    head = HEAD + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    with sent(address, head) as (connection, theirs):
        for start in range(0, len(body), 30_000):
            came = theirs.came + len(piece := body[start : start + 30_000])
            connection.sendall(piece)
            assert eventually(lambda came=came: theirs.came == came)  # type: ignore[misc]
            let_pass(2 * Clocked.body_s / 20)
        assert told(connection)[0] == 422


@pytest.mark.parametrize(
    ("wire", "status", "said"),
    [
        (b"GET /?a=" + b"x" * 70_000, 431, "64 KiB"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431, "64 KiB"),
        (b"nonsense\r\n\r\n", 400, "Invalid HTTP request"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2_000, 400, "chunks of at least 64 bytes"),
    ],
)
def test_what_no_application_is_asked_about_is_refused_as_a_problem(
    address: str, wire: bytes, status: int, said: str
) -> None:
    with connected(address) as connection:
        connection.sendall(wire)
        got, problem = told(connection)
    assert (got, said in str(problem["detail"])) == (status, True)


def test_an_answer_is_not_kept_for_who_does_not_read_it(address: str) -> None:
    before = len(Clocked.made)
    with connected(address) as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 100)  # more than sockets hold
        assert eventually(lambda: len(Clocked.made) > before and Clocked.made[-1].flow.write_paused)
        theirs = Clocked.made[-1]

        def is_dropped() -> bool:
            let_pass(Clocked.unread_s / 10)
            return bool(theirs.transport.is_closing())

        assert eventually(is_dropped)


def test_a_reader_who_goes_on_reading_has_the_time_it_takes(notebook: Engine) -> None:
    """Of an answer in one piece, most of which waits here for a long time."""
    app = app_over(notebook, rules=AccessPolicy(requests_per_s=0))
    app.add_api_route("/large", lambda: Response(bytes(32 << 20)))
    before = len(Clocked.made)
    with served(app, http=Patient) as address, connected(urlsplit(address).netloc) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert eventually(lambda: len(Clocked.made) > before and Clocked.made[-1].flow.write_paused)
        theirs = Clocked.made[-1]
        since = theirs.unread_since
        let_pass(1)
        assert len(connection.makefile("rb").read(4 << 20)) == 4 << 20
        assert eventually(lambda: theirs.unread_since > since)


def test_one_address_has_so_many_connections_and_others_are_answered(address: str) -> None:
    """Those that wait go first; whoever asks is answered, from the same address too."""
    with ExitStack() as held:
        for _ in range(60):
            held.enter_context(connected(address)).sendall(b"GET / HTTP/1.1\r\n")
        for source in ("127.0.0.2", "127.0.0.3", "127.0.0.1"):
            asking = http.client.HTTPConnection(address, timeout=PATIENCE_S, source_address=(source, 0))
            asking.request("GET", "/healthz")
            assert asking.getresponse().status == 200
            asking.close()


def test_who_is_answered_is_not_put_out_for_who_comes(address: str) -> None:
    with connected(address) as stream:
        stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        with ExitStack() as held:
            *_, (waiting, theirs) = [held.enter_context(sent(address, b"GET / HTTP/1.1\r\n")) for _ in range(20)]
            let_pass(Clocked.head_s + 1)
            assert told(waiting)[0] == 408
            assert eventually(theirs.transport.is_closing)
        stream.setblocking(False)
        with pytest.raises(BlockingIOError):
            stream.recv(1)


def test_a_proxy_that_is_trusted_speaks_for_many(address: str) -> None:
    with ExitStack() as held:
        asking = [held.enter_context(connected(address, "127.0.0.1")) for _ in range(20)]
        for one in asking:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert all(one.recv(65536).startswith(b"HTTP/1.1 200") for one in asking)
