"""Commands about the files of issues and builds."""

import click

from knowngood.cli.lazy import command
from knowngood.cli.options import AS_JSON, PATH, argument, flag, option, text

CHECK = command(
    "knowngood.commands.catalogue:check",
    "Validate the whole catalogue at once; problems and warnings come with file and line.",
    argument("folders", "Folders of issues; the shipped ones without a word.", nargs=-1, type=PATH),
    flag("--strict", help_="End in 1 where there are warnings that no waiver answers, too."),
    example="check repros",
)
NEW_ISSUE = command(
    "knowngood.commands.catalogue:new_issue",
    "Scaffold an issue; `check` then says what is left to write.",
    argument("id_", "<project>-<number>, such as pytorch-151290.", metavar="ID"),
    option("--title", required=True, help="What breaks, in one line."),
    option(
        "--kind",
        type=click.Choice(("message", "wrong_result", "signal", "hang")),
        help="How it fails, where that is known: the scaffold is written for it.",
    ),
    option("--folder", type=PATH, help="Where the issue's folder goes; the first of KNOWNGOOD_CATALOGUE, else repros."),
    example='new-issue pytorch-151290 --title "Softmax over a mask dies" --kind signal',
)
DISCOVER = command(
    "knowngood.measure.discovery.cli:discover",
    "Look for new releases of torch and Triton, and print their builds; 0: none, 1: some, 4: the index is unusable.",
    text("--index", "The index's address; the one that pip and uv use here without.", "URL"),
    option("--file", type=PATH, help="The builds.toml to compare with and write to; the shipped one without."),
    text("--since", "Propose every release from this one on, such as 2.4.", "VERSION"),
    flag("--write", help_="Add the builds to the file; its comments and order stay."),
    AS_JSON,
    example="discover --since 2.9 --write --file repros/builds.toml",
)
