"""The faults of the fleet's soak are real: what is cut off hears nothing, what is frozen stands still, and so on."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.soak.hosts import Host, Network, Service, held, supervised, why_no_hosts
from tests.waiting import eventually

ECHO = "import socketserver as s\ns.ThreadingTCPServer(('', 80), type('H', (s.StreamRequestHandler,), {'handle': \
lambda self: self.wfile.write(b'here')})).serve_forever()"
SLEEPERS = ("sh", "-c", "setsid sleep 1000 & sleep 1000")


@pytest.fixture
def network() -> Iterator[Network]:
    if reason := why_no_hosts():
        pytest.skip(reason)
    with Network() as made:
        yield made


@contextmanager
def running(host: Host, folder: Path, *command: str) -> Iterator[Service]:
    environment = {"PATH": os.environ["PATH"]}
    service = Service("one", host, command, environment, folder / "own", folder / "log", is_wanted=True)
    with supervised([service]):
        assert eventually(lambda: len(service.processes()) > 1)
        yield service


def answers(network: Network, host: Host) -> bool:
    heard: list[bytes] = []

    def ask() -> None:
        network.enter()
        try:
            with socket.create_connection((host.address, 80), timeout=1.0) as connection:
                heard.append(connection.recv(9))
        except OSError:
            return

    visitor = threading.Thread(target=ask)
    visitor.start()
    visitor.join()
    return heard == [b"here"]


def test_a_host_that_is_cut_off_or_frozen_says_nothing_until_it_is_back(network: Network, tmp_path: Path) -> None:
    host, other = network.add("a"), network.add("b")
    with running(host, tmp_path, sys.executable, "-c", ECHO) as service:
        assert eventually(lambda: answers(network, host))
        for fault in (host.cut_off, service.frozen):
            with fault():
                assert not answers(network, host)
            assert eventually(lambda: answers(network, host))
        with other.cut_off():
            assert answers(network, host)


def test_what_is_killed_leaves_nothing_and_is_there_again(network: Network, tmp_path: Path) -> None:
    with running(network.add("a"), tmp_path, *SLEEPERS) as service:
        assert eventually(lambda: len(service.find("sleep 1000")) >= 2)
        before = service.processes()
        service.kill()
        assert eventually(lambda: not any(process.is_running() for process in before))
        assert eventually(lambda: service.starts == 2 and len(service.find("sleep 1000")) >= 2)
        service.find("sleep 1000")[0].kill()
        last = service.processes()
    assert eventually(lambda: not any(process.is_running() for process in last))


def test_a_network_leaves_nothing(network: Network, tmp_path: Path) -> None:
    with Network() as gone:
        gone.add("a")
        namespaces = gone.namespaces
        assert held(namespaces)
    assert eventually(lambda: not held(namespaces))
    assert len(namespaces) == 2
