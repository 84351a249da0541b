"""Releases as they are known now. What was made of one state of the store is kept until something is written: all
shipped releases take 0.4 s (one core of a shared machine, 2026-11-29).
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

from knowngood.domain.builds.build import Build
from knowngood.environments.wheels.claims import shipped_claims
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.matrix.lookups import find_build
from knowngood.matrix.overview.selection import known_classes
from knowngood.move.releases.rules import ReleaseAnswer, ReleaseLine, judge_release
from knowngood.store.engine import Session
from knowngood.store.knowledge.loader import KnowledgeSnapshot
from knowngood.web.app_state import AppState

_MOST = 200
_Key = tuple[str, str, tuple[str, ...]]


class ReleaseCache:
    """Answers by release, the one before and the classes, for as long as what they were made of is known."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: KnowledgeSnapshot | None = None
        self._answers = OrderedDict[_Key, ReleaseAnswer]()

    def judge(
        self, snapshot: KnowledgeSnapshot, build: Build, before: Build | None, hardware: Sequence[str]
    ) -> ReleaseAnswer:
        """Two threads may both make an answer; the oldest goes where there are too many."""
        key = build.id, before.id if before else "", tuple(hardware)
        with self._lock:
            if self._of is not snapshot:
                self._of, self._answers = snapshot, OrderedDict()
            answers = self._answers
            if key in answers:
                return answers[key]
        known = snapshot.knowledge.known
        made = judge_release(build, before, hardware, known, shipped_wheels(), shipped_claims())
        with self._lock:
            answers[key] = made
            if len(answers) > _MOST:
                answers.popitem(last=False)
        return made


def load_release(
    session: Session, state: AppState, now: datetime, name: str, before: str = "", hardware: Sequence[str] = ()
) -> tuple[ReleaseAnswer, Build, ReleaseLine]:
    """The answer for a release, `2.15` or `2.15.0`, or for any other build by its name. Raises NotFound, and
    InvalidParameter for a class that nobody measured.
    """
    snapshot = state.knowledge.load(session, now)
    line = ReleaseLine(snapshot.knowledge.known)
    build = line.find(name) or find_build(session, name)[0]
    older = (line.find(before) or find_build(session, before)[0]) if before else line.before(build)
    classes = known_classes(hardware, line.known.hardware)
    return state.own(ReleaseCache).judge(snapshot, build, older, classes), build, line


def load_releases(
    session: Session, state: AppState, now: datetime, which: Sequence[Build] | None = None
) -> tuple[ReleaseAnswer, ...]:
    """Each measured release, or each of `which`, over the one before it, newest first."""
    snapshot = state.knowledge.load(session, now)
    line, cache = ReleaseLine(snapshot.knowledge.known), state.own(ReleaseCache)
    classes = known_classes((), line.known.hardware)
    builds = reversed(line.measured) if which is None else which
    return tuple(cache.judge(snapshot, build, line.before(build), classes) for build in builds)
