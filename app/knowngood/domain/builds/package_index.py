"""A package index, as values: its files, and whether a build can be installed from it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class IndexFile:
    """One file of a project. `uploaded` is None where the index does not tell; `yanked` is None where it is not, else
    the reason, which may be empty. `metadata` is None where it has no METADATA beside it, else its SHA-256 or "".
    `requires_python` is a specifier; empty where the index tells none.
    """

    name: str
    url: str
    uploaded: datetime | None = None
    yanked: str | None = None
    metadata: str | None = None
    requires_python: str = ""


@dataclass(frozen=True)
class BuildCheck:
    """Whether a build can be installed; None where nobody could be asked. `why` is empty where it can."""

    build: str
    is_installable: bool | None
    why: str = ""
