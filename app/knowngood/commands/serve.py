"""`knowngood serve`: the dashboard and the API until it has to stop, by one process or by several on one socket."""

import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import click
import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from knowngood.cli.context import opened
from knowngood.cli.lazy import command
from knowngood.cli.options import HOST, PORT, option
from knowngood.cli.output import err
from knowngood.cli.signals import stoppable, wait
from knowngood.domain.errors import PortTaken
from knowngood.gc_tuning import collect_seldom, give_back_large_blocks, keep_what_is_here
from knowngood.logging_setup import configure
from knowngood.server import begin_to_stop, create_app
from knowngood.settings import Settings, read_settings
from knowngood.store.engine import Engine, connect, may_write
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.metrics.collector import Instruments
from knowngood.web.middleware.connections import Connection

logger = structlog.get_logger(__name__)

_GRACE_S = 7  # for requests that have begun when the server stops; a bundle that is not in by then can be sent again
_END_S = _GRACE_S + 1.5  # then the process ends, whatever its threads do
_SIGN_OF_LIFE_S = 60  # a process that is silent for so long is replaced; importing everything takes 5 s of a busy core
_BACKLOG = 2048  # as uvicorn has it, which says so once more when it begins
_COUNTERS = "PROMETHEUS_MULTIPROC_DIR"


@command(
    "Serve the pages and the API.",
    HOST,
    PORT,
    option("--processes", type=click.IntRange(1, 64), help="How many server processes. Default: 1."),
    example="serve --host 0.0.0.0 --processes 4",
)
def serve(host: str | None, port: int | None, processes: int | None) -> None:
    settings = read_settings()
    configure(settings.log_format, settings.log_level or "info")
    engine = opened(settings)
    if not may_write(engine):
        logger.warning("the store may only be read here: questions are answered, nothing is taken in")
    listening, address = listen(host or settings.host, settings.port if port is None else port)
    if settings.log_format == "json":
        logger.info("serving", address=address)
    else:
        err.print(f"Known Good is at {address}", soft_wrap=True)
    if (processes or settings.processes) > 1:
        _serve_together(listening, processes or settings.processes)
    else:
        Server(engine, settings, listening).run()


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that takes calls before anything else happens, and its address: whoever reads that may ask at once, and
    waits until there is somebody to answer. Raises PortTaken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where a socket says that it is TCP: without, every answer on a kept
    # connection came 40 ms late (20 requests/s instead of hundreds; 2026-11-21).
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except OSError as error:
        raise PortTaken(
            f"cannot listen on {host} port {port} ({error.strerror}); choose another with --port or KNOWNGOOD_PORT"
        ) from None
    shown = f"[{host}]" if ":" in host else host
    return bound, f"http://{shown}:{bound.getsockname()[1]}/"


def _application(engine: Engine, settings: Settings, instruments: Instruments) -> FastAPI:
    collect_seldom()
    give_back_large_blocks()
    rules = AccessPolicy(
        reads_need_token=settings.reads == "token",
        requests_per_s=settings.requests_per_s,
        burst=settings.burst,
        results_limit=settings.results_limit,
        results_per_minute=settings.results_per_minute,
    )
    clock = lambda: datetime.now(UTC)  # noqa: E731 - the clock that the application asks
    app = create_app(engine, clock=clock, version=version("knowngood"), rules=rules, instruments=instruments)
    keep_what_is_here()
    return app


def _config(app: FastAPI | str, **more: Any) -> Any:  # noqa: ANN401 - uvicorn is imported late
    return uvicorn.Config(
        app,
        log_config=None,  # its lines go where ours do
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_S,
        server_header=False,
        http=Connection,
        **more,
    )


class Server:
    """One process, in a thread of its own."""

    def __init__(self, engine: Engine, settings: Settings, listening: socket.socket) -> None:
        self._socket = listening
        self._drain_s = settings.drain_s
        self.app = _application(engine, settings, Instruments())
        self._server = uvicorn.Server(_config(self.app))

    def run(self) -> None:
        """Serve until it has to stop; then report that to balancers for a moment, while still answering."""
        with stoppable() as stop, self.beside() as is_serving:
            wait(lambda: stop() or not is_serving())
            end_in_time(self._drain_s)
            begin_to_stop(self.app)
            time.sleep(self._drain_s if is_serving() else 0)

    @contextmanager
    def beside(self) -> Iterator[Callable[[], bool]]:
        """Serve while something else is done; in the end live pages, which never end, are let go first."""
        serving = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="web", daemon=True)
        serving.start()
        try:
            yield serving.is_alive
        finally:
            begin_to_stop(self.app)
            self._server.should_exit = True
            serving.join(_GRACE_S + 1)


# -- several processes -------------------------------------------------------------------------------------------------


def _serve_together(listening: socket.socket, processes: int) -> None:
    """Run uvicorn's supervisor: it restarts a process that has died or hangs, and stops them all when it has to.

    Counters of requests are kept in files of this folder, where each process finds those of all, also of the dead.
    """

    class Supervisor(Multiprocess):
        def terminate_all(self) -> None:
            """Stop them all and let the socket go: who connects after the last process has gone is refused at once."""
            super().terminate_all()
            listening.close()

    with tempfile.TemporaryDirectory(prefix="knowngood-counters-") as folder:
        os.environ[_COUNTERS] = folder
        alive = {"timeout_worker_healthcheck": _SIGN_OF_LIFE_S}
        config = _config(f"{__name__}:answering", factory=True, workers=processes, **alive)
        Supervisor(config, sockets=[listening]).run()


def answering() -> FastAPI:
    """The application of one of several processes: made by uvicorn in the process itself."""
    settings = read_settings()
    configure(settings.log_format, settings.log_level or "info")
    app = _application(connect(settings.database), settings, Instruments(Path(os.environ[_COUNTERS])))
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    _drain_first(app, settings.drain_s)
    return app


def _end_with_parent() -> None:
    """A supervisor that is killed leaves nobody behind to hold its socket."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def end_in_time(drain_s: float) -> None:
    """End this process once requests that have begun had their time, also where a thread does not end."""
    ending = threading.Timer(drain_s + _END_S, lambda: os._exit(0))
    ending.daemon = True
    ending.start()


def _drain_first(app: FastAPI, drain_s: float) -> None:
    """Put a moment between the signal and what uvicorn does about it."""
    then = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def hear(heard: int, frame: object) -> None:
        begin_to_stop(app)
        end_in_time(drain_s)
        act = then[signal.Signals(heard)]
        if callable(act):
            threading.Timer(drain_s, act, (heard, frame)).start()

    for number in then:
        signal.signal(number, hear)
