"""Durations of making environments, and their locks, for the price of a plan."""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import EnvironmentRequest, Issue, environment_request
from knowngood.app.store.engine import Session
from knowngood.app.store.evidence import attempt_codec
from knowngood.app.store.tables import attempts, events, locks


def load_environment_s(s: Session) -> float | None:
    """Mean seconds of the environments that were made through this store and whose events are still here, not found
    ready; None where there is none.
    """
    ready = s.execute(sa.select(events.c.data).where(events.c.kind == "environment_ready")).scalars().all()
    made = [float(data["seconds"]) for data in ready if not data["reused"]]
    return sum(made) / len(made) if made else None


def load_locks(s: Session, issues: Iterable[Issue], builds: Iterable[Build]) -> dict[EnvironmentRequest, str]:
    """The newest lock that counted attempts ran with, of each environment that these issues ask for, whoever made it.

    That of a build which a machine had already is the list of what was installed there, and no lock.
    """
    by_id: Mapping[str, Issue] = {issue.id: issue for issue in issues}
    columns = {build.id: build for build in builds}
    a = attempts.c
    counted = sa.and_(a.counts_as.is_not(None), a.lock_digest != "")
    newest = sa.func.max(a.finished_at)
    query = sa.select(a.issue, a.build, a.lock_digest).where(counted).group_by(a.issue, a.build, a.lock_digest)
    found = {
        environment_request(by_id[issue], columns[build]): digest
        for issue, build, digest in s.execute(query.order_by(newest, a.lock_digest))
        if issue in by_id and build in columns
    }
    texts = attempt_codec.load_texts(s, locks, set(found.values()))
    return {request: texts[digest] for request, digest in found.items() if digest in texts}
