"""The settings of this machine for an agent that works here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from knowngood.cli.context import root
from knowngood.settings import Settings
from knowngood_workers.agent.agent import WorkerConfig
from knowngood_workers.agent.arm_runner import Limits


def dump_worker_config(settings: Settings, adopted: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """How agents work on this machine, as JSON can carry it."""
    worker_config = WorkerConfig(
        root=root(settings),
        slots=settings.slots,
        envs_limit_bytes=settings.envs_limit,
        limits=Limits(memory_bytes=settings.memory_limit),
        fork_server=settings.fork,
        min_isolation=settings.min_isolation,
        max_isolation=settings.max_isolation,
        max_gpu_isolation=settings.max_gpu_isolation,
        adopted=adopted or {},
    )
    return cast("dict[str, Any]", TypeAdapter(WorkerConfig).dump_python(worker_config, mode="json"))
