"""Commands as processes of their own, each forked of one that has imported the packages of others.

Of the 2.3 s of processor that a command took before it did anything, 1.5 were those imports (`matrix`, a busy machine,
2026-11-21), for each of some two hundred commands. They are made once here. Our own modules are imported by the command
itself, as with `python -m knowngood`, by which test_pipeline.py, test_serve.py and others start theirs.
"""

import atexit
import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MOST_BYTES = 1 << 17  # of a message
_SHARED = (
    "alembic.command alembic.migration alembic.script fastapi jinja2 markdown_it nh3 orjson packaging.requirements "
    "click prometheus_client psutil pygments.formatters pygments.lexers pynvml regex rich.progress "
    "rich.table sqlalchemy.dialects.sqlite starlette.middleware.gzip starlette.templating structlog "
)


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, "-m", "knowngood", *arguments])` with this environment, in the repository."""
    asked = json.dumps([list(arguments), dict(environment)]).encode()
    answers, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with answers, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with its_end:
            socket.send_fds(_keeper(), [asked], [its_end.fileno(), out.fileno(), err.fileno()])
        answers.settimeout(timeout_s)
        pid = answers.recv(16)
        try:
            code = answers.recv(16)
        except TimeoutError:
            os.kill(int(pid), 9)
            raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(list(arguments), int(code), out.read(), err.read())


@cache
def _keeper() -> socket.socket:
    """The socket of the process that forks; it ends with this one."""
    ours, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its_end:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(its_end.fileno())],
            env={"PATH": os.environ["PATH"]},
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its_end.fileno()],
        )
    atexit.register(_end, ours, process)
    return ours


def _end(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    control.close()
    process.wait()


def _keep(control: socket.socket) -> None:
    for name in _SHARED.split():
        import_module(name)
    gc.freeze()
    while True:
        message, handed, _, _ = socket.recv_fds(control, _MOST_BYTES, 3)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _look_after(message, *handed)
            return
        for descriptor in handed:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _look_after(message: bytes, answers: int, out: int, err: int) -> None:
    """Fork once more; the one process tells how the other ends, and that one becomes the command."""
    pid = os.fork()
    if pid:
        os.write(answers, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in (answers, out, err):
        os.close(descriptor)
    arguments, environment = json.loads(message)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["knowngood", *arguments]
    runpy.run_module("knowngood", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _keep(socket.socket(fileno=int(sys.argv[1])))
