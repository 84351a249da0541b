import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.measuring.job import ArmFinished, ArmSpec, ArmStarted, Event, JobEnded, JobSpec, JobStarted
from knowngood_workers.dispatch.local_transport import AgentLost, LocalJobHandle, LocalTransport, agent_environment
from tests.make import HARDWARE, make_build
from tests.waiting import eventually

TOY = (sys.executable, "-m", "tests.workers.toy_agent")
ROOT = Path(__file__).parents[3]


def spec(*does: str, **params: Any) -> JobSpec:
    build = make_build()
    arms = tuple(
        ArmSpec(f"a{n}", "toy-1", "baseline", "default", n, "b" * 32, "s", {"does": what, **params}, {}, (), 60.0)
        for n, what in enumerate(does, start=1)
    )
    return JobSpec("j-1", 1, build, HARDWARE, EnvironmentRequest(build.id, (), (), mutates=False), {"s": ""}, arms)


@pytest.fixture
def transport(tmp_path: Path) -> LocalTransport:
    return LocalTransport({"ledger": str(tmp_path / "ledger")}, TOY)


def ledger(tmp_path: Path) -> list[list[str]]:
    path = tmp_path / "ledger"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def none_alive(tmp_path: Path) -> bool:
    pids = {int(pid) for _, *pids in ledger(tmp_path) for pid in pids}
    return not any(is_alive(pid) for pid in pids)


def is_alive(pid: int) -> bool:
    """A process may end between any two questions that are asked about it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def follow(handle: LocalJobHandle, at_start: Callable[[], None] = lambda: None) -> tuple[list[Event], str]:
    """Events up to the end, and how it was lost (empty: it was not); `at_start` is called as an arm starts."""
    events: list[Event] = []
    try:
        for event in handle.events():
            events += [event]
            if isinstance(event, ArmStarted):
                at_start()
    except AgentLost as lost:
        return events, str(lost)
    return events, ""


def test_events_arrive_in_the_order_they_happened(transport: LocalTransport) -> None:
    events, lost = follow(transport.start(spec("pass", "match")))
    assert not lost
    assert isinstance(events[0], JobStarted)
    assert [event.attempt for event in events if isinstance(event, ArmStarted | ArmFinished)] == [
        "a1",
        "a1",
        "a2",
        "a2",
    ]
    assert events[-1] == JobEnded("j-1", 1)


@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        pytest.param(
            "die", "the agent was killed by SIGKILL before its job had ended; it said: about to die", id="killed"
        ),
        pytest.param(
            "exit", "the agent ended with exit code 7 before its job had ended; it said: no more room", id="exited"
        ),
        pytest.param("babble", "the agent said what is no event: .*Segmentation fault", id="talks nonsense"),
    ],
)
def test_an_agent_that_dies_early_is_lost_and_it_is_told_how(
    transport: LocalTransport, tmp_path: Path, does: str, sentence: str
) -> None:
    events, lost = follow(transport.start(spec("pass", does)))
    assert re.search(sentence, lost), lost
    assert [event.attempt for event in events if isinstance(event, ArmFinished)][:1] == ["a1"]
    assert eventually(lambda: none_alive(tmp_path))


def test_an_agent_that_cannot_be_started_is_lost() -> None:
    with pytest.raises(AgentLost, match="no agent could be started"):
        LocalTransport({}, ("/nowhere/agent",)).start(spec("pass"))


def test_a_cancelled_agent_ends_in_its_own_order(transport: LocalTransport, tmp_path: Path) -> None:
    handle = transport.start(spec("hang", "pass"))

    def cancel() -> None:
        assert eventually(lambda: len(ledger(tmp_path)) == 1)
        handle.cancel()

    events, _ = follow(handle, cancel)
    assert events[-1] == JobEnded("j-1", 1, "cancelled")
    assert len([event for event in events if isinstance(event, ArmFinished)]) == 1


def test_a_killed_agent_leaves_nothing_behind(transport: LocalTransport, tmp_path: Path) -> None:
    handle = transport.start(spec("deaf"))

    def kill() -> None:
        assert eventually(lambda: len(ledger(tmp_path)) == 1)
        handle.cancel()
        handle.kill()

    _, lost = follow(handle, kill)
    assert "killed by SIGKILL" in lost
    assert eventually(lambda: none_alive(tmp_path))
    handle.kill()
    handle.cancel()


def test_a_follower_that_turns_away_ends_the_agent(transport: LocalTransport, tmp_path: Path) -> None:
    handle = transport.start(spec("hang"))
    events = handle.events()
    for event in events:
        if isinstance(event, ArmStarted):
            break
    assert eventually(lambda: len(ledger(tmp_path)) == 1)
    events.close()
    assert eventually(lambda: none_alive(tmp_path))


def test_an_agent_is_given_no_secret_and_no_setting_of_ours(tmp_path: Path) -> None:
    seen = agent_environment(
        {
            "PATH": "/bin",
            "HOME": "/home/me",
            "UV_CACHE_DIR": "/cache",
            "PIP_INDEX_URL": "https://packages",
            "KNOWNGOOD_DATABASE_URL": "postgresql://secret@db/x",
            "KNOWNGOOD_TOKEN": "kg_secret",
            "PGPASSWORD": "secret",
            "GITHUB_TOKEN": "secret",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "PYTHONPATH": "/elsewhere",
        }
    )
    assert sorted(seen) == ["HOME", "PATH", "PIP_INDEX_URL", "UV_CACHE_DIR"]
    command = (sys.executable, "-c", "import os, sys; sys.exit(' '.join(sorted(os.environ)))")
    secretive = LocalTransport(
        {}, command, {**os.environ, "KNOWNGOOD_DATABASE_URL": "secret", "GITHUB_TOKEN": "secret"}
    )
    _, lost = follow(secretive.start(spec("pass")))
    assert "PATH" in lost
    assert "KNOWNGOOD" not in lost
    assert "TOKEN" not in lost
