"""Taking the catalogue into the store. What people wrote is the truth; here is a copy for pages, with its history."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Look
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.serialization import codec
from knowngood.store import statements
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import announce, insert_missing, rederive, touch
from knowngood.store.evidence.documents import LOOKS, parse_issue
from knowngood.store.queries import load_generation
from knowngood.store.records import CellChange
from knowngood.store.statements import place_of
from knowngood.store.tables import attempts, builds, cells, issue_revisions, issues, meta


def save_catalogue(
    s: Session, catalogue: Sequence[Issue], matrix: Sequence[Build], now: datetime
) -> tuple[CellChange, ...]:
    """Make the store's catalogue this one, and derive anew the cells it concerns; tell which came out differently.

    A mended signature, proof rule or claim thus changes verdicts without a run. Issues and builds that left the
    catalogue keep their evidence and lose their cells; when they come back, so do these.
    """
    changed_issues = _changed(s, issues, {issue.id: codec.ISSUE.dump_json(issue).decode() for issue in catalogue})
    changed_builds = _changed(s, builds, {build.id: codec.BUILD.dump_json(build).decode() for build in matrix})
    if not changed_issues and not changed_builds:
        return ()
    touch(s)
    _save_issues(s, [issue for issue in catalogue if issue.id in changed_issues], now)
    _upsert(s, builds, [_row(build, codec.BUILD) for build in matrix if build.id in changed_builds])
    _withdraw(s, issues, changed_issues - {issue.id for issue in catalogue}, cells.c.issue)
    _withdraw(s, builds, changed_builds - {build.id for build in matrix}, cells.c.build)
    announce(s, "catalogue_saved", now, issues=sorted(changed_issues), builds=sorted(changed_builds))
    return rederive(s, _keys_of(s, changed_issues, changed_builds), now)


def load_looks(s: Session) -> dict[str, Look]:
    """The looks at threads, by address."""
    texts = s.execute(sa.select(issues.c.looks).where(issues.c.looks != "")).scalars()
    return {url: look for text in texts for url, look in LOOKS.validate_json(text).items()}


def save_looks(s: Session, looks: Mapping[str, Look]) -> None:
    """Keep looks at threads, by address, with the issues that link to them. What their rows say stays."""
    touch(s)
    for row in s.execute(sa.select(issues.c.id, issues.c.doc, issues.c.looks).where(issues.c.is_present)).all():
        new = {link.url: looks[link.url] for link in parse_issue(row.doc).links if link.url in looks}
        if new:
            text = LOOKS.dump_json({**LOOKS.validate_json(row.looks or "{}"), **new}).decode()
            s.execute(sa.update(issues).where(issues.c.id == row.id).values(looks=text))


def _changed(s: Session, table: sa.Table, docs: dict[str, str]) -> set[str]:
    """The ids of what is new, changed, back, or gone."""
    query = sa.select(table.c.id, table.c.doc).where(table.c.is_present)
    stored = dict(s.execute(query).all())
    return {id_ for id_ in stored.keys() | docs.keys() if stored.get(id_) != docs.get(id_)}


def _row(value: Any, adapter: TypeAdapter[Any]) -> dict[str, Any]:  # noqa: ANN401 - an issue or a build
    return {"id": value.id, "is_present": True, "doc": adapter.dump_json(value).decode()}


def _save_issues(s: Session, changed: Sequence[Issue], now: datetime) -> None:
    rows = [{**_row(issue, codec.ISSUE), "revision": issue.revision} for issue in changed]
    _upsert(s, issues, rows)
    revisions = [{"issue": row["id"], "revision": row["revision"], "seen_at": now, "doc": row["doc"]} for row in rows]
    insert_missing(s, issue_revisions, revisions)


def _upsert(s: Session, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    new = set(insert_missing(s, table, rows))
    for row in rows:
        if row["id"] not in new:
            s.execute(sa.update(table).where(table.c.id == row["id"]).values(**row))


def _withdraw(s: Session, table: sa.Table, ids: set[str], column: sa.Column[str]) -> None:
    s.execute(sa.update(table).where(table.c.id.in_(ids)).values(is_present=False))
    s.execute(sa.delete(cells).where(column.in_(ids)))


def _keys_of(s: Session, of_issues: set[str], of_builds: set[str]) -> Iterable[CellKey]:
    places = sa.select(*place_of(attempts)).distinct()
    concerned = sa.or_(attempts.c.issue.in_(of_issues), attempts.c.build.in_(of_builds))
    return map(CellKey._make, s.execute(places.where(concerned)).all())


# A store made of what is known, from wherever: catalogue and cells without the attempts they were derived from.
#
# For pages that are made of more than the local store, or where there is none (`knowngood site`).


def save_known(s: Session, known: Known, now: datetime) -> None:
    """Into an empty store. Cells of issues or builds that the catalogue lacks are of no use there."""
    save_catalogue(s, tuple(known.issues.values()), tuple(known.builds.values()), now)
    generation = load_generation(s)
    known_cells = (known.cells[place] for place in sorted(known.cells))
    rows = [
        (
            *cell.key,
            cell.verdict.value,
            cell.measured_at,
            generation,
            codec.CELL.dump_json(cell, exclude_defaults=True).decode(),
        )
        for cell in known_cells
        if cell.issue in known.issues and cell.build in known.builds
    ]
    statements.insert(s, cells, rows)


# Whether the store's catalogue is still what was last taken in, and from which files.


_TAKEN_IN = "catalogue"  # in the table `meta`


def is_taken_in(s: Session, source: bytes) -> bool:
    """Whether the catalogue with this digest was taken in, and stands here as it was left: what another release wrote
    since, or what was damaged, does not.
    """
    query = sa.select(meta.c.value).where(meta.c.name == _TAKEN_IN)
    return s.execute(query).scalar_one_or_none() == _state(s, source)


def remember_taken_in(s: Session, source: bytes) -> None:
    s.execute(sa.delete(meta).where(meta.c.name == _TAKEN_IN))
    s.execute(sa.insert(meta).values(name=_TAKEN_IN, value=_state(s, source)))


def _state(s: Session, source: bytes) -> int:
    """A digest of a catalogue's files and of all that is stored of it, as a number that the table `meta` can hold."""
    hasher = blake2b(source, digest_size=7)
    for table in (issues, builds):
        for id_, doc in sorted(s.execute(sa.select(table.c.id, table.c.doc).where(table.c.is_present)).all()):
            hasher.update(f"{id_}\0{doc}\0".encode())
    return int.from_bytes(hasher.digest())
