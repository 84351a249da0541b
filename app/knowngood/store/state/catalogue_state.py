"""Whether the store's catalogue is still what was last taken in, and from which files."""

import sqlalchemy as sa

from knowngood.store.engine import Session
from knowngood.store.state.revisions import CATALOGUE_IN_META, state_of
from knowngood.store.tables import builds, issues, meta


def is_taken_in(s: Session, source: bytes) -> bool:
    """Whether the catalogue with this digest was taken in, and stands here as it was left: what another release wrote
    since, or what was damaged, does not.
    """
    query = sa.select(meta.c.value).where(meta.c.name == CATALOGUE_IN_META)
    return s.execute(query).scalar_one_or_none() == _state(s, source)


def remember_taken_in(s: Session, source: bytes) -> None:
    s.execute(sa.delete(meta).where(meta.c.name == CATALOGUE_IN_META))
    s.execute(sa.insert(meta).values(name=CATALOGUE_IN_META, value=_state(s, source)))


def _state(s: Session, source: bytes) -> int:
    queries = (sa.select(table.c.id, table.c.doc).where(table.c.is_present) for table in (issues, builds))
    return state_of(source, *(s.execute(query).all() for query in queries))
