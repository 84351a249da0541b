"""`knowngood wheels`: is there a wheel, and what to change where there is none."""

import json
import sys
from collections.abc import Iterator

from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, argument, text
from knowngood.domain.builds.platforms import PLATFORMS, platform_words
from knowngood.domain.message import english
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, pythons_in_words, read_requirement
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.gate.renderers.json import as_json as write_value


@command(
    "Say whether the public index has a wheel of torch, or of a package beside it, and what to change if not.\n\n"
    "Ends 0 where there is one, 1 where there is none, 3 where that is not known, 2 for a text that names no single "
    "release. It answers from the table of wheels that comes with this release; no index is asked.",
    argument("requirement", "torch==2.8.0; or torch alone: its newest release with such a wheel."),
    text("--python", "3.14, or 3.14t without the GIL.", "VERSION"),
    text("--platform", f"linux, windows, macos; or one of {', '.join(PLATFORMS)}.", "NAME"),
    AS_JSON,
    example="wheels torch==2.8.0 --python 3.14 --platform windows",
)
def wheels(*, requirement: str, python: str, platform: str, as_json: bool) -> Exit:
    answer = find_wheel(*read_requirement(requirement), python, platform, shipped_wheels())
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
        yield "Change one:"
    for change in answer.changes:
        what = f"Python {change.python}" if change.python else f"{answer.package} {change.release}"
        yield f"  {what:<16} {change.command}"
    yield from (f"{english(note)}." for note in answer.notes)
    if answer.pythons:
        yield ""
        yield f"Wheels of {answer.package} {answer.release}, {answer.released}:"
    yield from (
        f"  {platform_words(name):<16} Python {pythons_in_words(pythons)}" for name, pythons in answer.pythons.items()
    )
    yield f"Read from the public index on {answer.read_on}."
