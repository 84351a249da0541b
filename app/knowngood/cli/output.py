"""Where commands write: people's words to a console, JSON to programs."""

import sys
from collections.abc import Iterable
from pathlib import Path

import orjson
from rich.console import Console

from knowngood.domain.errors import BadRequest

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()


def write_file(output: Path, pieces: Iterable[bytes]) -> None:
    """Write a document: its file is there whole or not at all. Raises BadRequest."""
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(output)
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror or error}") from None
