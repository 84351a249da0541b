"""Commands as processes of their own, each forked of one that has imported what commands are made of.

Of the 1.8 s of processor that `run --dry-run` took, 1.5 were imports (a busy machine, 2026-11-23), for each of some
three hundred commands. They are made once here: packages of others, and our own modules below the command line. What
declares a command, and what looks at its terminal and its environment as it is imported (knowngood.cli), is imported by
the command itself. That each command imports what it needs is shown by those that are started as people start them, in
test_command_line.py, test_pipeline.py, test_serve.py and others.
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
from typing import IO

_ROOT = Path(__file__).parents[1]
_MOST_BYTES = 1 << 17  # of a message
_SHARED = (
    "alembic.command alembic.migration alembic.script fastapi jinja2 markdown_it nh3 orjson packaging.requirements "
    "click prometheus_client psutil pygments.formatters pygments.lexers pynvml regex rich.progress "
    "rich.table sqlalchemy.dialects.sqlite starlette.middleware.gzip starlette.templating structlog "
    "knowngood.share.store knowngood.store.knowledge.signed_snapshot "
    "knowngood.catalogue.loader knowngood.server knowngood.settings knowngood.store.migrations "
    "knowngood_workers.dispatch.dispatcher knowngood_workers.dispatch.local_transport knowngood_workers.pack.builder "
    "knowngood_workers.provision.adopted_env knowngood_workers.provision.simple_index uvicorn"
)


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    folder: Path = _ROOT,
    stdin: str = "",
    through: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([*through, sys.executable, "-m", "knowngood", *arguments])` with this environment, there.

    `through` is a program that runs another one, with fewer rights.
    """
    asked = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
    answers, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with answers, _file(stdin) as given, _file() as out, _file() as err:
        with its_end:
            streams = [given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(_keeper(*through), [asked], [its_end.fileno(), *streams])
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


def _file(text: str = "") -> IO[str]:
    file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by who asked
    file.write(text)
    file.seek(0)
    return file


@cache
def _keeper(*through: str) -> socket.socket:
    """The socket of the process that forks; it ends with this one."""
    ours, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its_end:
        process = subprocess.Popen(
            [*through, sys.executable, "-m", __name__, str(its_end.fileno())],
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
        message, handed, _, _ = socket.recv_fds(control, _MOST_BYTES, 4)
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


def _look_after(message: bytes, answers: int, *streams: int) -> None:
    """Fork once more; the one process tells how the other ends, and that one becomes the command."""
    pid = os.fork()
    if pid:
        os.write(answers, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        os.write(answers, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    for descriptor in (answers, *streams):
        os.close(descriptor)
    arguments, environment, folder = json.loads(message)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["knowngood", *arguments]
    runpy.run_module("knowngood", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _keep(socket.socket(fileno=int(sys.argv[1])))
