"""`knowngood gate`."""

from typing import Any

import click

from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    COMPONENT,
    ENVIRONMENT,
    ISSUES,
    PACKAGE,
    PUBLIC_KEY,
    SEVERITY,
    SNAPSHOT_FILE,
    WATCH,
    argument,
    flag,
    names,
    option,
    text,
)
from knowngood.gate.asking import answer_in, finish


@command(
    """Say whether an environment may be used, for the issues you watch, and why.

    Name the environment with one of --build, -r, --lock, --here, or - for one of these files from standard input. What
    is to be looked at (--issues, --component, --package, --severity, --watch) takes the place of what the policy
    watches. Where nothing is watched, facts block (no wheel, no code for the GPU, a driver too old, packages that
    refuse each other), and what fails only since --base warns. The local store answers unless --server or --snapshot is
    given, together with the results that come with this release; these alone where there is no store.

    \b
    Exit codes:
      0  pass: nothing that you watch speaks against this environment
      1  block: the policy forbids it, and the answer says why
      2  usage: the question cannot be understood
      3  not enough evidence: nobody has measured enough to say
      4  unusable: the server, the snapshot or the store cannot be used

    --advisory ends 0 in place of 1 and 3. Settings: KNOWNGOOD_SERVER (as --server), KNOWNGOOD_TOKEN (sent to it).
    """,
    argument("stdin", "One of these files from standard input.", required=False, metavar="[-]", type=click.Choice("-")),
    *ENVIRONMENT,
    ISSUES,
    COMPONENT,
    PACKAGE,
    SEVERITY,
    WATCH,
    text("--policy", "./knowngood.toml, or [tool.knowngood] of ./pyproject.toml, unless said.", "FILE"),
    names(
        "--hardware",
        "Classes such as cpu-x86_64, or GPUs such as H100; every measured one unless said, the worst counts.",
    ),
    names("--applied", "Workarounds in place, as ISSUE=WORKAROUND."),
    text("--base", "A build, or a git revision such as origin/main whose file is read, to compare with.", "BASE"),
    flag("--only-new", help_="Let pass what fails on the base too."),
    flag("--all", "in_full", help_="With the form text: every issue in words; without, as much as fits on a screen."),
    flag("--advisory", help_="Tell all the same, and end 0 in place of 1 and 3."),
    option(
        "--format",
        "form",
        type=click.Choice(("text", "json", "junit", "sarif", "codequality", "github", "markdown")),
        default="text",
        help="How it is told.",
    ),
    option("-o", "--output", metavar="FILE", default="", help="Where it goes; printed unless said."),
    text("--server", "The address of a server to ask.", "URL"),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="gate -r requirements.txt --issues all --hardware cpu-x86_64",
)
def gate(*, in_full: bool, **options: Any) -> Exit:  # noqa: ANN401 - the parameters of the command by their names
    """Ask, print, and say how to end."""
    options["form"] = "full" if in_full and options["form"] == "text" else options["form"]
    return finish(answer_in([options["form"]], options), options)
