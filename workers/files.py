"""Files that are there whole or not at all, whoever dies while they are written."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    making = path.with_name(f"{path.name}.{os.getpid()}.making")
    making.write_text(text, encoding="utf-8")
    making.replace(path)
