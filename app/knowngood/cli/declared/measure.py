"""Commands that run the catalogue, plan what to run, or look whether this machine can."""

from pathlib import Path

import click

from knowngood.cli.lazy import command
from knowngood.cli.options import (
    AS_JSON,
    BUILDS,
    DRY_RUN,
    FAIL_ON,
    FILE,
    FILE_HERE,
    FORCE,
    HARDWARE,
    ISSUES,
    PATH,
    SIZES,
    argument,
    flag,
    names,
    option,
    text,
)

_FOLDER = click.Path(file_okay=False, path_type=Path)
_MINUTES = click.FloatRange(min=1)

RUN = command(
    "knowngood.measure.run:run",
    "Run what is not known yet, store the evidence, print the matrix; without a word default builds, all issues.",
    BUILDS,
    ISSUES,
    HARDWARE,
    option("--repeat", type=click.IntRange(1, 100), default=1, help="Answers wanted of every arm."),
    flag(
        "--confirm",
        help_="Only of cells with an answer, what their claims rest on: two attempts, three on both sides of a change, "
        "ten where mixed; and every workaround with each variant that fails.",
    ),
    FORCE,
    flag(
        "--where-affected",
        help_="Workarounds only on the builds where their issue is seen: a fraction of the arms.",
    ),
    flag("--no-workarounds", help_="Controls and baselines alone: whether the issue is there."),
    flag("--next", "next_up", help_="What `next` says is worth most, in that order."),
    option("--minutes", type=_MINUTES, default=60, help="With --next: how long it may take."),
    DRY_RUN,
    SIZES,
    option("--pack", type=_FOLDER, help="Run what this pack holds, without network."),
    names("--python", "Interpreters whose own torch is used as it is: a column of the catalogue."),
    option("-o", "--output", type=FILE, help="Write the results as a bundle; with --pack always."),
    AS_JSON,
    FAIL_ON,
    example="run --builds 2.6.0 --issues pytorch-151290",
)
NEXT = command(
    "knowngood.measure.scheduling.cli:next_",
    "Say what to measure next, in order and with reasons; `run --next` does it.",
    option("--minutes", type=_MINUTES, default=60, help="How long it may take."),
    names("--hardware", "Classes; this machine's own without."),
    flag("--offline", help_="Ask no package index: sizes as far as they are known here."),
    AS_JSON,
    example="next --minutes 30",
)
RECHECK = command(
    "knowngood.measure.recheck:recheck",
    "Ask cells with an answer, drawn by chance, once more; ends in 1 where a verdict changed.",
    option("--cells", type=click.IntRange(min=1), default=200, help="How many cells to ask once more."),
    text("--seed", "The same seed draws the same cells; printed."),
    text("--python", "Ask what the default Python said on this one, such as 3.12.", "VERSION"),
    BUILDS,
    ISSUES,
    HARDWARE,
    DRY_RUN,
    SIZES,
    AS_JSON,
    example="recheck --cells 20 --builds 2.6.0",
)
BISECT = command(
    "knowngood.measure.bisect:bisect",
    "Find the build that broke an issue, or mended it, in few jobs; 1: not monotone, 3: nothing to find.",
    argument("issue", "The issue's id."),
    option(
        "--from",
        "from_",
        required=True,
        metavar="BUILD",
        help="One end: a build's id, or a version of torch such as 2.4.1.",
    ),
    option("--to", required=True, metavar="BUILD", help="The other end, on the same line of builds."),
    text("--hardware", "One class; without, the first where the issue can be.", "CLASS"),
    text("--python", "The Python of every build of the line, such as 3.12.", "VERSION"),
    flag("--full", help_="Ask every build that is not known, instead of halving."),
    flag("--confirm", help_="Ask stored sides of the change for what confirming it needs."),
    flag("--dry-run", help_="Tell what is known and which job would be first."),
    SIZES,
    AS_JSON,
    example="bisect pytorch-151290 --from 2.4.1 --to 2.7.0 --dry-run",
)
HERE = command(
    "knowngood.measure.here:here",
    "Run the catalogue inside a Python environment as it is: what fails there, and what helps there.",
    text("--python", "The interpreter of the environment; this very one unless said.", "PROGRAM"),
    ISSUES,
    flag("--force", help_="Run again, whatever is known of this environment."),
    AS_JSON,
    FAIL_ON,
    example="here --python .venv/bin/python",
)
PACK = command(
    "knowngood.measure.pack:pack",
    "Pack builds, issues and the worker for a machine without network; there: `python3 DIR/run.py`.",
    option("-o", "--output", type=PATH, required=True, help="The pack's folder: new, or a pack to extend."),
    BUILDS,
    ISSUES,
    option("--python", metavar="VERSION", help="The Python there, such as 3.12; the builds' own unless said."),
    text("--platform", "The machine there.", default="manylinux_2_28_x86_64"),
    text("--part-size", "The most a part may have: 60M, 2G.", "SIZE", default="1G"),
    option(
        "--exclude-installed",
        type=FILE_HERE,
        help="What is installed there (`pip freeze`): its wheels stay out.",
    ),
    example="pack -o pack --builds 2.6.0 --issues all",
)
DOCTOR = command(
    "knowngood.measure.doctor:doctor",
    "Say whether this machine is able, and what to do where it is not.",
    AS_JSON,
    example="doctor",
)
