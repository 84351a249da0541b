"""The options and arguments that commands share, and how names are written: repeated or comma-separated."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from knowngood.cli.trust import UNSIGNED

FILE = click.Path(dir_okay=False, path_type=Path)
FILE_HERE = click.Path(exists=True, dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)


def option(*flags: str, **more: Any) -> click.Option:  # noqa: ANN401 - click's
    return click.Option(flags, **more)


def text(flag_: str, help_: str, metavar: str = "TEXT", *name: str, default: str = "") -> click.Option:
    """One text; empty unless said."""
    return click.Option([flag_, *name], default=default, help=help_, metavar=metavar, show_default=bool(default))


def flag(*flags: str, help_: str) -> click.Option:
    return click.Option(flags, is_flag=True, help=help_)


def names(flag_: str, help_: str, *more: str) -> click.Option:
    """Any number of names, as one flat tuple."""
    return click.Option([flag_, *more], multiple=True, metavar="NAMES", help=help_, callback=_apart)


def argument(name: str, help_: str, **more: Any) -> click.Argument:  # noqa: ANN401 - click's
    return click.Argument([name], help=help_, **more)


def _apart(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _remember(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    ctx.meta[UNSIGNED] = value


def _signers(ctx: click.Context, _param: click.Parameter, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Of --public-key and --unsigned."""
    if keys and ctx.meta[UNSIGNED]:
        raise click.UsageError("--public-key and --unsigned exclude each other; name one of them")
    return (UNSIGNED,) if ctx.meta[UNSIGNED] else keys


ISSUES = names("--issues", "Ids or numbers of issues, repeated or comma-separated; or `all`.")
BUILDS = names("--builds", "Builds by id or version (2.5.1, 2.5.1+cu118), comma-separated; `all`; `default`.")
HARDWARE = names("--hardware", "Hardware classes, such as cpu-x86_64.")
RESOLVE = flag("--resolve", help_="Also ask the package index, with uv, which torch these packages lead to.")
AS_JSON = flag("--json", "as_json", help_="Print JSON, for programs.")
FAIL_ON = names("--fail-on", "Verdicts that lead to exit code 1, such as affected.")
DRY_RUN = flag("--dry-run", help_="Print minutes, downloads and disk space; fetch and run nothing.")
FORCE = flag("--force", help_="Run again what is already known.")
SIZES = option(
    "--sizes/--no-sizes",
    default=True,
    help="With --dry-run: ask the package index for unknown sizes, for 20 s at most.",
)
SNAPSHOT_FILE = text("--snapshot", "Answer from this file alone, made by `knowngood snapshot`.", "FILE")
PUBLIC_KEY = option(
    "--public-key",
    "public_keys",
    multiple=True,
    metavar="KEY",
    callback=_signers,
    help="The key that must have signed the snapshot, or a file that holds it.",
)
ANY_SIGNER = option(
    "--unsigned",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember,
    help="Accept a snapshot of any signer.",
)
BUILD = text("--build", "The build, such as torch-2.6.0+cu124, or 2.6.0.", "BUILD")
LOCK = text("--lock", "A lock file: uv.lock, pylock.toml, poetry.lock, pdm.lock, Pipfile.lock, or conda's.", "FILE")
HERE = flag("--here", help_="The Python environment that runs this command.")
PYTHON = text("--python", "The Python, such as 3.12, if neither the file nor the build states it.", "VERSION")
PLATFORM = text("--platform", "The platform, such as linux-x86_64 or macos-arm64, if no file states it.", "PLATFORM")
REQUIREMENTS_FILE = option(
    "-r",
    "--requirements",
    metavar="FILE",
    default="",
    help="requirements.txt, the output of `pip freeze`, a pyproject.toml, or a script (PEP 723).",
)
GROUPS = names(
    "--groups",
    "Which extras and groups of a pyproject.toml or lock, or features or environments of pixi, are installed. "
    "Default: all.",
)
ENVIRONMENT = (BUILD, REQUIREMENTS_FILE, LOCK, GROUPS, HERE, PYTHON, PLATFORM)
"""As the gate takes one; `app/knowngood/gate/asking.py` reads them."""
OUTPUT = option("-o", "--output", type=FILE, required=True, help="The file to write.")
SEVERITY = text("--severity", "Every issue of this severity or a higher one.", "SEVERITY")
COMPONENT = names("--component", "Every issue of these components, such as Inductor or Dynamo.")
PACKAGE = names("--package", "Every issue that needs these packages.")
HOST = option("--host", help="The address to listen on. Default: 127.0.0.1.")
PORT = option("--port", type=click.IntRange(0, 65535), help="The port to listen on. Default: 8000, or KNOWNGOOD_PORT.")
NODE_IP = text("--node-ip", "The address at which other machines reach this one. Default: found out.", "IP")
FORMS = click.Choice(("text", "json", "markdown"))
AS_FORMAT_JSON = flag("--json", "as_json", help_="The same as --format json.")
WATCH = names("--watch", "Names of watch lists.")
MINUTES = click.FloatRange(min=1)
