"""What the pages and the JSON of cells and attempts both say: one gathering, one sentence."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.domain.build import Build
from app.domain.cost import Timed
from app.domain.history import FAILING
from app.domain.issue import BASELINE, OPERATOR_PROBE, Issue
from app.domain.machine import CPU_CLASS, Machine
from app.domain.outcome import Outcome
from app.domain.verdict import CONCLUSIVE, Cell, Verdict
from app.store.attempts import FORKED
from app.store.known import load_known
from app.store.reads import AttemptDetail, AttemptRow, UnknownAttempt, load_attempt, load_attempts
from app.store.session import Session
from app.web.finding import find_build, find_issue
from app.web.selection import known_classes, known_then

CHANGES_SHOWN = 20
"""How many steps of a cell's history its page and its JSON tell."""

ATTEMPTS_SHOWN = 100
"""Of one cell. More would be judged anew for each look at a cell that is measured every night for years; the list of an
issue's attempts (`/api/v1/attempts`) has them all, in parts.
"""

_CLASS = re.compile(r"cpu-[a-z0-9_]{1,20}|cuda-sm_[0-9]{2,4}[a-z]?")

LEAD_WORDS = {
    Verdict.AFFECTED: "Fails on",
    Verdict.NOT_AFFECTED: "Passes on",
    Verdict.DIFFERENT_FAILURE: "Fails differently on",
    Verdict.FLAKY: "Flaky on",
    Verdict.INCONCLUSIVE: "Cannot say for",
    Verdict.NOT_APPLICABLE: "Does not apply to",
    Verdict.NO_BUILD: "Cannot be built for",
    Verdict.NOT_RUN: "Not run on",
}


@dataclass(frozen=True)
class CellEvidence:
    """A cell with its newest attempts, superseded ones too. `classes` are those this issue and build were measured on.

    `telling` is the attempt that says most; None where there was none, or where it was pruned.
    """

    issue: Issue
    build: Build
    cell: Cell
    classes: tuple[str, ...]
    attempts: tuple[AttemptRow, ...]
    telling: AttemptDetail | None

    @property
    def machine(self) -> Machine | None:
        """Where the telling attempt ran."""
        return self.telling.machine if self.telling else None

    @property
    def seen(self) -> Mapping[str, int]:
        """Which of the probes that the suspect path is known by the telling attempt saw, and how often."""
        if self.telling is None or self.telling.attempt.arm != BASELINE:
            return {}
        probes = self.telling.attempt.record.probes
        return {probe: probes[probe] for probe in self.issue.arm(BASELINE).exercises if probes.get(probe)}


def load_cell_evidence(
    session: Session, issue_id: str, build_id: str, hardware: str, now: datetime, *, at: datetime | None = None
) -> CellEvidence:
    """The cell as it is, or as it was known `at` a past moment.

    Raises NotHere for an unknown issue or build, BadQuestion for a hardware class that was never measured.
    """
    issue = find_issue(session, issue_id)
    build, _ = find_build(session, build_id)
    known = load_known(session, now) if at is None else known_then(session, at, issues=[issue.id], builds=[build.id])
    measured = tuple(one for one in known.hardware if (issue.id, build.id, one) in known.cells)
    class_ = _class(hardware, measured)
    cell = known.cell(issue, build, class_)
    attempts = load_attempts(session, issue.id, build.id, class_, None if at else ATTEMPTS_SHOWN)
    if at is not None:
        attempts = tuple(row for row in attempts if row.attempt.finished_at <= at)
    return CellEvidence(issue, build, cell, measured, attempts, _telling(session, cell))


def timed_of(attempts: Iterable[AttemptRow]) -> Iterator[Timed]:
    """The passes that count, with what they took; as `app.store.attempts.load_timed` reads them."""
    for row in attempts:
        if row.counted and row.judgement.outcome is Outcome.PASS:
            one, record = row.attempt, row.attempt.record
            is_forked = FORKED in record.sandbox
            yield Timed(one.arm, one.variant, one.machine, one.lock_digest, is_forked, record.own_s, record.peak_bytes)


def _telling(session: Session, cell: Cell) -> AttemptDetail | None:
    try:
        return load_attempt(session, cell.evidence) if cell.evidence else None
    except UnknownAttempt:
        return None


def _class(asked: str, measured: Sequence[str]) -> str:
    """The class asked for may be unmeasured here: its cell then says not_run. Only its form is checked."""
    if _CLASS.fullmatch(asked):
        return asked
    return known_classes([asked], measured)[0] if asked else next(iter(measured), CPU_CLASS)


def cell_sentence(evidence: CellEvidence) -> str:
    """Why this verdict: "Fails on torch-2.7.1+cu126 (cpu-x86_64): 3 of 3 attempts ...; control passed.".

    The reason of a pass names its proof already; of a failure it is said what it went through before it failed.
    """
    cell = evidence.cell
    lead = f"{LEAD_WORDS[cell.verdict]} {cell.build} ({cell.hardware})"
    control = "; control passed" if cell.verdict in CONCLUSIVE and cell.control is Outcome.PASS else ""
    seen = ", ".join(f"{probe.removeprefix(OPERATOR_PROBE)} {n}x" for probe, n in evidence.seen.items())
    path = f"; path seen ({seen})" if seen and cell.verdict in FAILING else ""
    return f"{lead}: {cell.reason}{control}{path}."
