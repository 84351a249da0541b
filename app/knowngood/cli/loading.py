"""Names of things that are imported when they are needed: the other half of the lazy command table."""

from importlib import import_module
from typing import Any


def load(target: str) -> Any:  # noqa: ANN401 - the caller says what it is
    """The value that `package.module:name` names, imported now. tests/cli/test_command_line.py lists who loads."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
