"""The one door for text that strangers wrote: what reads it runs in a child process that has limits.

A child may take 2 s of a processor and 300 MB beyond what it starts with, and its result 32 MB. It reads one text and
is gone: nothing of one text stays for the next, and memory goes back. A command that has one thread forks itself. A
server must not (its threads hold locks), so it keeps a template, a process of one thread that has the readers loaded
and forks for each text. Results are pickled: both ends are ours.

Not `concurrent.futures`: where a child dies it breaks its whole pool, and whoever else waits. Not pebble: it is LGPL,
and its limits are of time alone.
"""

import atexit
import gc
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from knowngood.domain.errors import Busy, TextTooCostly
from knowngood.domain.message import Message

PROCESSOR_S = 2
MEMORY_BYTES = 300_000_000
RESULT_BYTES = 32_000_000
_Value = TypeVar("_Value")

WAIT_S = 20
"""How long a child may take by the clock: it may have to wait for a processor."""

AT_ONCE = 8
WAITING = 8
"""So many more may wait for a child; who comes after them is refused."""

_TURN_S = 5
_HEAD = 8
_DETECT = "knowngood.environments.detect"
_READERS = (  # modules by name: they are above this one
    _DETECT,
    "knowngood.environments.conda_env_yaml",
    "knowngood.environments.lockfiles",
    "knowngood.environments.log_cleaning",
    "knowngood.gate.policy_file",
    "knowngood.ask.explain.explaining",
)
_WARM = (
    ("requirements.txt", b"Jinja2==3.1.6\nnumpy>=2\ntorch==2.6.0+cu124 ; python_version >= '3.9'\ntriton==3.2.0\n"),
    ("environment.yml", b"dependencies:\n  - python=3.11\n  - pytorch=2.5.1\n  - pip:\n      - triton==3.1.0\n"),
    ("uv.lock", b'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "torch"\nversion = "2.6.0"\n'),
)
"""Read by the template, and by each child before its text comes: what a reader does for the first time it does here."""
_BY_REASON = {
    "memory": Message("text_memory", n=MEMORY_BYTES // 1_000_000),
    "result": Message("text_result", n=RESULT_BYTES // 1_000_000),
    "processor": Message("text_processor", n=PROCESSOR_S),
}


def read(reader: Callable[..., _Value], *arguments: Any, shared: object = None, **named: Any) -> _Value:  # noqa: ANN401 - the reader's own
    """Call a module's function with these in a child, and return what it returns, or raise what it raises. `shared`,
    where given, is the first argument: a server hands it to the template once, and children find it there.

    Raises TextTooCostly past a limit, and Busy where too many texts are being read.
    """
    if threading.active_count() > 1:
        return cast("_Value", _template.read(reader, arguments, named, shared=shared))
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _answer(theirs, (reader, arguments, named), shared)
    theirs.close()
    with ours:
        result = _receive(ours)
    os.waitpid(child, 0)
    return cast("_Value", _result(result))


def is_ready() -> None:
    """Read a small text through the door of a server. Raises Busy, or what is wrong with the template."""
    read(str, "ready")


def _result(answer: bytes) -> Any:  # noqa: ANN401 - the reader's own
    if not answer:
        raise TextTooCostly(Message("text_unread"))
    kind, value = pickle.loads(answer)  # noqa: S301 - of a child of ours
    if kind == "limit":
        raise TextTooCostly(_BY_REASON[value])
    if kind == "error":
        raise value
    return value


# -- the child ---------------------------------------------------------------------------------------------------------


def _answer(
    out: socket.socket, question: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]], shared: object
) -> None:
    """Read, say what came of it, and end, whatever happens."""
    try:
        with suppress(BrokenPipeError):
            out.sendall(_framed(_run_reader(question, shared)))
    finally:
        os._exit(0)


def _run_reader(question: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]], shared: object) -> bytes:
    reader, arguments, named = question
    try:
        _limit()
        result = reader(*(() if shared is None else (shared,)), *arguments, **named)
        answer = pickle.dumps(("found", result))
        return answer if len(answer) <= RESULT_BYTES else pickle.dumps(("limit", "result"))
    except (MemoryError, _OutOfTime) as error:
        return pickle.dumps(("limit", "memory" if isinstance(error, MemoryError) else "processor"))
    except Exception as error:  # noqa: BLE001 - raised again where the answer is read
        return pickle.dumps(("error", error))


class _OutOfTime(BaseException):
    """The child's share of a processor is used up."""


def _limit() -> None:
    """Begin to count. What does not come back to Python in time (a regular expression) is killed a second later."""
    signal.signal(signal.SIGXCPU, _end)
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S + 1))
    bytes_now = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (bytes_now + MEMORY_BYTES,) * 2)
    os.nice(5)


def _end(_number: int, _frame: object) -> None:
    raise _OutOfTime


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(_HEAD, "big") + content


def _receive(connection: socket.socket) -> bytes:
    """Read what came whole; nothing where the other end died."""
    connection.settimeout(WAIT_S)
    with suppress(OSError), connection.makefile("rb") as file:
        size = int.from_bytes(file.read(_HEAD), "big")
        content = file.read(size)
        return content if len(content) == size else b""
    return b""


# -- the template ------------------------------------------------------------------------------------------------------


class _Template:
    """A process of one thread that forks for each text, started when it is first needed and ended with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(AT_ONCE)
        self._places = threading.Semaphore(AT_ONCE + WAITING)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._shared: object = None
        self._owner = 0
        atexit.register(self.close)

    def close(self) -> None:
        """End the template, if this process started it."""
        if self._process is not None and self._control is not None and self._owner == os.getpid():
            self._control.close()
            self._process.wait()
            self._process = None

    def read(self, *question: Any, shared: object) -> Any:  # noqa: ANN401 - as above
        request = _framed(pickle.dumps((*question, shared is not None)))
        with self._turn(), self._connect(shared) as connection:
            connection.settimeout(WAIT_S)
            with suppress(BrokenPipeError):
                connection.sendall(request)
            return _result(_receive(connection))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Busy("too many texts are being read at once; ask again in a moment")
        try:
            if not self._turns.acquire(timeout=_TURN_S):
                raise Busy("others' texts take long to be read; ask again in a moment")
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._places.release()

    @contextmanager
    def _connect(self, shared: object) -> Iterator[socket.socket]:
        """A connection to a child that was forked for it, and that has what is shared."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                control = self._started()
                if shared is not None and shared is not self._shared:
                    self._share(control, shared)
                socket.send_fds(control, [b"?"], [theirs.fileno()])
            yield ours

    def _started(self) -> socket.socket:
        is_ours = self._owner == os.getpid()  # not that of the process that this one was forked from
        if not is_ours or self._process is None or self._process.poll() is not None or self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._shared, self._owner = None, os.getpid()
            with theirs:
                program = (
                    f"import sys; sys.path[:] = {sys.path!r}; "
                    f"from knowngood import foreign_text; foreign_text.serve_template({theirs.fileno()})"
                )
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", program],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        return self._control

    def _share(self, control: socket.socket, shared: object) -> None:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                socket.send_fds(control, [b"="], [theirs.fileno()])
            ours.sendall(_framed(pickle.dumps(shared)))
            ours.recv(1)
        self._shared = shared


_template = _Template()


def serve_template(descriptor: int) -> None:
    """Fork for each connection that comes, until the process that sends them is gone."""
    control = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C ends the server, and that ends this
    for reader in _READERS:
        import_module(reader)
    _warm_up()
    gc.disable()
    gc.freeze()  # a collection in a child would write to every object, and copy their pages
    shared: object = None
    ready = _forked_ahead(control, shared)
    while True:
        kind, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not kind:
            return
        with socket.socket(fileno=descriptors[0]) as connection:
            if kind == b"=":
                shared = pickle.loads(_receive(connection))  # noqa: S301 - of the process that started this one
                connection.sendall(b"=")
            else:
                socket.send_fds(ready, [kind], [connection.fileno()])
        ready.close()
        ready = _forked_ahead(control, shared)  # without the connection: it ends with the child that answers there


def _warm_up() -> None:
    for name, text in _WARM:
        import_module(_DETECT).read_environment(name, text)


def _forked_ahead(control: socket.socket, shared: object) -> socket.socket:
    """A child that waits for the connection that it is to answer: it was forked before the question came."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        if os.fork() == 0:
            control.close()
            ours.close()
            _warm_up()  # its pages are its own by now: copying them took half of what a small text takes
            _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
            if not descriptors:
                os._exit(0)  # another took its place, or nobody will ask any more
            connection = socket.socket(fileno=descriptors[0])
            *question, is_shared = pickle.loads(_receive(connection))  # noqa: S301 - likewise
            _answer(connection, question, shared if is_shared else None)
    return ours
