"""The application behind a real server, in a thread of this process. As processes: commands/test_serve.py."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from knowngood.server import end_streams
from knowngood.web.middleware.connections import Connection

_GRACE_S = 30  # as in app/knowngood/commands/serve.py


@contextmanager
def served(app: FastAPI, *, port: int = 0, http: type[Connection] = Connection) -> Iterator[str]:
    """Its address on loopback, at a free port unless one is named; in the end its event streams are let go first.

    uvicorn leaves the logging of this process alone: its own would stay for all tests that come after.
    """
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            port=port,
            log_config=None,
            log_level=None,
            timeout_graceful_shutdown=_GRACE_S,
            http=http,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        end_streams(app)
        server.should_exit = True
        thread.join()
