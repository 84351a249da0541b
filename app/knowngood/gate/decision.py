"""The gate: may this environment be used? A pure function of policy, environment and what is known."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from knowngood.domain.builds.architectures import driver_runs
from knowngood.domain.builds.packages import built_for_another
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.builds.platforms import TAKEN
from knowngood.domain.hardware_names import several_gpus
from knowngood.domain.issue import Issue, Severity, Workaround
from knowngood.domain.issue_selectors import SEVERITY_RANK
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import doubts_about_fix
from knowngood.domain.verdicts.history import listed
from knowngood.domain.verdicts.inference import PYTHON_RULE
from knowngood.domain.verdicts.status import ranked, status_of
from knowngood.domain.verdicts.verdict import (
    Assurance,
    Basis,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_silent,
)
from knowngood.domain.vocabulary import StatusLabel, many
from knowngood.gate.policy import Effect
from knowngood.gate.question import BROKEN, FAILURES, UNKNOWN, Case, GateQuestion, cases_of
from knowngood.gate.rules import CONCERNS_OTHERS, EFFECT_RANK, age_days, is_stale, weigh


class Decision(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    BLOCK = "block"
    INSUFFICIENT = "insufficient_evidence"


@dataclass(frozen=True)
class MeasuredWorkaround:
    """A workaround as measured on the very build that is asked about; `snippet` is the Markdown to paste. `runs` is how
    many passes say that it helps, `ground` the build of another Python on which they were made (empty: on this one).
    """

    id: str
    title: str
    verdict: WorkaroundVerdict
    trade_off: str = ""
    snippet: str = ""
    runs: int = 0
    ground: str = ""

    @property
    def how(self) -> str:
        """`that works here (3 runs)`."""
        where = f"that works, run on {plain_name(self.ground)}" if self.ground else "that works here"
        return f"{where} ({many(self.runs, 'run')})" if self.runs else where


@dataclass(frozen=True)
class Reason:
    """The effect of one watched issue on one hardware class on the decision, and why in one sentence.

    An issue has one for each class that is asked for (see `decide`). Where no tested build was found `build` is empty,
    and `hardware` too unless the policy names one class. `workarounds` come best first; `applied` are those that the
    policy declares to be in place, whether they help or not. `ignored` says who accepts the issue and why (empty:
    nobody). `fixed_in` is an interval with what was not measured inside it, `first_fixed` the oldest later tested
    release that passes (empty: none known), `fix_doubts` what upstream says otherwise. `evidence_url` is a path below
    the server's address. `is_new` compares with the policy's base build (null: nothing to compare).
    `assurance` says whether the answer was measured on this very build, Python and class, or is inferred from the cell
    in `grounds`; `runs` how many attempts it rests on. `upstream` is the thread in which the issue was reported,
    `caveat` says of an issue of a team's own catalogue that its repro was not reviewed (empty for all others),
    `not_covered` is what is left wrong, of a pass that says nothing of it. `sign` says how the cell stands with its
    workarounds (the name of its sign, as `/signs` shows it): `untried` is a failure on which one of them has no answer,
    `fails` one on which all were run and none helps, `variant` one that passes as reported. `works_on` is a build on
    which one helps that is not verified here (empty: none is known), `elsewhere` that one. `concerns_others` says that
    it is about another class, or about a package that is not known to be there.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}  # none is ever left out

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
    measured_at: datetime | None = None
    age_days: int | None = None
    stale: bool = False
    evidence_url: str | None = None
    workarounds: tuple[MeasuredWorkaround, ...] = ()
    applied: tuple[str, ...] = ()
    ignored: str = ""
    fixed_in: str = ""
    first_fixed: str = ""
    fix_doubts: tuple[str, ...] = ()
    is_new: bool | None = None
    assurance: Assurance = Assurance.NOT_KNOWN
    grounds: tuple[Basis, ...] = ()
    runs: int = 0
    upstream: str | None = None
    caveat: str = ""
    not_covered: tuple[str, ...] = ()
    sign: StatusLabel = StatusLabel.NOT_RUN
    works_on: str = ""
    elsewhere: MeasuredWorkaround | None = None
    concerns_others: bool = False


@dataclass(frozen=True)
class Refusal:
    """A fact about wheels that blocks whatever is watched. `code` is for programs: `gpu_not_served` (by the list of
    that very wheel), `driver_too_old` (by the CUDA that it was built for), `no_wheel` (by the index) or `pair_refused`
    (by what a package asks for, or its own version). `hardware` is the class it is about; empty: all.
    """

    code: str
    hardware: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """May this environment be used, and why (the first line that a person reads): the decision document, whose
    properties stand in this order.

    `build` is the tested build that it is (null: none, and `nearest` names tested builds beside it, which were not
    used), `base` the one that it was compared with. `line` is that of the environment's file that states torch (null:
    none does). `counts` has the number of reasons of each effect. `reasons` come worst first; `notes` say what holds
    for all of it, such as an assumed build; `refusals` block whatever the reasons say.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}  # none is ever left out

    decision: Decision
    why: str
    build: str | None
    base: str | None = None
    asked: str
    line: int | None = None
    nearest: tuple[str, ...]
    hardware: tuple[str, ...]
    counts: Mapping[Effect, int]
    notes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    decided_at: datetime | None = None
    known_at: datetime | None = None
    reasons: tuple[Reason, ...]


def decide(question: GateQuestion) -> Ruling:
    """Answer whether the environment may be used.

    Which classes are asked for. With `policy.hardware` these. With none, every measured class, of each issue those on
    which it was ever measured, on any build: one on which nobody ever ran it says nothing about this build in
    particular, while one on which other builds have an answer is a hole. An issue that was measured nowhere is asked
    for on every class where it applies. Where an issue cannot exist on a class it is neutral: it has no reason there
    if it applies on another class, else one that passes and answers nothing.

    What adds up. Block beats insufficient beats pass. Without a single answer (a conclusive cell that is about this
    environment) the decision is never a pass, whatever the policy says of unknowns: `unknown` is about holes between
    answers. Raises BadRequest for a question that means nothing: misspelt ids, no base to compare with.

    Where nothing is watched, refusals alone block a tested build; what fails on it and passes on the base build warns,
    and all else that fails is counted in a note.
    """
    watched, notes_on_names = question.watched
    cases = [case for issue in watched for case in cases_of(issue, question)]
    every = sorted(map(_reason, cases), key=_most_severe_first)
    reasons = [reason for reason in every if not question.is_unwatched or reason.effect is not Effect.PASS]
    refusals = tuple(_refusals(question))
    doubts = tuple(_doubts(question, reasons, is_answered=any(case.is_conclusive for case in cases)))
    counts = Counter(reason.effect for reason in reasons)
    decision = Decision.BLOCK if refusals else _decision(counts, doubts)
    first = (_unwatched(question, every),) if question.is_unwatched and question.build else ()
    notes = (*first, *_notes(question, refusals), *notes_on_names, *_notes_on_base(question), *question.lost_names())
    return Ruling(
        decision=decision,
        why=_why(decision, question, every, refusals, doubts),
        build=question.build.id if question.build else None,
        base=question.base.build if question.base else None,
        asked=question.resolved.description,
        nearest=question.resolved.nearest,
        hardware=question.classes,
        reasons=tuple(reasons),
        notes=tuple(dict.fromkeys((*notes, *_assumed(question)))),
        counts={effect: counts[effect] for effect in Effect},
        decided_at=question.now,
        known_at=question.known.as_of,
        line=question.resolved.line or None,
        refusals=refusals,
    )


def _refusals(question: GateQuestion) -> Iterable[Refusal]:
    """Refuse by what was read in the very wheel that is asked about, never by that of another variant."""
    known = question.known
    yield from (Refusal(fact.key, "", english(fact)) for fact in question.resolved.refusals)
    wheel, driver = known.builds.get(question.resolved.build or ""), question.resolved.driver
    if wheel is None:
        return
    for class_ in question.policy.hardware:
        if known.serves(wheel, class_) is False:
            yield Refusal("gpu_not_served", class_, english(known.against(wheel, class_)))
        elif class_.startswith("cuda-") and driver_runs(wheel, driver) is False:
            yield Refusal("driver_too_old", class_, english(known.against(wheel, class_, driver)))


def _notes_on_base(question: GateQuestion) -> Iterable[str]:
    base = question.base
    if base and base.build is None:
        so = "every failing issue counts as new" if question.policy.only_new else "nothing can be said to be new"
        yield f"the base build {base.description} is not known here, so {so}"
    elif base and base.is_assumed:
        yield f"the base build is assumed: {base.note}"


def _unwatched(question: GateQuestion, reasons: Iterable[Reason]) -> str:
    """How much fails where nothing is watched, and what says more."""
    failing = {reason.issue for reason in reasons if reason.verdict in BROKEN}
    unknown = {reason.issue for reason in reasons if reason.verdict in UNKNOWN} - failing
    fail = f"{many(len(failing), 'known issue')} {'fails' if len(failing) == 1 else 'fail'} here"
    watch = "to watch some: --severity high, or [watch] in knowngood.toml"
    return f"{fail}, {len(unknown)} are not known: knowngood env {question.asked_as}; {watch}"


def _reason(case: Case) -> Reason:
    effect, why, ignored = weigh(case)
    issue, cell, fix, hardware = case.issue, case.cell, case.fix, case.cell.hardware
    report, doubts = issue.report, doubts_about_fix(issue, fix, case.question.known, hardware) if fix else ()
    evidence = f"/cells/{cell.issue}/{cell.build.replace('+', '%2B')}" + (hardware and f"?hardware={hardware}")
    return Reason(
        issue=issue.id,
        title=issue.title,
        component=issue.component,
        severity=issue.severity,
        silent=is_silent(issue, cell),
        build=cell.build,
        hardware=hardware,
        verdict=cell.verdict,
        effect=effect,
        why=why,
        measured_at=cell.measured_at,
        age_days=age_days(case),
        stale=is_stale(case),
        workarounds=_workarounds(issue, cell),
        applied=case.declared,
        ignored=ignored,
        fixed_in=english(fix.in_words) if fix else "",
        first_fixed=fix.build.id if fix else "",
        evidence_url=evidence if case.build else f"/issues/{issue.id}",
        is_new=case.is_new,
        assurance=Assurance.NOT_KNOWN if case.only_on else cell.assurance,
        grounds=(cell.basis,) if cell.basis else (),
        runs=cell.runs,
        upstream=report.url if report else None,
        caveat=issue.caveat,
        fix_doubts=tuple(map(english, doubts)),
        not_covered=cell.not_covered,
        sign=status_of(cell),
        works_on=case.works_on,
        elsewhere=_shown(case.elsewhere[0], WorkaroundFinding(WorkaroundVerdict.EFFECTIVE)) if case.elsewhere else None,
        concerns_others=cell.reason.key in CONCERNS_OTHERS,
    )


_TRIED = (
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.HARMFUL,
)


def _workarounds(issue: Issue, cell: Cell) -> tuple[MeasuredWorkaround, ...]:
    """Workarounds that help, with their snippets, then those that were tried and do not; of failing cells alone."""
    if cell.verdict not in FAILURES:
        return ()
    return tuple(
        _shown(workaround, finding)
        if finding.verdict is WorkaroundVerdict.EFFECTIVE
        else MeasuredWorkaround(workaround.id, workaround.title, finding.verdict)
        for workaround, finding in ranked(issue, cell)
        if finding.verdict in _TRIED
    )


def _shown(workaround: Workaround, finding: WorkaroundFinding) -> MeasuredWorkaround:
    """A workaround that helps, with all that a reader needs to paste it."""
    return MeasuredWorkaround(
        workaround.id,
        workaround.title,
        WorkaroundVerdict.EFFECTIVE,
        workaround.trade_off,
        workaround.body,
        finding.runs,
        finding.ground,
    )


def _most_severe_first(reason: Reason) -> tuple[int, int, str, str]:
    return (-EFFECT_RANK[reason.effect], -SEVERITY_RANK[reason.severity], reason.issue, reason.hardware)


def _decision(counts: Mapping[Effect, int], doubts: Sequence[str]) -> Decision:
    if counts[Effect.BLOCK]:
        return Decision.BLOCK
    return Decision.INSUFFICIENT if counts[Effect.INSUFFICIENT] or doubts else Decision.PASS


def _doubts(question: GateQuestion, reasons: Sequence[Reason], *, is_answered: bool) -> Iterable[str]:
    """Reasons for which the evidence is insufficient as a whole, whatever the single reasons say."""
    if question.build is None:
        yield question.resolved.not_tested
        return
    if question.resolved.is_assumed and question.policy.refuse_assumed:
        yield f"the build {question.build.in_words} is assumed, and the policy refuses assumed builds"
    if not question.resolved.platforms and question.policy.refuse_unstated:
        yield "the environment states no platform, and the policy refuses to take it for Linux x86-64"
    if question.is_unwatched:
        return
    if not reasons:
        yield "what is watched names no issue of this catalogue"
    elif not is_answered:
        yield f"nothing that is watched has an answer on {question.build.in_words}"


def _notes(question: GateQuestion, refusals: Iterable[Refusal]) -> Iterable[str]:
    resolved, policy = question.resolved, question.policy
    if resolved.note and not (resolved.is_assumed and question.build):
        yield resolved.note
    if question.build and resolved.build is None:
        yield (
            f"{resolved.description} is not tested; by the policy {question.build.in_words}, another variant, "
            "answers for it"
        )
    wheel, refused = question.known.builds.get(resolved.build or ""), {refusal.hardware for refusal in refusals}
    is_named = question.build or resolved.torch
    others = (class_ for class_ in policy.hardware if is_named and class_ not in refused)
    yield from (
        english(remark) for other in others if (remark := question.known.against(wheel, other, resolved.driver))
    )
    yield from map(english, several_gpus(resolved.gpus))
    yield from built_for_another(question.build, resolved.packages) if question.build else ()


def _assumed(question: GateQuestion) -> Iterable[str]:
    """All that was taken for granted, in one note."""
    build, resolved, classes = question.build, question.resolved, ", ".join(map(plain_name, question.classes))
    assumed = {
        resolved.note or (build.in_words if build else ""): resolved.is_assumed,
        english(TAKEN): not resolved.platforms,
        f"every measured hardware, the worst counts ({classes or 'none yet'})": not question.policy.hardware,
    }
    if parts := [words for words, is_so in assumed.items() if is_so and build]:
        yield f"assumed: {'; '.join(parts)}"


def _why(
    decision: Decision,
    question: GateQuestion,
    reasons: Sequence[Reason],
    refusals: Iterable[Refusal],
    doubts: Sequence[str],
) -> str:
    total = len({reason.issue for reason in reasons})
    watched = many(total, "watched issue")
    build = question.build.in_words if question.build else "it"
    match decision:
        case Decision.BLOCK:
            blocking = _issues(reasons, Effect.BLOCK)
            refused = [refusal.why for refusal in refusals]
            if not blocking:
                return "; ".join(refused)
            block = "blocks" if len(blocking) == 1 else "block"
            says = f"{len(blocking)} of {watched} {block} {build}"
            rest = doubts if question.build is None else _count_new(question, reasons)
            return "; ".join([*refused, f"{says}: {english(listed(blocking))}", *rest])
        case Decision.INSUFFICIENT if doubts:
            return "; ".join(doubts)
        case Decision.INSUFFICIENT:
            lacking = _issues(reasons, Effect.INSUFFICIENT)
            says = f"not enough evidence on {build} for {len(lacking)} of {watched}: {english(listed(lacking))}"
            return "; ".join([says, *_count_new(question, reasons)])
        case Decision.PASS if question.is_unwatched:
            says = f"nothing known keeps {build} from being installed and run; nothing is watched"
            return "; ".join([says, *_count_new(question, reasons), *_beside(reasons)])
        case Decision.PASS:
            none = "the watched issue does not block" if total == 1 else f"none of {watched} blocks"
            rest = (*_count_new(question, reasons), *_grounds(question, reasons), *_beside(reasons))
            return "; ".join([f"{none} {build}", *rest])


def _count_new(question: GateQuestion, reasons: Iterable[Reason]) -> Iterable[str]:
    """How many failures are new, and of how many nobody can say it, where the policy asks for what is new."""
    failing = [reason for reason in reasons if reason.verdict in FAILURES]
    new, open_ = ({reason.issue for reason in failing if reason.is_new is wanted} for wanted in (True, None))
    if (question.policy.only_new or question.is_unwatched) and question.base_build and failing:
        base = question.base_build.in_words
        yield f"{len(new)} new since {base}, and of {len(open_)} nobody can say whether they are"


def _grounds(question: GateQuestion, reasons: Iterable[Reason]) -> Iterable[str]:
    """How the passes are known, where nobody ran them there, or only once."""
    passing = [reason for reason in reasons if reason.verdict is Verdict.NOT_AFFECTED]
    builds = question.known.builds
    inferred = Counter(
        f"Python {builds[ground.build].python}" if ground.rule == PYTHON_RULE else plain_name(ground.hardware)
        for reason in passing
        for ground in reason.grounds
    )
    if inferred:
        grounds = listed([f"{n} from {ground}" for ground, n in inferred.most_common()])
        yield f"{inferred.total()} inferred, {english(grounds)}"
    single = sum(1 for reason in passing if reason.runs == 1)
    if single:
        yield f"{single} on a single run"


def _beside(reasons: Sequence[Reason]) -> Iterable[str]:
    warned = _issues(reasons, Effect.WARN)
    if warned:
        yield f"{len(warned)} to look at: {english(listed(warned))}"
    ignored = list(dict.fromkeys(reason.issue for reason in reasons if reason.ignored))
    if ignored:
        yield f"{len(ignored)} ignored: {english(listed(ignored))}"


def _issues(reasons: Iterable[Reason], effect: Effect) -> list[str]:
    return list(dict.fromkeys(reason.issue for reason in reasons if reason.effect is effect))
