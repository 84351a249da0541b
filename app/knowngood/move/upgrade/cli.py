"""`knowngood upgrade --from BUILD`: which build to move to, for what is watched."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import click

from knowngood.cli.knowledge import Ground, ground_here, recorded_here
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_FORMAT_JSON,
    COMPONENT,
    FORMS,
    GROUPS,
    ISSUES,
    PACKAGE,
    PATH,
    PLATFORM,
    PUBLIC_KEY,
    RESOLVE,
    SEVERITY,
    SNAPSHOT_FILE,
    WATCH,
    flag,
    names,
    option,
    text,
)
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.message import Message, english
from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.asking import environment_of
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.renderers import migration_note, upgrade_text
from knowngood.move.upgrade.request import (
    UntestedStart,
    UpgradeRequest,
    gpus_of,
    has_of,
    read_upgrade,
    start_name,
    start_of,
)
from knowngood.store.knowledge.model import Knowledge

Names = tuple[str, ...]


_HARDWARE = names("--hardware", "Classes such as cpu-x86_64, or GPUs such as H100. Default: every measured one.")


@command(
    "Rank newer builds for what you watch: what is gained, lost, new and not known on each.",
    text("--from", "The build you are on: its id, or a version of torch.", "BUILD", "start"),
    option("-r", "--requirements", type=PATH, help="Instead of --from: any file that `gate` takes with -r or --lock."),
    GROUPS,
    WATCH,
    ISSUES,
    COMPONENT,
    PACKAGE,
    SEVERITY,
    text("--python", "The Python it must be for. Default: the one you have.", "VERSION"),
    PLATFORM,
    text("--cuda", "The CUDA it must be built for: 12.8, or <13.", "VERSION"),
    text("--driver", "The NVIDIA driver it must run on, such as 550.54.15.", "VERSION"),
    _HARDWARE,
    names("--pin", "What it must have exactly, such as triton==3.4.0."),
    names("--has", "The packages you use with torch, such as torchao or torchvision==0.22.1; or `none`."),
    option(
        "--enough",
        type=click.IntRange(50, 100),
        help="The percentage of what does not fail there that must be known to pass. Default: 80.",
    ),
    text("--to", "The candidate that the note is for. Default: the recommended one.", "BUILD"),
    RESOLVE,
    option("--format", "form", type=FORMS, default="text", help="Markdown is the note for a pull request."),
    flag("--all", "in_full", help_="Every candidate and issue in words, not only what fits on a screen."),
    AS_FORMAT_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="upgrade --from 2.5.1 --component Inductor",
)
def upgrade(
    *,
    start: str,
    requirements: Path | None,
    groups: Names,
    watch: Names,
    issues: Names,
    component: Names,
    package: Names,
    severity: str,
    python: str,
    platform: str,
    cuda: str,
    driver: str,
    hardware: Names,
    pin: Names,
    has: Names,
    enough: int | None,
    to: str,
    resolve: bool,
    form: str,
    in_full: bool,
    as_json: bool,
    snapshot: str,
    public_keys: Names,
) -> None:
    if bool(start) == bool(requirements):
        raise BadRequest("say which build you are on: --from a build or version, or -r a file that names it")
    if groups and not requirements:
        raise BadRequest("--groups names extras and groups of a file; give that with -r")
    ground = ground_here(snapshot, public_keys)
    request = UpgradeRequest(
        start=start,
        watch=watch,
        issues=issues,
        component=component,
        package=package,
        severity=severity,
        python=python,
        platform=platform,
        cuda=cuda,
        driver=driver,
        hardware=hardware,
        pin=pin,
        has=has,
        enough=enough,
        to=to,
    )
    if requirements:
        resolved = _environment_in(requirements, python, groups, platform, ground.knowledge)
        request = replace(
            request,
            start=start_name(resolved),
            platform=LINUX if resolved.platforms else "",
            hardware=request.hardware or gpus_of(resolved),
            driver=request.driver or resolved.driver,
            has=(*request.has, *has_of(resolved.packages)),
            is_whole=resolved.is_whole,
        )
    advice = _advice(request, ground, resolve=resolve)
    sys.stdout.write(_render(advice, "json" if as_json else form, to, in_full=in_full))


def note_here(
    build: str, to: str, issues: Sequence[str], hardware: Sequence[str], snapshot: str, public_keys: Sequence[str]
) -> str:
    """The note on the move from a tested build, in Markdown; where it says to without `to`. Of what answers nothing is
    said here.
    """
    request = UpgradeRequest(start=build, issues=tuple(issues), hardware=tuple(hardware))
    return _note(_advice(request, ground_here(snapshot, public_keys, quietly=True)), to)


def _advice(request: UpgradeRequest, ground: Ground, *, resolve: bool = False) -> UpgradeAdvice:
    question = read_upgrade(request, ground.knowledge, recorded_here(ground))
    if resolve:
        from knowngood.environments.wheels.resolution import torch_beside

        question = replace(
            question,
            notes=(torch_beside(request.packages or {}, question.start.python, LINUX), *question.notes),
        )
    return advise(question, ground.knowledge.known)


def _environment_in(file: Path, python: str, groups: Names, platform: str, knowledge: Knowledge) -> ResolvedBuild:
    """The build that it is. Raises UntestedStart where it is none."""
    read: Any = environment_of({"requirements": str(file), "lock": "", "here": False, "build": ""})["environment"]
    resolved = start_of(PurePath(read["name"]).name, read["content"], python, knowledge, groups, platform)
    if resolved.build is None:
        raise UntestedStart("from", english(Message("no_build_here", why=resolved.why_none)), resolved.nearest)
    return resolved


def _render(advice: UpgradeAdvice, form: str, to: str, *, in_full: bool) -> str:
    if form == "json":
        from knowngood.move.schemas import upgrade_body

        return json.dumps(upgrade_body(advice).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    return _note(advice, to) if form == "markdown" else upgrade_text(advice, in_full=in_full)


def _note(advice: UpgradeAdvice, to: str) -> str:
    """For a build that is not recommended there is a note only where it is asked for by name."""
    try:
        candidate = advice.chosen(to)
    except UnknownBuild:
        known = ", ".join(other.build.id for other in advice.candidates) or "none"
        raise BadRequest(f'--to "{to}" is no candidate; candidates: {known}') from None
    return migration_note(advice, candidate, now=datetime.now(UTC))
