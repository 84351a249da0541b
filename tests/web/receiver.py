"""A real HTTP receiver of webhooks: it verifies signatures by itself, and does to the sender what a test asks for."""

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any

import orjson


@dataclass
class Received:
    """One request that came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> Any:
        return orjson.loads(self.body)

    def is_signed_with(self, secret: str) -> bool:
        """As the specification has receivers do it, written down here a second time."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return any(hmac.compare_digest(f"v1,{wanted}", one) for one in self.headers["webhook-signature"].split(" "))


Answering = Callable[[BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Answering:
    def answering(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answering


@dataclass
class Receiver:
    """`answers` are given one after the other, the last one again and again."""

    address: str = ""
    answers: list[Answering] = field(default_factory=lambda: [answer(204)])
    received: list[Received] = field(default_factory=list)

    def next_answer(self) -> Answering:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def receiving(*answers: Answering, tls: SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    receiver = Receiver(answers=list(answers) or [answer(204)])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(self.path, headers, body))
            receiver.next_answer()(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    receiver.address = f"{scheme}://{host}:{server.server_address[1]}/hook?team=a"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
