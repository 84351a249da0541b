"""Commands, declared at the functions that they call; the module of one is imported when it is run."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

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

_COMMAND = "click_command"  # the attribute of a function that holds its command
_Function = TypeVar("_Function", bound=Callable[..., Any])


def command(help_: str, *params: click.Parameter, example: str) -> Callable[[_Function], _Function]:
    """Make a function a command: it is called with its parameters by name, and gives the exit code."""

    def declared(function: _Function) -> _Function:
        made = click.Command(
            None,
            callback=partial(_call, function),
            params=list(params),
            help=help_,
            epilog=f"\b\nExample:\n  knowngood {example}",
            context_settings=_SETTINGS,
        )
        setattr(function, _COMMAND, made)
        return function

    return declared


def _call(function: Callable[..., int | None], /, **asked: Any) -> int | None:  # noqa: ANN401 - what was declared
    if "structlog" in sys.modules:  # what may log imports it; unless told otherwise it would write among the answers
        load(_CONFIGURE)("text", "warning")
    try:
        return function(**asked)
    except ModuleNotFoundError as error:
        raise _not_installed(error, click.get_current_context().command_path) from error


def _not_installed(error: ModuleNotFoundError, command_path: str) -> Exception:
    """The extra that brings the missing package; the error itself where a module of ours or of Python's is missing."""
    package = (error.name or "").partition(".")[0]
    if package in {"", "knowngood", "knowngood_workers"} or package in sys.stdlib_module_names:
        return error
    how = load(_HOW_TO_INSTALL)(_EXTRAS.get(package, _SERVER))
    return NotInstalled(f"{command_path} needs {package}, which is not installed; {how}")


def group(help_: str, **functions: Callable[..., Any]) -> click.Group:
    """Commands below a command, all about one thing."""
    commands: dict[str, click.Command] = {name: getattr(one, _COMMAND) for name, one in functions.items()}
    for name, one in commands.items():
        one.name = name
    return click.Group(None, commands, help=help_, context_settings=_SETTINGS)


class LazyTable(click.Group):
    """The root: heading -> name -> (the function, its one line). The module of a function is imported for the command
    that is run, or whose help is asked for. `removed`: name -> the sentence that says what takes its place.
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
        try:
            value = load(target)
        except ModuleNotFoundError as error:
            raise _not_installed(error, f"{ctx.command_path} {name}") from error
        found: click.Command = getattr(value, _COMMAND, value)
        found.name, found.short_help = name, line
        return found

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._rows))
        for heading, rows in self._table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in rows.items()])
