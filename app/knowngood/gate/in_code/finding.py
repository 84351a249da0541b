"""An answer about one issue in the running environment, and how to refuse by it. Imports next to nothing: it is part of
what a program pays for the first answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from knowngood.domain.errors import KnownGoodError, UnknownName


@dataclass(frozen=True)
class Finding:
    """The behaviour of one issue in the running environment, as the gate knows it.

    `affected` is True where the issue fails, False where it passes or cannot exist, None where nobody knows; `verdict`
    and `assurance` are the cell's (docs/verdicts.md). `build` is the tested build that this environment is (empty:
    none), `hardware` the class that decided. `runs` is how many attempts the verdict rests on, `measured_at` is aware
    UTC (None: nothing was measured). `workarounds` maps those that were tried where it fails to how they did there.
    `signature` is how the failure shows: `message`, `wrong_result`, `signal` or `hang`; `silent` says that it gives
    wrong numbers without an error. `note` says what was assumed of the environment.
    """

    issue: str
    title: str
    signature: str
    upstream: str
    build: str
    hardware: str
    affected: bool | None
    verdict: str
    reason: str
    assurance: str = "not_known"
    runs: int = 0
    measured_at: datetime | None = None
    silent: bool = False
    fixed_in: str = ""
    workarounds: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def __bool__(self) -> bool:
        raise TypeError(
            "a Finding is neither true nor false: ask `.affected` (True, False, or None where nobody knows), such as "
            "`finding(...).affected is True`"
        )

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.build, self.hardware, self.note) if part)
        return f"{self.issue}: {self.reason}" + (f" ({where})" if where else "")


class UnknownWorkaround(UnknownName, LookupError):
    """A name of a workaround that the issue does not have."""


class NotKnownGood(KnownGoodError, RuntimeError):
    """The running environment is not known to be good for an issue that some code is guarded by."""

    def __init__(self, problem: str, finding: Finding) -> None:
        super().__init__(problem)
        self.finding = finding


class NotKnownGoodWarning(UserWarning):
    """The code ran although the issue fails here, or nobody knows whether it does."""


_SEVEREST_FIRST = (True, None, False)


def worst_of(findings: list[Finding]) -> Finding:
    """Choose the finding that decides among several classes, as the gate does: a class where the issue cannot exist
    decides nothing where it exists on another one.
    """
    applicable = [finding for finding in findings if finding.verdict != "not_applicable"]
    return min(applicable or findings, key=lambda finding: _SEVEREST_FIRST.index(finding.affected))
