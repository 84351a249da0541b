"""A command's answer, and commands in this process."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from knowngood.main import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Done]


def run_here(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path,
    stdin: str = "",
    program: Callable[[], int | None] = main,
) -> subprocess.CompletedProcess[str]:
    """As `run_command` of forked_commands.py, in this process: for commands that start nothing."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (stdin.encode(), b"", b""))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["knowngood", *arguments])
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as ended:
            sys.exit(program())
    told = []
    for stream in (out, err):
        stream.seek(0)
        told.append(stream.read())
    return subprocess.CompletedProcess(list(arguments), int(ended.value.code or 0), *told)
