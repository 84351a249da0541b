"""The front page for a stranger: one value for `/` and `/api/v1/overview`."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

from knowngood.domain.builds.build import Build
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, prospect_of
from knowngood.move.releases.rules import ReleaseAnswer, ReleaseLine, ReleaseSummary, summarize
from knowngood.move.releases.service import load_release
from knowngood.move.upgrade.candidates import weight_of
from knowngood.store.engine import Session

MOST_SEVERE = 12
_RECENT = 3


@dataclass(frozen=True)
class Overview:
    """`builds` counts those of which anything is stored, `newest` is the last result (null: none); half of upstream's
    threads were last read on `read` or before it. `releases` are the newest patches of the last minors, and the last
    one of another major CUDA; `new` is the first of them as its own page has it (null: none is measured). `severe` are
    the issues that weigh most among those that ever failed on the class that is shown first.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    issues: int
    builds: int
    hardware: tuple[str, ...]
    newest: datetime | None
    read: date | None
    releases: tuple[ReleaseSummary, ...]
    new: ReleaseAnswer | None
    severe: tuple[str, ...]


def load_overview(session: Session, known: Known) -> Overview:
    recent = _recent(ReleaseLine(known))
    new = load_release(session, known, recent[0].build_id.release)[0] if recent else None
    stored = (cell for id_ in known.issues for cell in known.stored(id_))
    return Overview(
        issues=len(known.issues),
        builds=len(known.tested),
        hardware=known.hardware,
        newest=max((cell.measured_at for cell in stored if cell.measured_at), default=None),
        read=new.age.read if new and new.age else None,
        releases=summarize(recent, ReleaseLine(known)),
        new=new,
        severe=_most_severe(known, usual_class(known)),
    )


def usual_class(known: Known) -> str:
    """The class that is shown where nobody asks for another."""
    return CPU_CLASS if CPU_CLASS in known.hardware or not known.hardware else known.hardware[0]


def _recent(line: ReleaseLine) -> list[Build]:
    newest = {build.minor: build for build in line.measured}  # the last patch of each
    in_order = list(reversed(newest.values()))
    recent = in_order[:_RECENT]
    majors = {_major(build) for build in recent}
    return [*recent, *(build for build in in_order[_RECENT:] if _major(build) not in majors)][: _RECENT + 1]


def _major(build: Build) -> str:
    return (build.cuda or "").partition(".")[0]


def _most_severe(known: Known, hardware: str) -> tuple[str, ...]:
    """Of one weight, the issues that fail on the newest release first."""
    measured = ReleaseLine(known).measured

    def order(id_: str) -> tuple[int, bool, str]:
        issue = known.issues[id_]
        fails = bool(measured) and prospect_of(known.cell(issue, measured[-1], hardware)) in FAILING_PROSPECTS
        return -weight_of(issue), not fails, id_

    return tuple(sorted((id_ for id_ in known.issues if known.history(id_, hardware).spans), key=order)[:MOST_SEVERE])
