"""`knowngood wheels`: is there a wheel, and what to change where there is none."""

import json
import sys
from collections.abc import Iterator

from knowngood.ask.wheels.machine import on_machine, read_machine
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, argument, text
from knowngood.domain.builds.platforms import PLATFORMS, platform_words
from knowngood.domain.message import english
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, pythons_in_words, read_requirement
from knowngood.environments.wheels.claims import shipped_claims
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.gate.renderers.json import as_json as write_value


@command(
    "Say whether the public index has a wheel of torch, or of a package beside it, and what to change if not.\n\n"
    "Ends 0 where there is one, 1 where there is none, 3 where that is not known, 2 for a text that names no single "
    "release. It answers from the table of wheels that comes with this release, and of GPUs from what was read in "
    "wheels that were installed; no index is asked. What sources claim of other indexes is marked so and is no yes.",
    argument("requirement", "torch==2.8.0; or torch alone: its newest release with such a wheel."),
    text("--python", "3.14, or 3.14t without the GIL.", "VERSION"),
    text("--platform", f"linux, windows, macos; or one of {', '.join(PLATFORMS)}.", "NAME"),
    text("--gpu", "The GPU that it must have code for: H100, RTX 5090, sm_90.", "NAME"),
    text("--driver", "NVIDIA's driver that it must run on: 550.54.15.", "VERSION"),
    text("--cuda", "The CUDA that it must be built for: 12.8.", "VERSION"),
    AS_JSON,
    example='wheels torch --gpu "RTX 5090"',
)
def wheels(*, requirement: str, python: str, platform: str, gpu: str, driver: str, cuda: str, as_json: bool) -> Exit:
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
    yield f"{_FIRST[answer.exists]}: {english(answer.why)}{glibc}."
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
    yield from (f"{english(note)}." for note in answer.notes)
    if answer.pythons:
        yield ""
        yield f"Wheels of {answer.package} {answer.release}, {answer.released}:"
    yield from (
        f"  {platform_words(name):<16} Python {pythons_in_words(pythons)}" for name, pythons in answer.pythons.items()
    )
    yield f"Read from the public index on {answer.read_on}."
