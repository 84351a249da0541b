"""Commands, declared at the functions that they call; the module of one is imported when it is run."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchCommand

from knowngood.domain.errors import BadRequest, NotInstalled

_SETTINGS = {"help_option_names": ["--help"], "max_content_width": 120}
_EXTRAS = {"ray": "ray", "psycopg": "postgres", "mcp": "mcp"}
_SERVER = "server"
"""Who asks needs none; whatever else is missing comes with this one."""

_SUFFIX = "_command"  # of a function whose command's name is a word of Python's


def command(help_: str, *params: click.Parameter, example: str) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a function a command of its name: it is called with its parameters by name, and gives the exit code."""

    def declared(function: Callable[..., int | None]) -> click.Command:
        return click.Command(
            function.__name__.removesuffix(_SUFFIX).replace("_", "-"),
            callback=partial(_call, function),
            params=list(params),
            help=help_,
            epilog=f"\b\nExample:\n  knowngood {example}",
            context_settings=_SETTINGS,
        )

    return declared


def _call(function: Callable[..., int | None], /, **parameters: Any) -> int | None:  # noqa: ANN401 - what was declared
    if "structlog" in sys.modules:  # what may log imports it; left alone it would write among the answers
        from knowngood.logging_setup import configure

        configure("text", "warning")
    try:
        return function(**parameters)
    except ModuleNotFoundError as error:
        raise _not_installed(error, click.get_current_context().command_path) from error


def _not_installed(error: ModuleNotFoundError, command_path: str) -> Exception:
    """The extra that brings the missing package; the error itself where a module of ours or of Python's is missing."""
    from knowngood.installation import how_to_install

    package = (error.name or "").partition(".")[0]
    if package in {"", "knowngood", "knowngood_workers"} or package in sys.stdlib_module_names:
        return error
    how = how_to_install(_EXTRAS.get(package, _SERVER))
    return NotInstalled(f"{command_path} needs {package}, which is not installed; {how}")


def group(name: str, help_: str, *commands: click.Command) -> click.Group:
    """Commands below a command, all about one thing."""
    return click.Group(name, commands, help=help_, context_settings=_SETTINGS)


class LazyTable(click.Group):
    """The root: heading -> name -> (the module of the command, its one line). A module is imported for the command that
    is run, or whose help is asked for. `removed`: name -> the sentence that says what takes its place.
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
        module, line = self._rows[name]
        try:
            declared = vars(import_module(module)).values()
        except ModuleNotFoundError as error:
            raise _not_installed(error, f"{ctx.command_path} {name}") from error
        entry = next(value for value in declared if isinstance(value, click.Command) and value.name == name)
        entry.short_help = line
        return entry

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._rows))
        for heading, rows in self._table.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in rows.items()])


# Commands that a release took away: each says for one release what takes its place, and ends in 2.


REMOVED = {
    "backup": "`knowngood backup` is gone: copy the database with VACUUM INTO or pg_dump, or move "
    "results with `knowngood export --format bundle`",
    "restore": "`knowngood restore` is gone: put a copy of the database in place, or take bundles in "
    "with `knowngood import`",
    "webhook": "`knowngood webhook` is gone: follow /feeds/changes.atom or /api/v1/changes, or run the gate in CI",
    "completion": "`knowngood completion` is gone: --help lists the commands, and COMMAND --help its options",
}
"""By the command's name; those below it go with it."""
