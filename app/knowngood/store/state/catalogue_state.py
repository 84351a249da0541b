"""Whether the store's catalogue is still what was last taken in, and from which files."""

from hashlib import blake2b

import sqlalchemy as sa

from knowngood.store.engine import Session
from knowngood.store.tables import builds, issues, meta

_NAME = "catalogue"  # in the table `meta`


def is_taken_in(s: Session, source: bytes) -> bool:
    """Whether the catalogue with this digest was taken in, and stands here as it was left: what another release wrote
    since, or what was damaged, does not.
    """
    query = sa.select(meta.c.value).where(meta.c.name == _NAME)
    return s.execute(query).scalar_one_or_none() == _state(s, source)


def remember_taken_in(s: Session, source: bytes) -> None:
    s.execute(sa.delete(meta).where(meta.c.name == _NAME))
    s.execute(sa.insert(meta).values(name=_NAME, value=_state(s, source)))


def _state(s: Session, source: bytes) -> int:
    """A digest of a catalogue's files and of all that is stored of it, as a number that the table `meta` can hold."""
    hasher = blake2b(source, digest_size=7)
    for table in (issues, builds):
        for id_, doc in sorted(s.execute(sa.select(table.c.id, table.c.doc).where(table.c.is_present)).all()):
            hasher.update(f"{id_}\0{doc}\0".encode())
    return int.from_bytes(hasher.digest())
