"""uv as we call it: which program, which variables, what its output means. Nothing here knows of builds.

uv is always told everything by flag or variable and reads no configuration file, so that the same question has the same
answer on every machine.
"""

import errno
import os
import re
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from tempfile import gettempdir
from time import monotonic
from typing import IO, cast

import uv

from knowngood.domain.errors import KnownGoodError
from knowngood_workers.provision.index_config import Index, read_index

_POLL_S = 0.2
_STOP_S = 10
_SENTENCE_CHARS = 1500

KILLED = "it was killed (SIGKILL) before it was done, as happens where memory runs short"

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NO_SPACE = re.compile(r"No space left on device|os error 28\b|Disk quota exceeded|os error 122\b")
_UNREACHABLE = re.compile(
    r"Failed to fetch|Request failed after|error sending request|client error \(Connect\)|dns error|operation timed out"
    r"|network was disabled|Network connectivity is disabled|HTTP status (?:client|server) error"
    r"|lack of valid authentication credentials|error decoding response body|connection (?:closed|reset)",
    re.IGNORECASE,
)
_UNTRUSTED = re.compile(r"invalid peer certificate", re.IGNORECASE)
_UNSATISFIABLE = re.compile(r"No solution found when resolving")
# What an index says that answers everything with "not found": a wrong address looks like an empty index.
_DOUBTFUL = re.compile(r"was not found in the (?:package registry|provided package locations)")
_CHILD_KILLED = "signal: 9 (SIGKILL)"
# An unpacked wheel, of which uv says that its package is invalid: no statement about the package.
_GONE = re.compile(r"failed to read directory `[^`]*archive-v\d+[^`]*`: No such file")
_LEADING = re.compile(r"^(?:error|cause|hint|warning):\s*")


class Fault(StrEnum):
    UNSATISFIABLE = "unsatisfiable"
    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    DISK_FULL = "disk_full"
    OTHER = "other"


class InstallerFailed(KnownGoodError):
    """uv did not do it. `fault` says what kind of failure; the text is uv's own, without addresses."""

    def __init__(self, fault: Fault, sentence: str, *, is_doubtful: bool = False) -> None:
        super().__init__(sentence)
        self.fault = fault
        self.is_doubtful = is_doubtful


class Cancelled(KnownGoodError):
    """Somebody asked to stop while uv or the build's Python was at work."""


@dataclass(frozen=True)
class ProcessObserver:
    """Who looks on while a program works. `inherited` are descriptors it holds too: a lock outlives us in our child."""

    on_line: Callable[[str], None] = lambda _: None
    is_cancelled: Callable[[], bool] = lambda: False
    inherited: tuple[int, ...] = ()

    def check(self) -> None:
        if self.is_cancelled():
            raise Cancelled("stopped while the environment was being made")


def was_killed(ran: subprocess.CompletedProcess[str]) -> bool:
    """From outside, as by a kernel short of memory: it could say nothing of its reason."""
    return ran.returncode == -signal.SIGKILL


def run_watched(
    command: list[str], *, env: Mapping[str, str], observer: ProcessObserver, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, line by line. Stops it when cancelled; its output is stdout and stderr together."""
    ends_at = None if timeout_s is None else monotonic() + timeout_s
    lines: list[str] = []
    with _started(command, env, observer) as process:
        for line in _lines(process):
            if line is not None:
                lines.append(line)
                observer.on_line(line)
            observer.check()
            if ends_at is not None and monotonic() > ends_at:
                lines.append(f"error: stopped after {timeout_s:g} s")
                return subprocess.CompletedProcess(command, -1, "\n".join(lines))
        return subprocess.CompletedProcess(command, process.wait(), "\n".join(lines))


@contextmanager
def _started(
    command: list[str], env: Mapping[str, str], observer: ProcessObserver
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=observer.inherited,
        process_group=0,  # Ctrl-C in a terminal is for us alone: a uv that hears it too looks like one that failed
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """The lines of its output as they come; None whenever a moment passed without any."""
    pipe, rest = cast(IO[bytes], process.stdout).fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            if not selector.select(_POLL_S):
                yield None
                continue
            chunk = os.read(pipe, 65536)
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (_ANSI.sub("", line.decode(errors="replace")) for line in whole)
    if rest:
        yield _ANSI.sub("", rest.decode(errors="replace"))


@dataclass(frozen=True)
class Installer:
    """uv with one cache. `index` is read from this machine when first needed, unless it is given.

    `root` is where our own folders lie: neither it nor the cache's path is told to those who read a failure. `observer`
    looks on where a call names no other.
    """

    cache: Path
    root: Path | None = None
    given_index: Index | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    observer: ProcessObserver = field(default_factory=ProcessObserver)

    @cached_property
    def index(self) -> Index:
        return self.given_index if self.given_index is not None else read_index(self.environ)

    def variables(self) -> dict[str, str]:
        return {
            "UV_HTTP_TIMEOUT": "300",  # one read; the nvidia wheels stall that long behind scanning proxies
            **self.index.variables,
            "UV_CACHE_DIR": str(self.cache),
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "NO_COLOR": "1",
        }

    def run(self, *arguments: str, observer: ProcessObserver | None = None) -> str:
        """Run uv and give its output. Raises InstallerFailed and Cancelled."""
        command = [uv.find_uv_bin(), *arguments]
        if self.index.no_index and arguments[:1] == ("pip",):
            command.append("--no-index")
        try:
            ran = run_watched(command, env=self.variables(), observer=observer or self.observer)
        except OSError as problem:
            fault = Fault.DISK_FULL if problem.errno in {errno.ENOSPC, errno.EDQUOT} else Fault.OTHER
            raise InstallerFailed(fault, f"uv could not be run: {problem.strerror}") from problem
        # The interpreter that uv asks about itself can be killed as well; uv lives, and says so.
        if was_killed(ran) or (ran.returncode != 0 and _CHILD_KILLED in ran.stdout):
            raise InstallerFailed(Fault.OTHER, KILLED)
        if ran.returncode == 0:
            return ran.stdout
        if _GONE.search(ran.stdout) and forget_missing(self.cache):
            return self.run(*arguments, observer=observer)
        raise self._failed(ran.stdout)

    def lock(
        self, folder: Path, requirements: Iterable[str], *options: str, observer: ProcessObserver | None = None
    ) -> str:
        """The pylock.toml of what these requirements come to; `folder` is written to. Raises as `run` does."""
        wanted, found = folder / "knowngood.in", folder / "pylock.knowngood.toml"
        wanted.write_text("\n".join(requirements), encoding="utf-8")
        found.unlink(missing_ok=True)  # uv would prefer what it holds
        how = ("-o", str(found), "-q", "--no-header", "--format", "pylock.toml", *options)
        self.run("pip", "compile", str(wanted), *how, observer=observer)
        return found.read_text(encoding="utf-8")

    def _failed(self, output: str) -> InstallerFailed:
        fault, is_doubtful = classify_failure(output)
        sentence = self.index.hide(sentence_of(output))
        for path, name in ((self.cache, "<cache>"), (self.root, "<root>"), (Path(gettempdir()), "<tmp>")):
            sentence = sentence.replace(str(path), name) if path is not None else sentence
        return InstallerFailed(fault, sentence, is_doubtful=is_doubtful)


def forget_missing(cache: Path) -> bool:
    """Remove what points to unpacked wheels that are gone; False where nothing does.

    Of wheels from the network uv looks whether they are still there; of those from a folder it believes its pointer and
    fails from then on (uv 0.13.8, 2026-11). It makes folders before links, so that none dangles meanwhile.
    """
    lost = [link for link in cache.glob("wheels-v*/**/*") if link.is_symlink() and not link.exists()]
    for link in lost:
        for pointer in (link, link.with_name(f"{link.name}.http"), link.with_name(f"{link.name}.rev")):
            pointer.unlink(missing_ok=True)
    return bool(lost)


def classify_failure(output: str) -> tuple[Fault, bool]:
    """The kind of failure in uv's output, and whether an unreachable index could hide behind it.

    A resolution that failed because a package could not be looked at is no statement about the package.
    """
    kinds = (
        (_NO_SPACE, Fault.DISK_FULL),
        (_GONE, Fault.OTHER),
        (_UNTRUSTED, Fault.UNTRUSTED),
        (_UNREACHABLE, Fault.UNREACHABLE),
        (_UNSATISFIABLE, Fault.UNSATISFIABLE),
    )
    fault = next((fault for pattern, fault in kinds if pattern.search(output)), Fault.OTHER)
    return fault, fault is Fault.UNSATISFIABLE and bool(_DOUBTFUL.search(output))


def sentence_of(output: str) -> str:
    """uv's message, out of its output: the error with its causes and hints, on one line, without the boilerplate."""
    lines = output.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("error:")), max(0, len(lines) - 5))
    texts = (_LEADING.sub("", line.strip()) for line in lines[first:])
    sentence = " ".join(text for text in texts if text and not _UNSATISFIABLE.search(text))
    return sentence if len(sentence) <= _SENTENCE_CHARS else f"{sentence[:_SENTENCE_CHARS]} ..."
