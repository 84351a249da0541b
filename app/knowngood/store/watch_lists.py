"""Watch lists in the store. Every change is a version that stays; after a removal versions go on counting."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from knowngood.domain.access import Actor, NotAllowed
from knowngood.domain.errors import Unreadable
from knowngood.domain.issue_selectors import (
    UnknownWatchList,
    WatchList,
    WatchListContent,
    WatchListTaken,
    checked,
    checked_name,
)
from knowngood.store import audit_log, unreadable
from knowngood.store.engine import Session
from knowngood.store.evidence import documents
from knowngood.store.evidence.cells import touch
from knowngood.store.queries import load_issues
from knowngood.store.tables import watch_list_versions, watch_lists


@dataclass(frozen=True)
class ListOwner:
    """Somebody who changes a list; with `overrules` also lists of others: an administrator, or whoever has the command
    line.
    """

    actor: Actor
    overrules: bool = False


def save_watch_list(  # noqa: PLR0913 - who keeps what, when, and in place of what
    s: Session,
    name: str,
    content: WatchListContent,
    *,
    by: ListOwner,
    now: datetime,
    owner: str = "",
    based_on: int | None = None,
) -> WatchList:
    """Keep the list under its name, as the next version; the same content again is no new version.

    A new list belongs to `owner`, or to whoever makes it. `based_on` is the version that the change was made for (0:
    there must be none): where another one is there now, WatchListTaken is raised and nothing changes; where it is
    somebody else's, NotAllowed.
    """
    touch(s)  # before the present version is read: of two who write at once the second sees the first
    checked_name(name)
    checked_content = checked(content, {issue.id: issue for issue in load_issues(s)})
    last = _load(s, name)  # removed or not
    before = last if last and last["is_present"] else None
    _refuse_other_owner(before, by)
    _refuse_taken(name, before["version"] if before else 0, based_on)
    if before and _says(before, checked_content) and owner in {"", before["owner"]}:
        return _listed(before)
    made = WatchList(
        name=name,
        owner=owner or (before["owner"] if before else by.actor.name),
        version=(last["version"] if last else 0) + 1,
        changed_at=now,
        changed_by=by.actor.name,
        content=checked_content,
    )
    _store(s, made, is_new=last is None)
    audit_log.note(s, by.actor, "watch_list.save", name, now, version=made.version, owner=made.owner)
    return made


def remove_watch_list(s: Session, name: str, *, by: ListOwner, now: datetime, based_on: int | None = None) -> None:
    """Its versions stay. Raises UnknownWatchList, WatchListTaken and NotAllowed as above."""
    touch(s)
    before = _load(s, name)
    if before is None or not before["is_present"]:
        raise UnknownWatchList(f'no watch list is called "{name[:80]}" here')
    _refuse_other_owner(before, by)
    _refuse_taken(name, before["version"], based_on)
    version = before["version"] + 1
    gone = sa.update(watch_lists).where(watch_lists.c.name == name).values(is_present=False, version=version)
    s.execute(gone)
    row = {"name": name, "version": version, "at": now, "actor": by.actor.name, "doc": ""}
    s.execute(sa.insert(watch_list_versions).values(**row))
    audit_log.note(s, by.actor, "watch_list.remove", name, now, version=version)


def load_watch_lists(s: Session) -> dict[str, WatchList]:
    """The watch lists that can be read, by name and in the order of names: one that cannot must not keep the gate from
    following the store. A gate that a question sends there says that there is none of its name.
    """
    rows = s.execute(_query().where(watch_lists.c.is_present).order_by(watch_lists.c.name)).mappings()
    listed = {}
    for row in rows:
        with suppress(Unreadable):
            listed[row["name"]] = _listed(row)
    return listed


def load_watch_list(s: Session, name: str, version: int | None = None) -> WatchList | None:
    """One list as it is, or as it was in an earlier version, even of a list that was removed since. Raises
    Unreadable.
    """
    if version is None:
        stored = _load(s, name)
        return _listed(stored) if stored and stored["is_present"] else None
    joined = watch_list_versions.c.name == watch_lists.c.name
    query = sa.select(*_COLUMNS).join(watch_list_versions, joined)
    which = sa.and_(watch_lists.c.name == name, watch_list_versions.c.version == version)
    row = s.execute(query.where(which)).mappings().first()
    return _listed(row) if row and row["doc"] else None


_COLUMNS = (
    watch_lists.c.name,
    watch_lists.c.owner,
    watch_lists.c.is_present,
    watch_list_versions.c.version,
    watch_list_versions.c.at,
    watch_list_versions.c.actor,
    watch_list_versions.c.doc,
)


def _listed(row: sa.RowMapping) -> WatchList:
    """A list as its newest version has it. Raises Unreadable: such a list can be saved anew or removed all the same."""
    doc = row["doc"]
    content = (
        unreadable.read(_VERSIONS, row["name"], documents.CONTENT.validate_json, doc) if doc else WatchListContent()
    )
    return WatchList(row["name"], row["owner"], row["version"], row["at"], row["actor"], content=content)


def _says(row: sa.RowMapping, content: WatchListContent) -> bool:
    with suppress(Unreadable):
        return _listed(row).content == content
    return False


_VERSIONS = watch_list_versions.name


def _query() -> sa.Select[Any]:
    newest = sa.and_(
        watch_list_versions.c.name == watch_lists.c.name, watch_list_versions.c.version == watch_lists.c.version
    )
    return sa.select(*_COLUMNS).join(watch_list_versions, newest)


def _load(s: Session, name: str) -> sa.RowMapping | None:
    """The list with its newest version, removed or not."""
    return s.execute(_query().where(watch_lists.c.name == name)).mappings().first()


def _refuse_other_owner(there: sa.RowMapping | None, by: ListOwner) -> None:
    if there and there["owner"] != by.actor.name and not by.overrules:
        raise NotAllowed(f'the watch list "{there["name"]}" belongs to {there["owner"]}; choose another name for yours')


def _refuse_taken(name: str, version: int, based_on: int | None) -> None:
    if based_on is None or based_on == version:
        return
    if based_on == 0:
        raise WatchListTaken(f'there is a watch list "{name}" already (version {version}); choose another name')
    now = f"is at version {version}" if version else "is gone"
    raise WatchListTaken(f'the watch list "{name}" {now}, not at {based_on} any more; look at it again')


def _store(s: Session, made: WatchList, *, is_new: bool) -> None:
    row = {"owner": made.owner, "version": made.version, "is_present": True}
    if is_new:
        s.execute(sa.insert(watch_lists).values(name=made.name, **row))
    else:
        s.execute(sa.update(watch_lists).where(watch_lists.c.name == made.name).values(**row))
    doc = documents.CONTENT.dump_json(made.content, exclude_defaults=True).decode()
    version = {"name": made.name, "version": made.version, "at": made.changed_at, "actor": made.changed_by}
    s.execute(sa.insert(watch_list_versions).values(**version, doc=doc))
