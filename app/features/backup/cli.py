"""`knowngood backup` and `knowngood restore`: the whole store in one file and back, into either kind of database."""

import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import click
from orjson import OPT_INDENT_2, dumps

from knowngood.app.cli.context import make_data_dir, operator
from knowngood.app.domain.errors import BadRequest
from knowngood.app.features.backup.format import CheckedBackup, check_backup
from knowngood.app.features.backup.store import back_up
from knowngood.app.features.backup.store import restore as bring_back
from knowngood.app.settings import read_settings
from knowngood.app.store.engine import connect, name_of


def backup(output: Path, *, as_json: bool) -> None:
    engine = connect(read_settings().database)
    partial = output.with_name(f"{output.name}.{os.getpid()}.partial")
    try:
        with _for_owner_only(partial) as file:
            written = back_up(engine, file, now=datetime.now(UTC), release=version("knowngood"))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(output)
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    _tell(written, f"{output}: ", f", {output.stat().st_size:,} bytes", as_json=as_json)


def restore(*, file: Path, into: str, force: bool, check: bool, as_json: bool) -> None:
    if check:
        _tell(check_backup(file), f"{file.name} is whole: ", "", as_json=as_json)
        return
    settings = read_settings()
    if not into and not settings.database_url:
        make_data_dir(settings)
    engine = connect(into or settings.database)
    restored = bring_back(engine, file, by=operator(), now=datetime.now(UTC), force=force)
    _tell(restored, f"{name_of(engine)}: ", ", every table read again and found equal", as_json=as_json)


def _for_owner_only(path: Path) -> BinaryIO:
    """A backup holds what secrets are checked with, and those of webhooks as they are."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _tell(held: CheckedBackup, before: str, after: str, *, as_json: bool) -> None:
    if as_json:
        said = {"header": held.header, "sha256": held.sha256, "tables": held.tables}
        click.echo(dumps(said, option=OPT_INDENT_2).decode())
        return
    taken = f"{held.header.taken_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    click.echo(f"{before}{held.rows:,} rows of {len(held.tables)} tables at {held.header.schema}, as of {taken}{after}")
