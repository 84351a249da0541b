"""Knowledge for commands that only read: the quick way where the store is our own file and as it was left."""

from collections.abc import Mapping
from datetime import UTC, datetime

from knowngood.app.catalogue_digest import digest_of
from knowngood.app.cli.loading import load
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.knowledge.local import read_local, read_times
from knowngood.app.knowledge.model import Knowledge
from knowngood.app.settings import Settings, read_settings

_STORED = "knowngood.app.cli.stored:stored_knowledge"
_CURRENT = "knowngood.app.cli.stored:current_known"
_TIMES = "knowngood.app.cli.stored:stored_times"


def knowledge_here() -> Knowledge:
    """Knowledge from the local store. The catalogue's files are looked at only where it knows no issue yet: a job that
    asks the gate need not pay for that. Raises Unreadable where an issue or a build cannot be read.
    """
    settings, now = read_settings(), datetime.now(UTC)
    found: Knowledge = _read(settings, now) or load(_STORED)(settings, now)
    return found


def known_here() -> Known:
    """The same with the catalogue as its files have it, less what cannot be read."""
    settings, now = read_settings(), datetime.now(UTC)
    quick = _read(settings, now, digest_of(settings.folders))
    found: Known = quick.known if quick else load(_CURRENT)(settings, now)
    return found


def times_here() -> tuple[Mapping[tuple[str, str, str], float], float | None]:
    """Seconds by (issue, arm, variant), and of making an environment."""
    settings = read_settings()
    quick = None if settings.database_url else read_times(settings.database_file)
    found: tuple[Mapping[tuple[str, str, str], float], float | None] = quick or load(_TIMES)(settings)
    return found


def _read(settings: Settings, now: datetime, source: bytes | None = None) -> Knowledge | None:
    return None if settings.database_url else read_local(settings.database_file, now, source)
