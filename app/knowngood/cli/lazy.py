"""Commands whose options are known at once, and whose modules are imported when they run."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click
from click.exceptions import NoSuchCommand

from knowngood.cli.loading import load
from knowngood.domain.errors import BadRequest, NotInstalled

_SETTINGS = {"help_option_names": ["--help"], "max_content_width": 120}
_CONFIGURE = "knowngood.logging_setup:configure"
_HOW_TO_INSTALL = "knowngood.installation:how_to_install"
_EXTRAS = {"ray": "ray", "psycopg": "postgres"}
_SERVER = "server"
"""Who asks needs none; whatever else is missing comes with this one."""


def command(target: str, help_: str, *params: click.Parameter, example: str) -> click.Command:
    """A command that is the function at `target`, called with its parameters by name; it gives the exit code."""
    return click.Command(
        None,
        callback=partial(_call, target),
        params=list(params),
        help=help_,
        epilog=f"\b\nExample:\n  knowngood {example}",
        context_settings=_SETTINGS,
    )


def _call(target: str, /, **asked: Any) -> int | None:  # noqa: ANN401 - what was declared
    try:
        run = load(target)
        if (
            "structlog" in sys.modules
        ):  # what may log imports it; unless told otherwise it would write among the answers
            load(_CONFIGURE)("text", "warning")
        code: int | None = run(**asked)
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    return code


def _not_installed(error: ModuleNotFoundError) -> Exception:
    """The extra that brings the missing package; the error itself where a module of ours or of Python's is missing."""
    package = (error.name or "").partition(".")[0]
    if package in {"", "knowngood"} or package in sys.stdlib_module_names:
        return error
    command = click.get_current_context().command_path
    how = load(_HOW_TO_INSTALL)(_EXTRAS.get(package, _SERVER))
    return NotInstalled(f"{command} needs {package}, which is not installed; {how}")


def group(help_: str, **commands: click.Command) -> click.Group:
    """Commands below a command, all about one thing."""
    for name, one in commands.items():
        one.name = name
    return click.Group(None, dict(commands), help=help_, context_settings=_SETTINGS)


class LazyTable(click.Group):
    """The root: heading -> name -> (where the command is declared, its one line). A declaration is imported for the
    command that is run, or whose help is asked for. `removed`: name -> the sentence that says what takes its place.
    """

    def __init__(
        self,
        table: Mapping[str, Mapping[str, tuple[str, str]]],
        removed: Mapping[str, str],
        **more: Any,  # noqa: ANN401 - click's
    ) -> None:
        super().__init__(context_settings=_SETTINGS, **more)
        self._removed = removed
        self._table = table
        self._rows = {name: row for rows in table.values() for name, row in rows.items()}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._rows)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self._removed and not ctx.resilient_parsing:
            raise BadRequest(self._removed[name])
        if name not in self._rows and not name.startswith("-") and not ctx.resilient_parsing:
            raise NoSuchCommand(name, possibilities=self._rows, ctx=ctx)
        if name not in self._rows:
            return None
        target, line = self._rows[name]
        found: click.Command = load(target)
        found.name, found.short_help = name, line
        return found

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._rows))
        for heading, rows in self._table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in rows.items()])
