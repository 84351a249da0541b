"""Hosts on one machine: network namespaces joined by a bridge, and services in them that live and die as containers do.

A service has processes, mounts, IPC and shared memory of its own; with its command everything in it ends, and a
supervisor starts it anew, as compose's `restart: unless-stopped` does. Nothing of this outlives the process that made
it, however that one ends: namespaces, veth pairs and mounts are held by processes, which die with their maker.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

_TOOLS = ("ip", "nsenter", "unshare", "setpriv")
_AGAIN_S = 0.3  # Docker waits 0.1 s at first, and twice as long after each failure
NETWORK = "10.77.0.0/24"
_SWITCH = "10.77.0.1"
_CLONE_NEWNET = 0x4000_0000
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--ipc", "--uts")
# The first process of a container collects the dead, and ends with its command, as `init: true` has it in compose.
_INIT = ("sh", "-c", 'mount -t tmpfs tmpfs /dev/shm || exit 70; "$@"; exit $?', "init")


def why_no_hosts() -> str:
    """Why hosts cannot be made here; empty where they can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"no hosts can be made here: {' and '.join(missing)} not installed (Debian: iproute2, util-linux)"
    if os.geteuid() != 0:
        return "no hosts can be made here: only root may make network namespaces with a bridge"
    try:
        with Network() as network:
            network.add("a")
    except subprocess.CalledProcessError as error:
        return f"no hosts can be made here: {error.stderr.strip()}"
    return ""


class Network:
    """A bridge in a namespace of its own: the machine's own network stays as it is, whatever its addresses are."""

    def __enter__(self) -> Self:
        self._anchors: list[subprocess.Popen[bytes]] = []
        self._switch = self._anchor()
        try:
            _ip(
                self._switch,
                f"link set lo up\nlink add br0 type bridge\naddr add {_SWITCH}/24 dev br0\nlink set br0 up",
            )
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for anchor in self._anchors:
            anchor.kill()
            anchor.communicate()

    def _anchor(self) -> int:
        """A process that does nothing but hold a new network namespace."""
        anchor = subprocess.Popen([*_DIES_WITH_US, "unshare", "--net", "sleep", "infinity"], stderr=subprocess.PIPE)
        self._anchors.append(anchor)
        while _namespace(anchor.pid) == _namespace(os.getpid()):
            if anchor.poll() is not None:
                _, said = anchor.communicate()
                raise subprocess.CalledProcessError(anchor.returncode, "unshare", stderr=said.decode())
            time.sleep(0.01)
        return anchor.pid

    def add(self, name: str) -> "Host":
        """One more host, which every other one reaches."""
        number = len(self._anchors) + 1
        host = Host(name, f"10.77.0.{number}", self._anchor(), f"port{number}", self._switch)
        cable = f"link add {host.port} type veth peer name eth0 netns {host.anchor}"
        _ip(self._switch, cable, f"link set {host.port} master br0 up")
        own = ("link set lo up", f"addr add {host.address}/24 dev eth0", "link set eth0 up")
        _ip(host.anchor, *own, f"route add default via {_SWITCH}")
        return host

    @property
    def namespaces(self) -> frozenset[str]:
        return frozenset(_namespace(anchor.pid) for anchor in self._anchors)

    def enter(self) -> None:
        """Take the calling thread, and no other, to where every host can be reached."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path(f"/proc/{self._switch}/ns/net").open("rb") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")


@dataclass(frozen=True)
class Host:
    """A network of its own; `anchor` holds it, `port` is its end on the switch."""

    name: str
    address: str
    anchor: int
    port: str
    switch: int

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Pull its cable for as long as the block lasts."""
        _ip(self.switch, f"link set {self.port} down")
        try:
            yield
        finally:
            _ip(self.switch, f"link set {self.port} up")


def _ip(namespace: int, *lines: str) -> None:
    command = ["nsenter", f"--net=/proc/{namespace}/ns/net", "ip", "-batch", "-"]
    subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)


def _namespace(pid: int) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""


def held(namespaces: frozenset[str]) -> list[psutil.Process]:
    """Who is in one of these namespaces still."""
    return [process for process in psutil.process_iter() if _namespace(process.pid) in namespaces]


@dataclass
class Service:
    """A command on a host. `folder` is its temporary one, which is new whenever the service is; what it says goes to
    `log`. It is to be started by a thread that outlives it: with that thread it ends.
    """

    name: str
    host: Host
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    log: Path
    starts: int = 0
    is_wanted: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _ended_at: float = field(default=0.0, init=False)

    def start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.folder.chmod(0o1777)
        into = ["nsenter", f"--net=/proc/{self.host.anchor}/ns/net"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_DIES_WITH_US, *into, *_CONTAINER, *_INIT, *self.command],
                env=dict(self.environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.starts += 1

    def keep_alive(self) -> None:
        if not self.is_wanted or self.is_alive:
            self._ended_at = 0.0
            return
        self._ended_at = self._ended_at or time.monotonic()
        if self._process is None or time.monotonic() - self._ended_at >= _AGAIN_S:
            self.start()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """As a power cut: all of it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, seconds: float) -> int:
        """As `docker stop`: the signal goes to the command alone. Tells how it ended."""
        self.is_wanted = False
        if self._process is None:
            return 0
        for process in self.processes()[1:2]:
            process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def processes(self) -> list[psutil.Process]:
        """Everything that lives in it: first its init, then its command."""
        if self._process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children(recursive=True)
        return []

    @property
    def mounts(self) -> frozenset[str]:
        """Where something is mounted in it."""
        lines = Path(f"/proc/{self.processes()[0].pid}/mountinfo").read_text().splitlines()
        return frozenset(line.split()[4] for line in lines)

    def find(self, word: str) -> list[psutil.Process]:
        """Its processes with `word` in their command line, oldest first."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if word in " ".join(process.cmdline()):
                    found.append((process.create_time(), process.pid, process))
        return [process for _, _, process in sorted(found, key=lambda one: one[:2])]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """As a machine that stands still and wakes again, not knowing that it slept."""
        stopped: dict[int, psutil.Process] = {}
        while new := [one for one in self.processes() if one.pid not in stopped]:
            for process in new:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            stopped |= {one.pid: one for one in new}
        try:
            yield
        finally:
            for process in stopped.values():
                with suppress(psutil.NoSuchProcess):
                    process.resume()


@contextmanager
def supervised(services: Sequence[Service]) -> Iterator[None]:
    """Start whatever service is wanted and does not live, in one thread that lasts as long as the block."""
    ending = threading.Event()

    def supervise() -> None:
        while not ending.wait(0.05):
            for service in services:
                service.keep_alive()
        for service in services:
            service.is_wanted = False
            service.kill()

    thread = threading.Thread(target=supervise, name="supervisor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
