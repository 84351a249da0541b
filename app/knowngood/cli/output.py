"""Where commands write: people's words to a console, JSON to programs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import orjson
from rich.console import Console

from knowngood.domain.errors import BadRequest

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.buffer.flush()


@contextmanager
def whole_file(output: Path) -> Iterator[BinaryIO]:
    """A file to write to, which is there whole or not at all. Raises BadRequest."""
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(output)
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            partial.unlink()
