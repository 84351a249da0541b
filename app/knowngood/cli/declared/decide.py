"""Commands that answer whether to use a build, or which one to move to."""

import click

from knowngood.cli.lazy import command, group
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_JSON,
    COMPONENT,
    ENVIRONMENT,
    FILE,
    GROUPS,
    ISSUES,
    OUTPUT,
    PACKAGE,
    PATH,
    PLATFORM,
    PUBLIC_KEY,
    SEVERITY,
    SNAPSHOT_FILE,
    argument,
    flag,
    names,
    option,
    text,
)

_FORMS = click.Choice(("text", "json", "markdown"))
_AS_FORMAT_JSON = flag("--json", "as_json", help_="The same as --format json.")
_HARDWARE = names("--hardware", "Classes such as cpu-x86_64, or GPUs such as H100; every measured one unless said.")
_WATCH = names("--watch", "Names of watch lists.")

GATE = command(
    "knowngood.gate.cli.asking:ask",
    """Say whether an environment may be used, for the issues you watch, and why.

    Name the environment with one of --build, -r, --lock, --here, or - for one of these files from standard input. What
    is to be looked at (--issues, --component, --package, --severity, --watch) takes the place of what the policy
    watches. The local store answers unless --server or --snapshot is given, together with the results that come with
    this release; these alone where there is no store.

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
    _WATCH,
    text("--policy", "./knowngood.toml, or [tool.knowngood] of ./pyproject.toml, unless said.", "FILE"),
    names(
        "--hardware",
        "Classes such as cpu-x86_64, or GPUs such as H100; every measured one unless said, the worst counts.",
    ),
    names("--applied", "Workarounds in place, as ISSUE=WORKAROUND."),
    text("--base", "The build that --only-new compares with.", "BUILD"),
    flag("--only-new", help_="Let pass what fails on the base build too."),
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
SNAPSHOT = command(
    "knowngood.gate.cli.snapshot:snapshot",
    "Write what the gate knows to a signed file; `gate --snapshot FILE` answers from it without a server.",
    OUTPUT,
    option("--key", type=FILE, help="Signs it; one in the data folder unless said, made the first time."),
    example="snapshot -o knowngood.snapshot",
)
COMPARE = command(
    "knowngood.move.compare.cli:compare",
    "Compare two builds, issue by issue; the first line is the answer. Only a proven pass counts as fixed.\n\n"
    "Exit codes: 0 compared; 1 a transition of --fail-on was found; 2 the question cannot be understood, such as a "
    "build that is not known; 3 no issue answers on both builds, so that nothing was compared; 4 the store cannot be "
    "used.",
    argument("a", "The build that is left, such as torch-2.5.1+cu124, or 2.5.1.", default=""),
    argument("b", "The build that is moved to.", default=""),
    text("--from-diff", "In place of A and B: what this checkout's files state now, and at this revision.", "REVISION"),
    text("--hardware", "One class; cpu-x86_64 unless said, where it was measured.", "CLASS"),
    ISSUES,
    option("--format", "form", type=_FORMS, default="text", help="How it is told."),
    _AS_FORMAT_JSON,
    names("--fail-on", "Transitions that end in exit code 1 where one is found, such as regressed."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="compare 2.5.1 2.6.0 --fail-on regressed",
)
UPGRADE = command(
    "knowngood.move.upgrade.cli:upgrade",
    "Rank newer builds for what you watch: what is gained, lost, new and not known on each.",
    text("--from", "The build you are on: its id, or a version of torch.", "BUILD", "start"),
    option("-r", "--requirements", type=PATH, help="In place of --from: a file as `gate -r` and --lock take it."),
    GROUPS,
    _WATCH,
    ISSUES,
    COMPONENT,
    PACKAGE,
    SEVERITY,
    text("--python", "The Python it must be for; as now without.", "VERSION"),
    PLATFORM,
    text("--cuda", "The CUDA it must be built for: 12.8, or <13.", "VERSION"),
    text("--driver", "The NVIDIA driver it must run on, such as 550.54.15.", "VERSION"),
    _HARDWARE,
    names("--pin", "Such as triton==3.4.0."),
    names("--has", "Packages beside torch that rows may concern, such as torchao; or `none`."),
    option(
        "--enough",
        type=click.IntRange(50, 100),
        help="The percentage of what does not fail there that must be known to pass; 80.",
    ),
    text("--to", "The candidate that the note is for; the recommended one without.", "BUILD"),
    option("--format", "form", type=_FORMS, default="text", help="Markdown is the note for a pull request."),
    _AS_FORMAT_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="upgrade --from 2.5.1 --component Inductor",
)

_WATCHLISTS = "knowngood.gate.watchlists.cli"
_OWNER = text("--owner", "The token's name that may change it over the network; yours without.", "NAME")
WATCH = group(
    "Keep watch lists: named choices of issues that the gate can be asked with.",
    add=command(
        f"{_WATCHLISTS}:add",
        "Keep a list under this name; one that is there gets a new version with exactly this.",
        argument("name", "Such as vision-team."),
        ISSUES,
        names("--components", "Such as Dynamo."),
        names("--packages", "Packages that issues need beside torch."),
        SEVERITY,
        _HARDWARE,
        text("--description", "What it is for, in one line."),
        _OWNER,
        example="watch add vision-team --components Inductor --severity high",
    ),
    **{
        "import": command(
            f"{_WATCHLISTS}:take_in",
            "Take lists from a repository's file: all of them, or none where one has a problem.",
            argument("file", "A TOML file with tables [watchlists.NAME], or a policy file.", type=PATH),
            text("--name", "Only this list; for a policy file, what its [watch] is to be called.", "NAME"),
            _OWNER,
            example="watch import knowngood.toml --name vision-team",
        )
    },
    list=command(f"{_WATCHLISTS}:tell_all", "All watch lists with what they name.", AS_JSON, example="watch list"),
    remove=command(
        f"{_WATCHLISTS}:remove",
        "Remove a list; the gate then refuses questions that name it. Its versions stay on record.",
        argument("name", "As `watch list` shows it."),
        example="watch remove vision-team",
    ),
)
