"""`knowngood snapshot`: what the gate knows in one signed file."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from knowngood.cli.context import make_data_dir, root
from knowngood.cli.knowledge import knowledge_here
from knowngood.cli.lazy import command
from knowngood.cli.options import FILE, OUTPUT, option
from knowngood.cli.output import whole_file
from knowngood.domain.errors import BadRequest
from knowngood.environments.wheels.table import FILE as WHEELS
from knowngood.settings import read_settings
from knowngood.store.knowledge.signed_snapshot import make_key, public_key, write_snapshot

_KEY = "snapshot-key.pem"


@command(
    "Write what the gate knows to a signed file; `gate --snapshot FILE` answers from it without a server.",
    OUTPUT,
    option("--key", type=FILE, help="The key that signs it. Default: one in the data folder, made the first time."),
    example="snapshot -o knowngood.snapshot",
)
def snapshot(output: Path, key: Path | None) -> None:
    knowledge, private = knowledge_here(), _private_key(key)
    known = replace(knowledge.known, listed=WHEELS.read_text(encoding="utf-8"))
    data = write_snapshot(replace(knowledge, known=known), private)
    with whole_file(output) as file:
        file.write(data)
    sys.stderr.write(
        f"{output}: {len(known.issues)} issues, {len(known.builds)} builds and {len(known.cells)} cells as of "
        f"{known.as_of:%Y-%m-%d %H:%M} UTC, {len(data):,} bytes\n"
        f"whoever reads it should name this key: --public-key {public_key(private)}\n"
    )
    sys.stdout.write(f"{public_key(private)}\n")


def _private_key(named: Path | None) -> bytes:
    settings = read_settings()
    path = named or root(settings) / _KEY
    try:
        if named is None and not path.exists():
            make_data_dir(settings)  # with a store elsewhere, nothing has needed it yet
            _make(path)
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"the signing key {path} cannot be used: {error.strerror}") from None


def _make(path: Path) -> None:
    """Let nobody else read it, not even for the moment in which it is written. Of two who make one, one counts."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(make_key())
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        pass
    finally:
        partial.unlink()
