"""Files that are there whole or not at all, whoever dies while they are written, and files that others may write."""

import json
import os
import stat
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(f"{path.name}.{os.getpid()}.making")
    making.write_text(text, encoding="utf-8")
    making.replace(path)


def read_json(path: Path) -> Any:  # noqa: ANN401 - what JSON holds
    """A file of ours; None where it is not there, or is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def read_regular(path: Path, at_most: int = 1 << 16) -> str:
    """The end of a text that an arm may have put there; of anything but a regular file, nothing.

    A pipe in its place would never end, and a link may lead to a file of ours.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        file.seek(max(status.st_size - at_most, 0))
        return file.read(at_most).decode(errors="replace")
