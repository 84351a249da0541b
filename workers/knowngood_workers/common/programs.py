"""Other programs: short ones that are asked one thing, and long ones that are spoken to over pipes."""

import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, cast


def ask_program(
    command: Sequence[str], environ: Mapping[str, str] | None = None, *, timeout_s: float, cwd: str | None = None
) -> str | None:
    """Standard output of a program that ended well in time; None where it did not, or is not there."""
    env = None if environ is None else dict(environ)
    try:
        ran = subprocess.run(
            command, env=env, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout if ran.returncode == 0 else None


class PipedProcess:
    """A program in a session of its own, so that Ctrl-C is not for it; the end of its standard error is remembered.

    Its standard input stays open for as long as we live: the end of it says that nobody wants the program any more.
    Raises OSError where it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], *, lines: int = 20, line_bytes: int = 500
    ) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ), start_new_session=True
        )
        self.stdout = cast(IO[bytes], self.process.stdout)
        self._stdin = cast(IO[bytes], self.process.stdin)
        self._last_lines: deque[bytes] = deque(maxlen=lines)
        self._listener = threading.Thread(target=self._listen, args=(line_bytes,), name="stderr", daemon=True)
        self._listener.start()

    def send(self, line: bytes) -> None:
        """One that is dead already hears nothing; reading from it then tells how it died."""
        with suppress(BrokenPipeError):
            self._stdin.write(line)
            self._stdin.flush()

    def close_stdin(self) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()

    def last_words(self, wait_s: float = 0.0) -> str:
        """The end of what it wrote on standard error, waited for at most so long."""
        self._listener.join(wait_s)
        return b"".join(self._last_lines).decode(errors="replace").strip()

    def _listen(self, line_bytes: int) -> None:
        with cast(IO[bytes], self.process.stderr) as stderr:
            for line in stderr:
                self._last_lines.append(line[-line_bytes:])
