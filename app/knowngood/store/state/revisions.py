"""The marks of a store's state: its migration, its rules, its catalogue. Standard library only.

Migrations are read as text: Alembic takes 0.2 s to import, which only migrating needs.
"""

import re
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b

from knowngood.data_dir import shipped_folder

MIGRATIONS = shipped_folder("migrations")
_REVISION = re.compile(r'^(down_)?revision = "(\w+)"', re.MULTILINE)

RULES_IN_META = "rules"
"""The name, in the table `meta`, of the version of the rules that cells were derived by."""

CATALOGUE_IN_META = "catalogue"
"""The name there of `state_of` the catalogue that was taken in."""


def is_known(revision: str) -> bool:
    return revision in _revisions()[0]


def head() -> str:
    known, followed = _revisions()
    (head,) = known - followed
    return head


@cache
def _revisions() -> tuple[frozenset[str], frozenset[str]]:
    """All migrations, and those that another one follows."""
    texts = (file.read_text() for file in (MIGRATIONS / "versions").glob("*.py"))
    named = [match for text in texts for match in _REVISION.findall(text)]
    return frozenset(id_ for down, id_ in named if not down), frozenset(id_ for down, id_ in named if down)


def state_of(source: bytes, *tables: Iterable[tuple[str, str]]) -> int:
    """Of a catalogue's files and of all that is stored of it, as a number that the table `meta` can hold."""
    found = blake2b(source, digest_size=7)
    for table in tables:
        for id_, doc in sorted(table):
            found.update(f"{id_}\0{doc}\0".encode())
    return int.from_bytes(found.digest())
