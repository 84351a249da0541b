"""The Ray task: an agent for one job on a node of the fleet, whose events go back as they happen.

The agent is the very one that the local transport starts, by the local transport; here is only the way to it. What
comes back are frames: a word, a space, JSON. The agent dies with the process of Ray's that started it.
"""

import json
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from knowngood.serialization import codec
from knowngood_workers.dispatch.local_transport import AgentLost, LocalJobHandle, LocalTransport
from knowngood_workers.provision.environment_cache import list_ready
from knowngood_workers.ray.node import NODE, AgentLaunchSpec

PLACED = b"placed"
EVENT = b"event"
LOST = b"lost"
ALIVE = b"alive"

BEAT_S = 10.0
"""So often at least a task says something. Whoever hears nothing for long knows that its machine is cut off or frozen:
Ray noticed neither within four minutes where the machine was frozen (2.60, 2026-11-21).
"""


def run_agent(spec: bytes) -> Iterator[bytes]:
    """Do a job on this node: where it is and what this node has, then every event, or how the agent was lost."""
    import ray  # noqa: PLC0415 - only Ray's own processes come here, and they have it

    launch_text = os.environ.get(NODE)
    if launch_text is None:
        yield _frame(LOST, f"a node joined that was not started by `knowngood worker`: it has no {NODE}")
        return
    launch_spec = AgentLaunchSpec.load(launch_text)
    try:
        handle = transport_for(launch_spec, [int(number) for number in ray.get_gpu_ids()], dict(os.environ)).start(
            codec.load_spec(spec)
        )
        node = ray.get_runtime_context().get_node_id()
        yield _frame(PLACED, {"node": node, "agent": _process_identity(handle.pid), "ready": _ready_at(launch_spec)})
    except AgentLost as lost:
        yield _frame(LOST, str(lost))
        return
    try:
        yield from _frames_of(handle)
    finally:
        handle.kill()


def _frames_of(handle: LocalJobHandle) -> Iterator[bytes]:
    frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_follow, args=(handle, frames), name="agent-events", daemon=True).start()
    while True:
        try:
            frame = frames.get(timeout=BEAT_S)
        except queue.Empty:
            yield _frame(ALIVE, {})
            continue
        if frame is None:
            return
        yield frame


def _follow(handle: LocalJobHandle, frames: "queue.SimpleQueue[bytes | None]") -> None:
    try:
        for event in handle.events():
            frames.put(EVENT + b" " + codec.dump_event(event))
    except AgentLost as lost:
        frames.put(_frame(LOST, str(lost)))
    finally:
        frames.put(None)


def transport_for(launch_spec: AgentLaunchSpec, numbers: list[int], environ: dict[str, str]) -> LocalTransport:
    """The local transport of this node for a job that Ray gave these of its GPUs; none for a job of the CPU class.

    The agent sees every GPU of the machine, which is part of what the machine is, and uses those that are the job's.
    """
    environ.pop("CUDA_VISIBLE_DEVICES", None)
    if launch_spec.visible is not None:
        environ["CUDA_VISIBLE_DEVICES"] = launch_spec.visible
    worker_config = dict(launch_spec.worker_config)
    if numbers:
        worker_config["gpus"] = [launch_spec.gpus[number] for number in numbers]
    return LocalTransport(worker_config, launch_spec.command, environ)


def ask_to_stop(pid: int, born: float) -> None:
    """Ask an agent on this node to end soon. The moment of its birth keeps its number from naming another process."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.create_time() == born:
            process.terminate()


def _process_identity(pid: int) -> list[float]:
    try:
        return [pid, psutil.Process(pid).create_time()]
    except psutil.Error:
        return [pid, 0.0]


def _ready_at(launch_spec: AgentLaunchSpec) -> list[str]:
    root = launch_spec.worker_config.get("root")
    return sorted(list_ready(Path(root) / "environments")) if root else []


def _frame(word: bytes, value: Any) -> bytes:  # noqa: ANN401 - what JSON holds
    return word + b" " + json.dumps(value).encode()
