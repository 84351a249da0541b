"""`knowngood costs`: the time that workarounds take, measured beside the same code without them; and whether issues are
there that time tells.

Both run in an environment as it is, which has to be a build of the catalogue on which the code without the workaround
runs too: most are measured on a release that has the fix. What comes of it is evidence like any other, and goes the
way of every bundle.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from knowngood.catalogue.loader import read_catalogue
from knowngood.cli.choice import issues_of
from knowngood.cli.context import make_data_dir, opened_with_catalogue, root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import DRY_RUN, HARDWARE, ISSUES, OUTPUT, names, text
from knowngood.cli.output import err, out, whole_file
from knowngood.cli.signals import stoppable
from knowngood.domain.builds.build import Build
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import (
    BASELINE,
    COSTS,
    Issue,
    Variant,
    arm_inapplicable,
    cost_binding,
    default_device,
    digest,
    environment_request,
    inapplicable,
    variants_of,
)
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.measuring.machine import Machine
from knowngood.domain.message import english
from knowngood.domain.observations import different_values
from knowngood.domain.verdicts.outcome import Ending, RunRecord, classify
from knowngood.domain.verdicts.paired_time import (
    MOST,
    STEP,
    THRESHOLD,
    Block,
    as_observed,
    blocks_until_decided,
    cost_of,
)
from knowngood.serialization.lock_keys import InstalledEnvironment
from knowngood.settings import read_settings
from knowngood.share.bundle import BundleHeader, Item, LockText, write_bundle
from knowngood.share.cli import import_bundle
from knowngood_workers.agent.arm_runner import Limits, RunLocation, scratch_folder
from knowngood_workers.agent.timer import NoTime, Trio, busy_cores
from knowngood_workers.dispatch.dispatcher import utc_now
from knowngood_workers.host.gpu_lock import Device, hold, open_gpus
from knowngood_workers.host.machine_info import describe_machine
from knowngood_workers.provision.adopted_env import find_build, inspect_program

_A_PROCESS_S = (1, 6)  # of repros without and with much to compile (16 cores, 2026-11-29)
_SETTLE_S = 15.0


@dataclass(frozen=True)
class Lane:
    """Where one comparison runs: at most two cores, on each of them in turn where a script asks for one thread."""

    place: RunLocation
    root: Path
    cores: tuple[int, ...]
    stop: Callable[[], bool]
    only: Sequence[str] = ()


def measured(
    issue: Issue, timed: str, variant: Variant, device: str, lane: Lane
) -> tuple[str, tuple[float, float], tuple[Block, ...]]:
    """One arm beside the other: which was timed, `calls` or the `whole`, the seconds of the first calls, and the
    blocks. Raises NoTime.
    """
    sides, throttles = (issue.timed_beside, timed, issue.timed_beside), set[str]()
    with (
        scratch_folder(lane.root / "scratch") as scratch,
        Trio(lane.place, scratch, issue.script, [(side, issue.arm(side).env) for side in sides]) as trio,
    ):

        def once(of: str, number: int) -> tuple[tuple[float, ...], Sequence[Mapping[str, Any]]]:
            return trio.block(
                number,
                of,
                params=dict(variant.params),
                device=device,
                cores=lane.cores,
                core=None if "threads" in issue.script else lane.cores[number % len(lane.cores)],
                timeout_s=issue.timeout_s,
            )

        seconds, told = once("calls", 0)
        control, own, _ = (each["observed"] for each in told)
        if issue.is_timed and (not own or different_values(issue, timed, own, [control])):
            raise NoTime("it does not observe what the control does")
        of = "calls" if seconds and not any(each["recompiled"] for each in told) else "whole"

        def block(number: int) -> Block:
            if lane.stop():
                raise NoTime("stopped")
            made, said = once(of, number)
            throttles.update(each["throttle"] for each in said)
            if not made or any(each["recompiled"] for each in said):
                raise NoTime("it compiles again in every call")
            if len(throttles) > 1:
                raise NoTime(f"the card's clocks were held back now and then ({', '.join(sorted(throttles))})")
            return made[0], made[1], made[2]

        return (
            of,
            (told[0]["first_s"], told[1]["first_s"]),
            blocks_until_decided(block, issue.slower_from if issue.is_timed else THRESHOLD),
        )


@dataclass(frozen=True)
class Host:
    """The facts that all evidence of one call of the command has in common."""

    job: str
    build: Build
    imported: Mapping[str, str]
    lock_digest: str
    machine: str


def _timed_ones(issue: Issue, build: Build, only: Sequence[str]) -> Sequence[str]:
    """The arms to time: those of `only`, where it names any, that are no decoys and apply to the build; where time
    tells the issue, the baseline first.
    """
    ids = [*([BASELINE] if issue.is_timed else []), *(one.id for one in issue.workarounds if not one.is_decoy)]
    return [id_ for id_ in ids if (id_ in only or not only) and arm_inapplicable(issue.arm(id_), build) is None]


def costs_in(issue: Issue, hardware: str, host: Host, lane: Lane) -> Iterator[tuple[str, Attempt | NoTime]]:
    """Each arm of an issue, by name, with its evidence, or why there is none: a workaround with the first variant that
    gives some; where time tells the issue, with every variant.
    """
    for timed in _timed_ones(issue, host.build, lane.only):
        for variant in variants_of(issue, BASELINE):
            if variant in variants_of(issue, timed):
                found = _found(issue, timed, variant, hardware, host, lane)
                yield f"{timed} with {variant.id}" if issue.variants else timed, found
                if isinstance(found, Attempt) and not issue.is_timed:
                    break


def _found(issue: Issue, timed: str, variant: Variant, hardware: str, host: Host, lane: Lane) -> Attempt | NoTime:
    began, request = utc_now(), environment_request(issue, host.build)
    try:
        of, firsts, blocks = measured(issue, timed, variant, default_device(issue, hardware), lane)
    except NoTime as why:
        return why
    record = RunRecord(
        Ending.RETURNED,
        observed=as_observed(of, firsts, len(lane.cores), blocks),
        imported={**host.imported, **request.pins},
        sandbox=("process",),
    )
    return Attempt(
        id=uuid4().hex,
        job=host.job,
        issue=issue.id,
        build=host.build.id,
        hardware=hardware,
        arm=COSTS + timed,
        variant=variant.id,
        ordinal=1,
        binding=cost_binding(issue, timed, variant, request),
        record=record,
        log_digest="",
        lock_digest=host.lock_digest,
        machine=host.machine,
        started_at=began,
        finished_at=utc_now(),
    )


def _in_words(issue: Issue, found: Attempt | NoTime, machine: Machine, build: Build) -> str:
    if isinstance(found, Attempt):
        cost = None if issue.is_timed else cost_of(found, machine)
        return english(cost.in_words if cost else classify(found.record, issue, found.arm, build, "").reason)
    return f"no figure: {found}"


@command(
    "Measure the time that workarounds take, and of issues that time tells, in a Python environment as it is.",
    ISSUES,
    text("--python", "The interpreter. Its torch must be a build of the catalogue. Default: this one.", "PROGRAM"),
    names("--only", "Ids of workarounds. Default: all that are no decoys."),
    names("--cores", "The two cores to run on. Default: the first two that this process may use."),
    HARDWARE,
    DRY_RUN,
    OUTPUT,
    example="costs --issues pytorch-151290 --python .venv/bin/python -o costs.jsonl.gz",
)
def costs(
    *,
    issues: Sequence[str],
    python: str,
    only: Sequence[str],
    cores: Sequence[str],
    hardware: Sequence[str],
    dry_run: bool,
    output: Path,
) -> Exit:
    settings = read_settings()
    catalogue = read_catalogue(settings.folders, with_drafts=False)
    environment = inspect_program(python or sys.executable, os.environ)
    build, machine = find_build(environment, catalogue.builds), describe_machine()
    rows = issues_of({issue.id: issue for issue in catalogue.issues}, issues)
    wanted = [
        (issue, class_)
        for class_ in hardware or machine.hardware
        for issue in rows
        if not issue.is_of_team and not issue.packages.mutates
        if environment_request(issue, build).is_met_by(environment.packages)
        if inapplicable(issue, build, class_) is None
    ]
    lane = tuple(_core(core) for core in cores) or tuple(sorted(os.sched_getaffinity(0))[:2])
    n = sum(len(_timed_ones(issue, build, only)) for issue, _ in wanted)
    least, most = (n * STEP * 3 * _A_PROCESS_S[0] // 60, n * MOST * 3 * _A_PROCESS_S[1] // 60)
    err.print(f"{n} arms, {3 * STEP} to {3 * MOST} processes each: {least} to {most} min", highlight=False)
    if dry_run:
        return Exit.OK
    if busy := busy_cores(lane):
        raise BadRequest(f"others use core {busy[0]} now: no time measured there would be true; wait, or name --cores")
    make_data_dir(settings)
    lock = LockText(digest=digest(environment.lock), text=environment.lock)
    host = Host(uuid4().hex, build, environment.imported, lock.digest, machine.digest)
    items: list[Item] = [machine, lock, InstalledEnvironment(lock.digest, environment.packages, environment.imported)]
    header = BundleHeader(utc_now(), "knowngood", {issue.id: issue.revision for issue in rows})
    with stoppable() as stop:
        for issue, class_ in wanted:
            with _gpu(machine, class_, stop) as gpu:
                place = RunLocation(environment.python, (), Limits(machine.memory_bytes), gpu)
                for name, found in costs_in(issue, class_, host, Lane(place, root(settings), lane, stop, only)):
                    words = _in_words(issue, found, machine, build)
                    out.print(f"{issue.id} {name} on {class_}: {words}", markup=False, soft_wrap=True)
                    if isinstance(found, Attempt):
                        items.append(found)
                        with whole_file(output) as file:  # each time, so that nothing is lost with the process
                            write_bundle(file, header, items)
            if stop():
                break
    if output.exists():
        import_bundle(opened_with_catalogue(settings), output)
    return Exit.OK


def _core(text_: str) -> int:
    allowed = sorted(os.sched_getaffinity(0))
    if not text_.isdecimal() or int(text_) not in allowed:
        raise BadRequest(f'--cores names "{text_}"; this process may use {", ".join(map(str, allowed))}')
    return int(text_)


@contextmanager
def _gpu(machine: Machine, hardware: str, stop: Callable[[], bool]) -> Iterator[str]:
    """The one GPU that is used, for nobody else meanwhile; empty where none is needed."""
    if hardware.startswith("cpu-"):
        yield ""
        return
    own = [gpu for gpu in machine.gpus if gpu.hardware == hardware]
    with open_gpus(own, settle_s=_SETTLE_S) as devices:
        device = hold(devices, stop, lambda: None)
        if not isinstance(device, Device):
            raise BadRequest(f"no GPU of {hardware} can be had here: {device.sentence if device else 'stopped'}")
        with device:
            yield device.index
