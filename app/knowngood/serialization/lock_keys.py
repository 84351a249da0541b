"""Keys of locks that are the same in every store."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from knowngood.domain.issue import digest

_COMMENT = re.compile(r"^#.*\n?", re.MULTILINE)

_INDEX = re.compile(r"^[^\S\n]*index[^\S\n]*=.*\n?", re.MULTILINE)

_ADDRESS = re.compile(r"""(["'])(?:[A-Za-z][A-Za-z0-9+.-]*:/)?/(?:[^"'\n]*/)?([^"'/?#\n]*)[^"'\n]*\1""")


@dataclass(frozen=True)
class InstalledEnvironment:
    """The packages that a lock led to: `packages` is all of them, `imported` what a process said of itself."""

    lock_digest: str
    packages: Mapping[str, str]
    imported: Mapping[str, str]


def lock_key(text: str | None, environment: InstalledEnvironment | None) -> str:
    """The key of a lock and of what was found installed by it, the same in every store: a digest that follows from the
    contents, so that nobody can put others in their place. Addresses are no part of it. Empty where neither is known.
    """
    return joined(text_key(text) if text else "", environment_key(environment) if environment else "")


def text_key(text: str) -> str:
    return digest(without_addresses(text))


def environment_key(environment: InstalledEnvironment) -> str:
    return digest(json.dumps([dict(environment.packages), dict(environment.imported)], sort_keys=True))


def joined(text: str, environment: str) -> str:
    return digest(f"{text} {environment}") if text or environment else ""


def without_addresses(lock: str) -> str:
    """A lock with hashes, versions and file names, and no host: addresses and paths are cut to their file's name.

    Comments go (uv writes its command line there), and so do the names of indexes.
    """
    return _ADDRESS.sub(r"\1\2\1", _INDEX.sub("", _COMMENT.sub("", lock)))
