"""`knowngood wheels`: is there a wheel, and what to change where there is none; can every build still be installed."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

import click

from knowngood.ask.wheels.machine import on_machine, read_machine
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, argument, flag, option, text
from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.builds.platforms import PLATFORMS, platform_words
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import english
from knowngood.environments.resolve import index_of_variant
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, pythons_in_words, read_requirement
from knowngood.environments.wheels.table import shipped_claims, shipped_wheels
from knowngood.gate.renderers.common import wrapped
from knowngood.gate.renderers.json import as_json as write_value

_BACKENDS = index_of_variant("")


@command(
    "Say whether the public index has a wheel of torch, or of a package used with it, and what to change if not.\n\n"
    "Exit codes: 0 there is one; 1 there is none; 3 not known; 2 the text names no single release. Answers come "
    "from the table of wheels in this release, and about GPUs from what was read in installed wheels; no index is "
    "asked. What sources claim about other indexes is marked as a claim and never counts as a yes.\n\n"
    "With --check the index is asked about every build of the catalogue: 0 each can be installed; 1 one cannot "
    "any more; 4 the index cannot be used.",
    argument(
        "requirement", "A release, torch==2.8.0; or torch alone: its newest release with such a wheel.", default=""
    ),
    text("--python", "3.14, or 3.14t without the GIL.", "VERSION"),
    text("--platform", f"linux, windows, macos; or one of {', '.join(PLATFORMS)}.", "NAME"),
    text("--gpu", "The GPU that it must have code for: H100, 'RTX 5090', sm_90.", "NAME"),
    text("--driver", "The NVIDIA driver that it must run on: 550.54.15.", "VERSION"),
    text("--cuda", "The CUDA that it must be built for: 12.8.", "VERSION"),
    flag("--check", help_="Ask the index whether every build of the catalogue can still be installed."),
    option(
        "--resolve",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="With --check: also resolve N builds at most, the newest first, as if they were installed.",
    ),
    text("--backends", "With --check: where the indexes of torch backends (cu126, ...) are.", "URL", default=_BACKENDS),
    AS_JSON,
    example='wheels torch --gpu "RTX 5090"',
)
def wheels(
    *,
    requirement: str,
    python: str,
    platform: str,
    gpu: str,
    driver: str,
    cuda: str,
    check: bool,
    resolve: int,
    backends: str,
    as_json: bool,
) -> Exit:
    asked = (requirement, python, platform, gpu, driver, cuda)
    if check and any(asked):
        raise BadRequest("--check asks about every build; of the others it takes --resolve, --backends and --json")
    if check:
        return _check(resolve, backends, as_json=as_json)
    if not requirement or resolve or backends != _BACKENDS:
        raise BadRequest("name a requirement such as torch==2.8.0; or --check, which --resolve and --backends go with")
    machine, (package, release) = read_machine(gpu, driver, cuda), read_requirement(requirement)
    table, known = shipped_wheels(), known_here("", ()) if machine.gpu else None
    answer = find_wheel(package, release, python, platform, table)
    answer = on_machine(answer, machine, known, table, shipped_claims(), is_named=bool(release))
    if as_json:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2, default=write_value) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(answer)) + "\n")
    return {True: Exit.OK, False: Exit.FINDING, None: Exit.INSUFFICIENT}[answer.exists]


_FIRST = {True: "Yes", False: "No", None: "Not known"}


def _lines(answer: WheelAnswer) -> Iterator[str]:
    glibc = f" (glibc {answer.glibc} or newer)" if answer.glibc else ""
    yield from wrapped(f"{_FIRST[answer.exists]}: {english(answer.why)}{glibc}.")
    if answer.exists:
        yield f"    pip install {answer.package}=={answer.release}"
    if answer.changes:
        yield ""
        yield "By a claim:" if answer.exists is None and answer.changes[0].sources else "Change one:"
    for change in answer.changes:
        what = f"Python {change.python}" if change.python else f"{answer.package} {change.release}"
        yield f"  {what:<16} {change.command}{'   (claim)' if change.sources else ''}"
    for sources, read_on in dict.fromkeys((change.sources, change.read_on) for change in answer.changes):
        yield from (f"  claimed by {source}, read on {read_on}" for source in sources)
    if answer.notes:
        yield ""
    for note in answer.notes:
        yield from wrapped(f"{english(note)}.")
    if answer.pythons:
        yield ""
        yield f"Wheels of {answer.package} {answer.release}, {answer.released}:"
    yield from (
        f"  {platform_words(name):<16} Python {pythons_in_words(pythons)}" for name, pythons in answer.pythons.items()
    )
    yield f"Read from the public index on {answer.read_on}."


def _check(resolve: int, backends: str, *, as_json: bool) -> Exit:
    # What asks an index and resolves comes with the server's packages.
    from knowngood.ask.wheels.check import check_listed, check_resolved, keep
    from knowngood_workers.provision.index_config import read_index
    from knowngood_workers.provision.simple_index import SimpleIndex

    builds = sorted(known_here().builds.values(), key=lambda build: build.build_id, reverse=True)
    checks = {check.build: check for check in check_listed(builds, SimpleIndex(read_index(os.environ)), backends)}
    keep(checks.values())
    chosen = [build for build in builds if checks[build.id].is_installable][:resolve]
    if chosen:
        sys.stderr.write(f"resolving {len(chosen)} of {len(builds)} builds\n")
        checks |= {check.build: check for check in check_resolved(chosen)}
    counts = Counter(check.is_installable for check in checks.values())
    if as_json:
        sys.stdout.write(json.dumps([vars(checks[build.id]) for build in builds], ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_check_lines([checks[build.id] for build in builds], counts)) + "\n")
    return Exit.FINDING if counts[False] else Exit.OK


def _check_lines(checks: list[BuildCheck], counts: Mapping[bool | None, int]) -> Iterator[str]:
    yield from (f"{check.build}: {check.why}" for check in checks if not check.is_installable)
    resolved = f"{counts[True]} can be installed, {counts[False]} cannot any more"
    yield f"{len(checks)} builds: {resolved}, of {counts[None]} it is not known"
