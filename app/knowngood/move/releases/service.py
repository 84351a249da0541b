"""A release as people name it in an address, with what comes with this program of wheels."""

from collections.abc import Sequence

from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.known import Known
from knowngood.environments.wheels.table import shipped_claims, shipped_wheels
from knowngood.matrix.lookups import find_build
from knowngood.matrix.overview.selection import known_classes
from knowngood.move.releases.rules import ReleaseAnswer, ReleaseLine, judge_release
from knowngood.store.engine import Session


def load_release(
    session: Session, known: Known, name: str, before: str = "", hardware: Sequence[str] = ()
) -> tuple[ReleaseAnswer, Build, ReleaseLine]:
    """The answer for a release, `2.15` or `2.15.0`, or for any other build by its name. Raises NotFound, and
    InvalidParameter for a class that nobody measured.
    """
    line = ReleaseLine(known)
    build = line.find(name) or find_build(session, name)[0]
    older = (line.find(before) or find_build(session, before)[0]) if before else line.before(build)
    classes = known_classes(hardware, known.hardware)
    return judge_release(build, older, classes, known, shipped_wheels(), shipped_claims()), build, line
