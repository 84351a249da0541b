"""Knowledge for commands that only read: from a snapshot that is named, else from the local store together with what
comes with this release, or from that alone where there is no store.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from knowngood.cli.trust import trusted_keys
from knowngood.data_dir import is_bare
from knowngood.domain.errors import BadSnapshot
from knowngood.domain.verdicts.known import Known
from knowngood.store.knowledge.model import Knowledge, Recorded, recorded_together, together
from knowngood.store.knowledge.snapshot import Snapshot, age_in_words, read_shipped

# What reads settings and stores imports pydantic; with what is shipped alone nothing of it is needed.
if TYPE_CHECKING:
    from knowngood.settings import Settings


_NO_STORE = "there is no store here"


@dataclass(frozen=True)
class Ground:
    """The sources of an answer. `shipped` is what comes with this release, or the snapshot that was named (None: it is
    left out), `has_store` says that is not all.
    """

    knowledge: Knowledge
    shipped: Snapshot | None
    has_store: bool

    @property
    def recorded(self) -> Recorded:
        """The part of this release beside cells."""
        return self.shipped.recorded if self.shipped else Recorded()


def ground_here(snapshot: str = "", keys: Sequence[str] = (), *, quietly: bool = False) -> Ground:
    """Says on standard error, unless asked `quietly`, what answers in place of a store: the snapshot, or where none is
    what is shipped. The catalogue's files are looked at only where a store knows no issue yet: a job that asks the gate
    need not pay for that. Raises Unreadable where an issue or a build cannot be read.
    """
    return _of_snapshot(snapshot, keys, quietly=quietly) if snapshot else _ground(quietly=quietly)


def knowledge_here(snapshot: str = "", keys: Sequence[str] = ()) -> Knowledge:
    return ground_here(snapshot, keys).knowledge


def known_here(snapshot: str = "", keys: Sequence[str] = ()) -> Known:
    """The same with the catalogue as its files have it, less what cannot be read."""
    ground = _of_snapshot(snapshot, keys) if snapshot else _ground(with_catalogue=True)
    return ground.knowledge.known


def read_given(snapshot: str, keys: Sequence[str]) -> tuple[Snapshot, str]:
    """Read the named snapshot. Returns it with a remark where anybody may have signed it. `keys` are as `trusted_keys`
    takes them. Raises BadSnapshot, and BadRequest where nobody says who must have signed it.
    """
    from knowngood.store.knowledge.signed_snapshot import read_snapshot

    trusted = trusted_keys(keys)
    try:
        signed = read_snapshot(Path(snapshot).read_bytes(), trusted)
    except OSError as error:
        raise BadSnapshot(f"the snapshot {snapshot} cannot be read: {error.strerror}") from None
    except BadSnapshot as error:
        raise BadSnapshot(f"{snapshot}: {error}") from None
    return signed, "" if signed.is_trusted else _UNCHECKED.format(key=signed.key)


_UNCHECKED = (
    "the snapshot was not checked against a key that you know; it says that {key} signed it. "
    "Name the key that you trust with --public-key"
)


def _of_snapshot(snapshot: str, keys: Sequence[str], *, quietly: bool = False) -> Ground:
    signed, remark = read_given(snapshot, keys)
    age = age_in_words(signed.made_at, datetime.now(UTC))
    listed = "" if signed.knowledge.known.listed else "; it lists no wheels, and those that this release lists count"
    origin = f"answered from {snapshot}, a snapshot of {signed.made_at:%Y-%m-%d}{f', {age}' if age else ''}{listed}"
    for line in () if quietly else (remark, origin):
        _say_last(line)
    return Ground(signed.knowledge, signed, has_store=False)


def recorded_here(ground: Ground) -> Recorded:
    """How long runs took, in the store and elsewhere."""
    if not ground.has_store:
        return ground.recorded
    from knowngood.cli.context import stored_times

    return recorded_together(stored_times(), ground.recorded)


def _ground(*, with_catalogue: bool = False, quietly: bool = False) -> Ground:
    now, settings = datetime.now(UTC), _settings()
    if settings is None:
        return _of_release(now, quietly=quietly)
    is_stored = has_store(settings) or not settings.shipped
    if not is_stored and not quietly:
        _tell(read_shipped(), now)
    try:
        own = _stored(settings, now, with_catalogue=with_catalogue) if is_stored else _of_files(settings, now)
    except ModuleNotFoundError as error:
        if settings.database_url or not settings.shipped or (error.name or "").startswith("knowngood"):
            raise
        from knowngood.installation import how_to_install  # there is a store, and this installation lacks its reader

        why = f"the store {settings.database_file} was not asked, which needs {error.name}; {how_to_install('server')}"
        return _of_release(now, why, quietly=quietly)
    if not settings.shipped:
        return Ground(own, None, has_store=True)
    return Ground(together(own, read_shipped().knowledge), read_shipped(), has_store=is_stored)


def _of_release(now: datetime, why: str = _NO_STORE, *, quietly: bool) -> Ground:
    shipped = read_shipped()
    if not quietly:
        _tell(shipped, now, why)
    return Ground(shipped.knowledge, shipped, has_store=False)


def _settings() -> "Settings | None":
    """The settings; None where there is nothing to ask but what is shipped."""
    if is_bare():
        return None
    from knowngood.settings import read_settings

    settings = read_settings()
    return settings if has_store(settings) or settings.catalogue or not settings.shipped else None


def has_store(settings: "Settings") -> bool:
    return bool(settings.database_url or os.path.exists(settings.database_file))  # noqa: PTH110 - False where it must not be looked at


def _stored(settings: "Settings", now: datetime, *, with_catalogue: bool) -> Knowledge:
    from knowngood.cli.context import stored_knowledge

    return stored_knowledge(settings, now, with_catalogue=with_catalogue)


def _of_files(settings: "Settings", now: datetime) -> Knowledge:
    """The catalogue with a team's own issues, of which nothing is measured: there is no store, and none is made."""
    from knowngood.catalogue.loader import read_catalogue

    catalogue = read_catalogue(settings.folders, with_drafts=False)
    issues = {issue.id: issue for issue in catalogue.issues}
    return Knowledge(Known(issues, {build.id: build for build in catalogue.builds}, {}, (), now), frozenset())


def _tell(snapshot: Snapshot, now: datetime, why: str = _NO_STORE) -> None:
    age = age_in_words(snapshot.made_at, now)
    _say_last(
        f"answered from the results of {snapshot.made_at:%Y-%m-%d} that come with this release; "
        f"{why}{f'. They are {age}' if age else ''}"
    )


def _say_last(line: str) -> None:
    """On standard error once the command is through: the first line that people see is the answer."""
    from click import get_current_context  # the library, which is asked quietly, imports no command line

    context, say = get_current_context(silent=True), partial(sys.stderr.write, f"knowngood: {line}\n" if line else "")
    if context:
        context.call_on_close(say)
    else:  # the Action's comment, for which nobody waits
        say()
