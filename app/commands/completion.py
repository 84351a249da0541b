"""`knowngood completion SHELL`: the script by which a shell asks the command what may come next."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "knowngood"
VARIABLE = "_KNOWNGOOD_COMPLETE"


def completion(shell: str) -> None:
    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    if kind is not None:
        click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
