"""Our connection to Ray, as a process of its own: `python -m
knowngood_workers.ray.driver_process`, which only the Ray transport starts.

Ray runs in the process that uses it, and ends that process when something is wrong with the cluster: 60 s after the
head has died, for one (Ray 2.60, measured 2026-11-21). What holds the database must outlive that, so Ray lives here,
behind a guard, with a node of its own beside it, and nothing of the database's in its environment.

The first line on standard input says which node to start; then come orders, one to a line: `start`, `cancel` or `kill`,
a job's number, JSON. Lines on standard output answer alike: `fleet`, `placed`, `event`, `alive`, `lost`, `unplaced`,
`over`.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayError,
    RayTaskError,
    TaskCancelledError,
    TaskUnschedulableError,
    WorkerCrashedError,
)

from knowngood_workers.agent.process_guard import end_with_everything, run_guarded, take_stdout, write_all
from knowngood_workers.ray import task as ray_task
from knowngood_workers.ray.node import CPU_JOBS, NodeProcess, RayNode

_LOOK_S = 1.0
_SILENCE_S = 15.0  # a head that does not answer for so long is gone
_START_S = 180.0
_LINE_BYTES = 64 << 20

Say = Callable[[str, str, bytes], None]

_WORDS = (
    (NodeDiedError, "the machine that ran it is gone: killed, cut off, or restarted"),
    (WorkerCrashedError, "the Ray process that ran its agent died: killed, or out of memory"),
    (ObjectLostError, "what its agent said was lost with the machine that ran it"),
    (TaskUnschedulableError, "the machine it was to run on is gone"),
    (TaskCancelledError, "it was killed"),
)


def describe_failure(problem: BaseException) -> str:
    """Why a task ended early. Without names and addresses of machines: it becomes evidence, which is shipped."""
    for kind, words in _WORDS:
        if isinstance(problem, kind):
            return words
    cause = problem.cause if isinstance(problem, RayTaskError) and problem.cause else problem
    return f"Ray failed: {type(cause).__name__}"


@dataclass
class _JobStream:
    """One job on its way: its stream, and where it went."""

    stream: Any  # Ray has no types for this
    place: dict[str, Any] | None = None


class _Driver:
    def __init__(self, say: Say) -> None:
        self._say = say
        self._streams: dict[str, _JobStream] = {}
        self._carry = ray.remote(num_cpus=0, num_returns="streaming", max_retries=0)(ray_task.run_agent)
        self._ask = ray.remote(num_cpus=0, max_retries=0)(ray_task.ask_to_stop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._dead: set[str] = set()

    def handle_order(self, line: bytes) -> None:
        word, number, body = line.decode().split(" ", 2)
        job_stream = self._streams.get(number)
        if word == "start":
            order = json.loads(body)
            self._streams[number] = job_stream = _JobStream(
                self._carry.options(**order["options"]).remote(order["spec"].encode())
            )
            self._keep(self._follow(number, job_stream))
        elif job_stream is None:
            return  # it has ended meanwhile
        elif word == "kill":
            ray.cancel(job_stream.stream, force=True)
        elif job_stream.place is None:
            ray.cancel(job_stream.stream)
        else:
            self._keep(self._ask_to_stop(job_stream.place))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask_to_stop(self, place: dict[str, Any]) -> None:
        """By a task on the same node: what a task says after Ray cancelled it is lost (measured 2026-11-21)."""
        there = {"ray.io/node-id": place["node"]}
        with suppress(RayError):  # its node is gone, and the job's own stream says so
            await self._ask.options(label_selector=there).remote(*place["agent"])

    async def _follow(self, number: str, job_stream: _JobStream) -> None:
        try:
            async for reference in job_stream.stream:
                word, _, body = (await reference).partition(b" ")
                if word == ray_task.PLACED:
                    job_stream.place = json.loads(body)
                self._say(word.decode(), number, body)
        except (RayError, asyncio.CancelledError) as problem:
            if isinstance(problem, NodeDiedError) and job_stream.place:
                self._dead.add(job_stream.place["node"])
            self._say(
                "lost" if job_stream.place else "unplaced", number, json.dumps(describe_failure(problem)).encode()
            )
        finally:
            del self._streams[number]
            self._say("over", number, b"{}")

    async def watch_fleet(self) -> None:
        """Say who has joined, whenever that changes; ends where the head does not answer any more."""
        reported: list[dict[str, Any]] | None = None
        while True:
            async with asyncio.timeout(_SILENCE_S):
                nodes = await asyncio.to_thread(ray.nodes)
            # The head notices a dead node later than the streams that came from it.
            alive = [node for node in nodes if node["Alive"] and node["NodeID"] not in self._dead]
            members = sorted(map(_member, alive), key=lambda member: member["id"])
            if members != reported:
                self._say("fleet", "-", json.dumps(members).encode())
                reported = members
            await asyncio.sleep(_LOOK_S)


def _member(node: dict[str, Any]) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "id": node["NodeID"],
        "labels": node["Labels"],
        "cpu_jobs": int(resources.get(CPU_JOBS, 0)),
        "gpus": int(resources.get("GPU", 0)),
    }


async def _serve(say: Say, node: NodeProcess) -> None:
    """Obey until standard input ends, the head is silent, or our own node is gone."""
    driver = _Driver(say)
    orders = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    watching = asyncio.ensure_future(driver.watch_fleet())
    standing = asyncio.ensure_future(_watch_node(node))
    listening = asyncio.ensure_future(_listen(orders, driver))
    done, _ = await asyncio.wait({watching, standing, listening}, return_when=asyncio.FIRST_COMPLETED)
    if watching in done:
        problem = watching.exception()
        raise SystemExit(f"the head does not answer any more ({type(problem).__name__})")
    if listening in done and listening.exception():
        raise SystemExit(f"an order could not be read: {listening.exception()}")


async def _listen(orders: asyncio.StreamReader, driver: _Driver) -> None:
    while line := await orders.readline():
        driver.handle_order(line)


async def _watch_node(node: NodeProcess) -> None:
    while node.is_alive():  # noqa: ASYNC110 - a process, not an event
        await asyncio.sleep(0.2)
    raise SystemExit(f"the dispatcher's own Ray node ended: {node.last_words()}")


def _drive() -> None:
    words = take_stdout()
    order = json.loads(_first_line())
    node = NodeProcess(RayNode(order["address"], order["port"], order["ip"]), os.environ)
    if not node.wait_until_started(_START_S):
        sys.exit(f"no Ray node could be started: {node.last_words()}")
    # Ray takes the loopback address for whatever this machine is called by the others.
    address = order["address"] or f"{order['ip'] or '127.0.0.1'}:{order['port']}"
    try:
        # By the folder, Ray finds our own node among several of this machine: a worker's may leave.
        ray.init(address, logging_level=logging.ERROR, log_to_driver=False, _temp_dir=str(node.folder))
    except (RayError, RuntimeError, ConnectionError, ValueError) as problem:
        sys.exit(f"Ray at {address} cannot be used: {problem}")

    def say(word: str, number: str, body: bytes) -> None:
        write_all(words, b"%s %s %s\n" % (word.encode(), number.encode(), body))

    try:
        asyncio.run(_serve(say, node))
    except BrokenPipeError:
        end_with_everything()
    finally:
        node.end()


def _first_line() -> bytes:
    """Byte by byte, so that nothing of what follows is taken."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return bytes(line)


def main() -> None:
    run_guarded(_drive)


if __name__ == "__main__":
    main()
