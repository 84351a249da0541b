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

    Name the environment with --build, -r, --lock or --here, or use - to read such a file from standard input.
    --issues, --component, --package, --severity and --watch replace what the policy watches. If nothing is watched,
    only facts block (no wheel, no code for the GPU, a driver too old, packages that refuse each other), and what newly
    fails since --base warns. Answers come from --server or --snapshot if given, otherwise from the local store and the
    results of this release.

    \b
    Exit codes:
      0  pass: nothing that you watch rules out this environment
      1  block: the policy forbids it, and the answer says why
      2  usage: the question cannot be understood
      3  not enough evidence: nobody has measured enough to say
      4  unusable: the server, the snapshot or the store cannot be used

    --advisory ends with 0 instead of 1 and 3. Settings: KNOWNGOOD_SERVER (as --server), KNOWNGOOD_TOKEN (sent to it).
    """,
    argument("stdin", "Read such a file from standard input.", required=False, metavar="[-]", type=click.Choice("-")),
    *ENVIRONMENT,
    ISSUES,
    COMPONENT,
    PACKAGE,
    SEVERITY,
    WATCH,
    text("--policy", "The policy. Default: ./knowngood.toml, or [tool.knowngood] of ./pyproject.toml.", "FILE"),
    names(
        "--hardware",
        "Classes such as cpu-x86_64, or GPUs such as H100. Default: every measured one; the worst answer counts.",
    ),
    names("--applied", "Workarounds in place, as ISSUE=WORKAROUND."),
    text("--base", "A build, or a git revision such as origin/main whose file is read, to compare with.", "BASE"),
    flag("--only-new", help_="Do not block on what fails on the base too."),
    flag("--all", "in_full", help_="With --format text: every issue in words, not only what fits on a screen."),
    flag("--advisory", help_="Answer as usual, but end with 0 instead of 1 and 3."),
    option(
        "--format",
        "form",
        type=click.Choice(("text", "json", "junit", "sarif", "codequality", "github", "markdown")),
        default="text",
        help="The form of the answer.",
    ),
    option("-o", "--output", metavar="FILE", default="", help="The file to write. Default: standard output."),
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
