"""The gate's answer as OpenAPI tells it. The document itself is made by `gate.renderers.json`."""

from datetime import datetime

from pydantic import BaseModel

from knowngood.app.domain.issue import Severity
from knowngood.app.domain.verdicts.verdict import Assurance, Basis, Verdict
from knowngood.app.domain.vocabulary import StatusLabel
from knowngood.app.features.gate.decision import Decision, MeasuredWorkaround, Refusal
from knowngood.app.features.gate.policy import Effect


class ReasonBody(BaseModel):
    """The effect of one watched issue on one hardware class on the decision, and why in one sentence.

    `workarounds` come best first; `applied` are those that the policy declares to be in place. `ignored` says who
    accepts the issue and why (empty: nobody). `fixed_in` is an interval with what was not measured inside it,
    `first_fixed` the oldest later tested release that passes (empty: none known), `fix_doubts` what upstream says
    otherwise. `is_new` compares with the policy's base build (null: nothing to compare).
    `assurance` says whether the answer was measured on this very build, Python and class, or is inferred from the cell
    in `grounds`; `runs` how many attempts it rests on. `upstream` is the thread in which the issue was reported,
    `caveat` says of an issue of a team's own catalogue that its repro was not reviewed (empty for all others),
    `not_covered` is what is left wrong, of a pass that says nothing of it. `sign` says how the cell stands with its
    workarounds (the name of its sign, as `/signs` shows it): `untried` is a failure on which not all of them were run,
    `fails` one on which all were and none helps, `variant` one that passes as reported. `works_on` is a build on which
    one helps that was not tried here (empty: none is known), `elsewhere` that one.
    """

    issue: str
    title: str
    component: str
    severity: Severity
    silent: bool
    build: str
    hardware: str
    verdict: Verdict
    effect: Effect
    why: str
    measured_at: datetime | None
    age_days: int | None
    stale: bool
    evidence_url: str | None
    workarounds: list[MeasuredWorkaround]
    applied: list[str]
    ignored: str
    fixed_in: str
    first_fixed: str
    fix_doubts: list[str]
    is_new: bool | None
    assurance: Assurance
    grounds: list[Basis]
    runs: int
    upstream: str | None
    caveat: str = ""
    not_covered: list[str] = []
    sign: StatusLabel = StatusLabel.NOT_RUN
    works_on: str = ""
    elsewhere: MeasuredWorkaround | None = None


class DecisionBody(BaseModel):
    """May this environment be used, and why.

    `build` is the tested build that it is (null: none, and `nearest` names tested builds beside it, which were not
    used). `line` is that of the environment's file that states torch (null: none does). `counts` has the number of
    reasons of each effect. `reasons` come worst first.
    """

    decision: Decision
    why: str
    build: str | None
    asked: str
    line: int | None
    nearest: list[str]
    hardware: list[str]
    counts: dict[Effect, int]
    notes: list[str]
    refusals: list[Refusal] = []
    decided_at: datetime | None
    known_at: datetime | None
    reasons: list[ReasonBody]
