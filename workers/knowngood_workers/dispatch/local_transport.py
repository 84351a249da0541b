"""Transports bring a job to an agent and its events back. Here is the local one: a subprocess, no server, no setting.

A transport promises four things: events arrive in order as they happen; an agent that dies before its last word raises
`AgentLost`; `cancel` asks and `kill` forces; an agent never outlives the process that started it.
"""

import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from knowngood.domain.errors import KnownGoodError
from knowngood.domain.measuring.job import Event, JobEnded, JobSpec
from knowngood.serialization import codec
from knowngood_workers.agent.process_guard import settle
from knowngood_workers.common.programs import PipedProcess

_LINE_LIMIT_BYTES = 64 << 20
_FAREWELL_S = 10.0


class AgentLost(KnownGoodError):
    """The agent is gone, or talks nonsense, before its job ended. What it had not said did not happen."""


class JobReturned(AgentLost):
    """Nothing is wrong with the job: nobody began it, or its worker took leave. It is queued again; no loss counts."""


class JobHandle(Protocol):
    """One job on its way."""

    def events(self) -> Generator[Event]:
        """Events as they happen, up to JobEnded. Raises Lost, or GivenBack where no loss is to be counted."""

    def cancel(self) -> None:
        """Ask the agent to end soon; it may still say what it was doing."""

    def kill(self) -> None:
        """End the agent and all it started, now."""


class Transport(Protocol):
    def start(self, spec: JobSpec) -> JobHandle:
        """Bring a job on its way. Raises Lost where no agent can be started, GivenBack where no worker is left."""


# What an agent may see of our environment: enough to find programs, caches, certificates and proxies, the settings of
# uv and pip that say where packages come from, and which GPUs it may use. Nothing of ours, no token, no database.
_ALLOWED = frozenset(
    {
        "CC",
        "CUDA_HOME",
        "CUDA_VISIBLE_DEVICES",
        "CXX",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "NO_PROXY",
        "NVIDIA_VISIBLE_DEVICES",
        "PATH",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    }
)
_ALLOWED_PREFIXES = ("UV_", "PIP_")


def agent_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that an agent is given."""
    return {
        name: value for name, value in environment.items() if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }


@dataclass(frozen=True)
class LocalTransport:
    """Runs each job in an agent process of its own on this host.

    `worker_config` is handed to the agent as it is; `command` is how an agent is started.
    """

    worker_config: Mapping[str, Any]
    command: Sequence[str] = (sys.executable, "-m", "knowngood_workers.agent.agent")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def start(self, spec: JobSpec) -> "LocalJobHandle":
        settle()
        try:
            agent = PipedProcess(self.command, agent_environment(self.environment))
        except OSError as error:
            raise AgentLost(f"no agent could be started: {error}") from None
        order = b'{"spec":%s,"worker_config":%s}\n' % (codec.dump_spec(spec), orjson.dumps(self.worker_config))
        return LocalJobHandle(agent, order)


class LocalJobHandle:
    """An agent process."""

    def __init__(self, agent: PipedProcess, order: bytes) -> None:
        self._agent = agent
        self._process = agent.process
        self._order = order
        self._reaping = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name=f"agent-{self.pid}-death", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def events(self) -> Generator[Event]:
        try:
            self._agent.send(self._order)
            yield from self._received()
            self._agent.close_stdin()
            self._watcher.join(_FAREWELL_S)
        finally:
            self.kill()
            self._watcher.join()
            self._agent.close_stdin()
            self._agent.stdout.close()

    def cancel(self) -> None:
        """Only the agent itself is told: what it runs, it ends in its own order."""
        with self._reaping:
            if self._process.returncode is None:
                self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        with self._reaping:
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _received(self) -> Iterator[Event]:
        while line := self._agent.stdout.readline(_LINE_LIMIT_BYTES):
            try:
                event = codec.load_event(line)
            except codec.BadLine as error:
                raise AgentLost(f"the agent said what is no event: {error}") from None
            yield event
            if isinstance(event, JobEnded):
                return
        self._watcher.join(_FAREWELL_S)
        self.kill()
        self._watcher.join()
        raise AgentLost(self._how_it_died())

    def _watch(self) -> None:
        """Wait for the agent's end, then end what is left of its process group, and only then let its number go.

        As long as the agent is a zombie its number cannot name anybody else, so the signal reaches nobody but its own.
        """
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _how_it_died(self) -> str:
        words, code = self._agent.last_words(_FAREWELL_S), self._process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"the agent {how} before its job had ended" + (f"; it said: {words}" if words else "")
