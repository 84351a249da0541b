"""The evidence of a cell, for its page and its JSON: one gathering, one sentence."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from knowngood.domain.builds import build_names
from knowngood.domain.builds.build import Build, parse_build_id
from knowngood.domain.hardware_classes import whole_class
from knowngood.domain.issue import BASELINE, CONTROL, OPERATOR_PROBE, Issue
from knowngood.domain.measuring.machine import CPU_CLASS, Machine
from knowngood.domain.message import Message, clauses, english, sentence
from knowngood.domain.verdicts.inference import DEVICE_AND_PYTHON_RULE, PYTHON_RULE
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import concerns_cpu_path
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import CONCLUSIVE, FAILING, Basis, Cell
from knowngood.domain.verdicts.workaround_cost import Timed
from knowngood.matrix.lookups import find_build, find_issue
from knowngood.matrix.overview.selection import known_classes, known_then
from knowngood.store.engine import Session
from knowngood.store.evidence.attempt_codec import timed
from knowngood.store.queries import AttemptDetail, AttemptRow, UnknownAttempt, load_attempt, load_attempts
from knowngood.web.html.i18n import Language, say

CHANGES_SHOWN = 20
"""How many steps of a cell's history its page and its JSON tell."""

ATTEMPTS_SHOWN = 100
"""Of one cell. More would be judged anew for each look at a cell that is measured every night for years; the list of an
issue's attempts (`/api/v1/attempts`) has them all, in parts.
"""

_CLASS = re.compile(r"cpu-[a-z0-9_]{1,20}|cuda-sm_[0-9]{2,4}[a-z]?")


@dataclass(frozen=True)
class CellEvidence:
    """A cell with its newest attempts, superseded ones too. `classes` are those this issue and build were measured on.

    `telling` is the attempt that says most; None where there was none, or where it was pruned. `ground` is the measured
    cell that an inferred one stands on (None: this one was measured, or nothing is known), and `supporting` are the
    attempts of whichever was measured.
    """

    issue: Issue
    build: Build
    cell: Cell
    classes: tuple[str, ...]
    attempts: tuple[AttemptRow, ...]
    telling: AttemptDetail | None
    ground: Cell | None
    supporting: tuple[AttemptRow, ...]
    known: Known

    @property
    def machine(self) -> Machine | None:
        """Where the telling attempt ran."""
        return self.telling.machine.brief if self.telling and self.telling.machine else None

    @property
    def seen(self) -> Mapping[str, int]:
        """Which of the probes that the suspect path is known by the telling attempt saw, and how often."""
        if self.telling is None or self.telling.attempt.arm != BASELINE:
            return {}
        probes = self.telling.attempt.record.probes
        return {
            probe.removeprefix(OPERATOR_PROBE): probes[probe]
            for probe in self.issue.arm(BASELINE).exercises
            if probes.get(probe)
        }

    @property
    def unseen(self) -> tuple[str, ...]:
        """The probes that it did not see."""
        wanted = (probe.removeprefix(OPERATOR_PROBE) for probe in self.issue.arm(BASELINE).exercises)
        return tuple(probe for probe in wanted if probe not in self.seen)

    @property
    def controls(self) -> tuple[AttemptRow, ...]:
        """The attempts of the control that count and could be run."""
        counted = (row for row in self.supporting if row.counted and row.attempt.arm == CONTROL)
        return tuple(row for row in counted if row.judgement.outcome is not Outcome.NOT_APPLICABLE)

    @property
    def shown(self) -> tuple[int, int]:
        """How many baselines showed the issue, and how many gave an answer, over all variants."""
        return sum(variant.k for variant in self.cell.variants), sum(variant.n for variant in self.cell.variants)


def load_cell_evidence(
    session: Session, known: Known, issue_id: str, build_id: str, hardware: str, *, at: datetime | None = None
) -> CellEvidence:
    """The cell as it is `known`, or as it was known `at` a past moment.

    Raises NotFound for an unknown issue or build, InvalidParameter for a hardware class that was never measured.
    """
    issue = find_issue(session, issue_id)
    named, builds = find_build(session, build_id)
    build = named if named.python else build_names.find_build(build_id, builds)
    if at is not None:
        known = known_then(session, at, issues=[issue.id], builds=[build.id])
    measured = tuple(
        known_class for known_class in known.classes_of(issue.id) if (issue.id, build.id, known_class) in known.cells
    )
    class_ = _class(hardware, measured)
    cell = known.cell(issue, build, class_)
    attempts = load_attempts(session, issue.id, build.id, class_, None if at else ATTEMPTS_SHOWN)
    if at is not None:
        attempts = tuple(row for row in attempts if row.attempt.finished_at <= at)
    ground = known.cells[cell.issue, cell.basis.build, cell.basis.hardware] if cell.basis else None
    supporting = attempts
    if ground is not None:
        supporting = load_attempts(session, issue.id, ground.build, ground.hardware, ATTEMPTS_SHOWN)
    return CellEvidence(issue, build, cell, measured, attempts, _telling(session, cell), ground, supporting, known)


def timed_of(attempts: Iterable[AttemptRow]) -> list[Timed]:
    """The passes that count, with what they took; as `load_timed` reads them."""
    counted = (row for row in attempts if row.counted and row.judgement.outcome is Outcome.PASS)
    return [timed(row.attempt, row.attempt.record) for row in counted]


def _telling(session: Session, cell: Cell) -> AttemptDetail | None:
    try:
        return load_attempt(session, cell.evidence) if cell.evidence else None
    except UnknownAttempt:
        return None


def _class(wanted: str, measured: Sequence[str]) -> str:
    """The class of the request. It may be unmeasured here, and its cell is not_run then: only its form is checked."""
    if _CLASS.fullmatch(whole_class(wanted)):
        return wanted
    return known_classes([wanted], measured)[0] if wanted else next(iter(measured), CPU_CLASS)


def cell_sentence(evidence: CellEvidence) -> str:
    """Why this verdict: "Fails on torch-2.7.1+cu126 (cpu-x86_64): 3 of 3 attempts ...; control passed.".

    The reason of a pass names its proof already; the sentence of a failure adds what it went through before it failed.
    The sentence of an inferred cell is the measured cell's, after what it is inferred from.
    """
    if evidence.cell.basis is None:
        return sentence(measured_sentence(evidence))
    return f"{how_known(evidence.cell.basis)}: {english(measured_sentence(evidence))}"


def measured_sentence(evidence: CellEvidence) -> Message:
    """The same sentence without the inference."""
    cell = evidence.ground or evidence.cell
    where = {"build": cell.build, "hardware": cell.hardware}
    if concerns_cpu_path([cell]):
        return Message("it_on_build", **where, said=cell.reason)
    parts = [cell.reason]
    if cell.verdict in CONCLUSIVE and cell.control is Outcome.PASS:
        parts.append(Message("control_passed"))
    seen = tuple(f"{probe} {n}x" for probe, n in evidence.seen.items())
    if seen and cell.verdict in FAILING:
        parts.append(Message("path_seen", proof=seen))
    return Message("on_build", **where, lead=Message(f"lead_{cell.verdict}"), said=clauses(parts))


def how_known(basis: Basis, language: Language = Language.ENGLISH) -> str:
    """`Inferred from Python 3.11 of the same wheel (these Pythons agreed in 149 of 150 cells)`."""
    python = parse_build_id(basis.build).python
    if basis.rule == PYTHON_RULE:
        return say(
            "Inferred from Python {python} of the same wheel (these Pythons agreed in {agreed} of {all} cells)",
            language,
            python=python,
            agreed=basis.agreed,
            all=basis.compared,
        )
    if basis.rule == DEVICE_AND_PYTHON_RULE:
        return say(
            "Inferred from {hardware} with Python {python}, as it does not depend on the device (these agreed in "
            "{agreed} of {all} cells)",
            language,
            hardware=basis.hardware,
            python=python,
            agreed=basis.agreed,
            all=basis.compared,
        )
    return say(
        "Inferred from {hardware}, as it does not depend on the device (the two agreed in {agreed} of {all} cells)",
        language,
        hardware=basis.hardware,
        agreed=basis.agreed,
        all=basis.compared,
    )
