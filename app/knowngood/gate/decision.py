"""The gate: may this environment be used? A pure function of policy, environment and what is known."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, TypeVar

from knowngood.domain.builds.build import Build, minor_of
from knowngood.domain.builds.package_names import canonical_package
from knowngood.domain.builds.packages import built_for_another, concerns, named_by
from knowngood.domain.builds.platforms import TAKEN
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.hardware_names import several_gpus
from knowngood.domain.issue import CONCERNS, Issue, Severity, Workaround, environment_request
from knowngood.domain.issue_selectors import SEVERITY_RANK, meant_by, nearest, watched_issues
from knowngood.domain.verdicts.claims import doubts_about_fix
from knowngood.domain.verdicts.history import listed
from knowngood.domain.verdicts.inference import PYTHON_RULE, VARIANT_RULE, counted, tells_most
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import helped_elsewhere
from knowngood.domain.verdicts.status import passes_as_reported, status_of
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    Assurance,
    Basis,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_silent,
    tried_here,
)
from knowngood.domain.vocabulary import StatusLabel, many
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.gate.policy import Accept, Effect, Ignore, Policy, Variants
from knowngood.gate.rules import (
    EFFECT_RANK,
    FAILURES,
    Case,
    WeighedCell,
    age_days,
    by_ignores,
    is_stale,
    strays_in,
    weigh,
)


class Decision(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    BLOCK = "block"
    INSUFFICIENT = "insufficient_evidence"


@dataclass(frozen=True)
class GateQuestion:
    """`resolved` is the environment, `policy` has the watch with named lists already filled in. `now` is aware UTC."""

    resolved: ResolvedBuild
    policy: Policy
    now: datetime


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
        where = f"that works, run on {self.ground}" if self.ground else "that works here"
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
    workarounds (the name of its sign, as `/signs` shows it): `untried` is a failure on which not all of them were run,
    `fails` one on which all were and none helps, `variant` one that passes as reported. `works_on` is a build on which
    one helps that was not tried here (empty: none is known), `elsewhere` that one.
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
    workarounds: tuple[MeasuredWorkaround, ...] = ()
    applied: tuple[str, ...] = ()
    ignored: str = ""
    fixed_in: str = ""
    first_fixed: str = ""
    evidence_url: str | None = None
    is_new: bool | None = None
    assurance: Assurance = Assurance.NOT_KNOWN
    grounds: tuple[Basis, ...] = ()
    runs: int = 0
    upstream: str | None = None
    fix_doubts: tuple[str, ...] = ()
    caveat: str = ""
    not_covered: tuple[str, ...] = ()
    sign: StatusLabel = StatusLabel.NOT_RUN
    works_on: str = ""
    elsewhere: MeasuredWorkaround | None = None


@dataclass(frozen=True)
class Refusal:
    """A fact about the wheel that blocks whatever is watched. `code` is for programs (`gpu_not_served`)."""

    code: str
    hardware: str
    why: str


@dataclass(frozen=True)
class Ruling:
    """May this environment be used, and why (the first line that a person reads).

    `build` is the tested build that it is (null: none, and `nearest` names tested builds beside it, which were not
    used). `line` is that of the environment's file that states torch (null: none does). `counts` has the number of
    reasons of each effect. `reasons` come worst first; `notes` say what holds for all of it, such as an assumed build;
    `refusals` block whatever the reasons say.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}  # none is ever left out

    decision: Decision
    why: str
    build: str | None
    asked: str
    nearest: tuple[str, ...]
    hardware: tuple[str, ...]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...] = ()
    counts: Mapping[Effect, int] = field(default_factory=dict)
    decided_at: datetime | None = None
    known_at: datetime | None = None
    line: int | None = None
    refusals: tuple[Refusal, ...] = ()


def decide(question: GateQuestion, known: Known) -> Ruling:
    """Answer whether the environment may be used.

    Which classes are asked for. With `policy.hardware` these. With none, every measured class, of each issue those on
    which it was ever measured, on any build: one on which nobody ever ran it says nothing about this build in
    particular, while one on which other builds have an answer is a hole. An issue that was measured nowhere is asked
    for on every class where it applies. Where an issue cannot exist on a class it is neutral: it has no reason there
    if it applies on another class, else one that passes and answers nothing.

    What adds up. Block beats insufficient beats pass. Without a single answer (a conclusive cell that is about this
    environment) the decision is never a pass, whatever the policy says of unknowns: `unknown` is about holes between
    answers. Raises BadRequest for a question that means nothing: an empty watch, misspelt ids, no base to compare with.
    """
    watched, notes = watched_issues(question.policy.watch, known.issues, known.names)
    asked = _prepare(question, known)
    build = asked.build
    cases = (
        [_case(issue, build, one, asked) for issue in watched for one in _claims(issue, build, asked)] if build else []
    )
    reasons = [_reason(case, question.policy, known) for case in cases] if build else _untested(watched, asked)
    answered = any(case.is_conclusive for case in cases)
    return _ruling(asked, sorted(reasons, key=_most_severe_first), answered=answered, notes=notes)


@dataclass(frozen=True)
class _PreparedQuestion(GateQuestion):
    """The question with every name in it looked up. `build` is None where no tested build was found; `twins` are the
    builds that the environment may be, which differ in Python alone; `named` the issues that the question names.
    """

    known: Known
    build: Build | None
    twins: tuple[Build, ...]
    base: Build | None
    named: frozenset[str]
    declared: Mapping[str, tuple[str, ...]]
    ignores: Mapping[str, tuple[Ignore, ...]]
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.policy.hardware or self.known.hardware)))

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        """By the list of the very wheel that is asked about, never by that of another variant."""
        wheel = self.known.builds.get(self.resolved.build or "")
        named = self.policy.hardware if wheel else ()
        unserved = [one for one in named if wheel and self.known.serves(wheel, one) is False]
        return tuple(Refusal("gpu_not_served", one, self.known.against(wheel, one)) for one in unserved)


def _prepare(question: GateQuestion, known: Known) -> _PreparedQuestion:
    policy = question.policy
    for class_ in policy.hardware:
        _refuse_no_class(class_, known)
    base = _base(policy, known)
    build = known.builds.get(_build_of(question))
    declared, stray = _by_issue(policy.applied.items(), known, "applied workarounds")
    ignores, lost = _by_issue(((one.issue, (one,)) for one in policy.ignores), known, "ignore")
    return _PreparedQuestion(
        **vars(question),
        known=known,
        build=build,
        twins=_twins(build, question.resolved, known) if build else (),
        base=known.builds.get(base.build) if base and base.build else None,
        named=named_by(policy.watch, known.issues.values(), known.names),
        declared=declared,
        ignores=ignores,
        notes=(*_notes_on_base(base), *stray, *lost),
    )


def _build_of(question: GateQuestion) -> str:
    """The tested build; where the policy takes another variant of the release for it, that one's."""
    resolved = question.resolved
    return resolved.build or (resolved.variant if question.policy.accept_variant else "")


def _twins(build: Build, resolved: ResolvedBuild, known: Known) -> tuple[Build, ...]:
    """The builds of the Pythons that the environment may have, the named one first."""
    named = build.build_id.apart_from_python
    found = (
        one
        for one in known.builds.values()
        if one.build_id.apart_from_python == named and one.python in resolved.pythons
    )
    others = sorted((one for one in found if one.id != build.id), key=lambda one: one.build_id)
    return (build, *others)


_CLASS = re.compile(r"cpu-[a-z0-9_]{1,40}|cuda-sm_[0-9]{2,3}[a-z]?|rocm-gfx[0-9]{3,4}[a-z]?")


def _refuse_no_class(text: str, known: Known) -> None:
    """A class that nobody measured is a fair question with no answer; what is no class at all is a slip."""
    if not _CLASS.fullmatch(text):
        measured = ", ".join(known.hardware) or "none yet"
        raise BadRequest(
            f'"{text:.60}" is no hardware class; write for example cpu-x86_64 or H100 (measured: {measured})'
        )


def _base(policy: Policy, known: Known) -> ResolvedBuild | None:
    """The base build as one is resolved that is asked about; it need not be tested."""
    if not policy.base:
        if policy.only_new:
            raise BadRequest("only_new compares with a base build, and none is named; set base to a build id")
        return None
    try:
        return resolve_build(policy.base, known.builds, known.builds)
    except UnknownBuild as error:
        raise BadRequest(f"base: {error}") from None


def _notes_on_base(base: ResolvedBuild | None) -> Iterable[str]:
    if base and base.build is None:
        yield f"the base build {base.asked} is not known here, so every failing issue counts as new"
    elif base and base.is_assumed:
        yield f"the base build is assumed: {base.note}"


T = TypeVar("T")


def _by_issue(
    pairs: Iterable[tuple[str, tuple[T, ...]]], known: Known, what: str
) -> tuple[dict[str, tuple[T, ...]], list[str]]:
    """The policy's values by issue, by the ids that are meant, and notes on names that mean none here."""
    found: dict[str, tuple[T, ...]] = defaultdict(tuple)
    lost = []
    for written, values in pairs:
        ids = meant_by(written, known.names)
        for id_ in ids:
            found[id_] += values
        if not ids:
            lost.append(written)
    return found, [_lost(what, written, known, look=at < _LOOKED_UP) for at, written in enumerate(lost)]


_LOOKED_UP = 3  # looking for near names takes milliseconds each, and a policy may hold thousands


def _lost(what: str, written: str, known: Known, *, look: bool) -> str:
    near = nearest(written, known.names.ids) if look else []
    return f'{what}: no issue is called "{written:.60}" here' + (f"; nearest: {', '.join(near)}" if near else "")


@dataclass(frozen=True)
class _Claim:
    """The claim about an issue on one class over the Pythons that the environment may have."""

    cell: Cell
    only_on: tuple[str, ...] = ()
    unknown_on: tuple[str, ...] = ()


def _claims(issue: Issue, build: Build, asked: _PreparedQuestion) -> list[_Claim]:
    """Those of the classes that are asked for; at least one."""
    known = asked.known
    claims = [_claim(issue, class_, asked) for class_ in asked.classes]
    if not claims:
        return [_Claim(Cell(issue.id, build.id, "", Verdict.NOT_RUN, "nothing was measured here yet"))]
    applicable = [one for one in claims if one.cell.verdict is not Verdict.NOT_APPLICABLE]
    if asked.policy.hardware or not applicable:
        return applicable or claims[:1]
    measured = [one for one in applicable if known.was_measured(issue.id, one.cell.hardware)]
    return measured or applicable


def _claim(issue: Issue, hardware: str, asked: _PreparedQuestion) -> _Claim:
    """One cell that stands for all possible Pythons. Where some fail and others do not, nobody can say which it is; one
    that the policy lets pass as reported stands for none that it does not.
    """
    is_eased = asked.policy.variants is Variants.REPORTED
    cells = [(twin.python, _cell(issue, twin, hardware, asked)) for twin in asked.twins]
    pythons = dict(sorted(cells, key=lambda pair: is_eased and passes_as_reported(pair[1])))
    answers = {cell.build for cell in counted(list(pythons.values()))}
    failing = {python: one for python, one in pythons.items() if one.build in answers and one.verdict in FAILURES}
    sound = {one.verdict for one in pythons.values() if one.build in answers or one.verdict is _ABSENT} & _SOUND
    unknown = tuple(python for python, cell in pythons.items() if cell.verdict not in _SOUND | FAILURES)
    if failing and sound:
        return _Claim(next(iter(failing.values())), only_on=tuple(sorted(failing, key=minor_of)))
    told = tells_most(pythons.values())
    return _Claim(told, unknown_on=tuple(sorted(unknown, key=minor_of)) if told.verdict in CONCLUSIVE else ())


_ABSENT = Verdict.NOT_APPLICABLE
_SOUND = frozenset({Verdict.NOT_AFFECTED, _ABSENT})


def _cell(issue: Issue, build: Build, hardware: str, asked: _PreparedQuestion) -> Cell:
    elsewhere = _whom_it_concerns(issue, asked)
    if elsewhere:
        return Cell(issue.id, build.id, hardware, Verdict.NOT_APPLICABLE, elsewhere)
    cell = asked.known.cell(issue, build, hardware)
    cell = tried_here(cell) if asked.policy.accept is Accept.MEASURED else cell
    return cell if asked.resolved.build else _of_another_variant(cell)


def _whom_it_concerns(issue: Issue, asked: _PreparedQuestion) -> str:
    """Why an issue of a package counts for another environment than this one; empty where it counts."""
    resolved, package = asked.resolved, issue.requires.package
    is_told = bool(resolved.packages) and (resolved.is_whole or package in resolved.packages)
    if concerns(issue, resolved.packages if is_told else None, named=issue.id in asked.named):
        return ""
    lacks = "the environment does not" if is_told else _unknown_package(resolved)
    return f"{CONCERNS}who has {issue.requires.package}, and {lacks}"


def _unknown_package(resolved: ResolvedBuild) -> str:
    if resolved.is_whole:
        return "nothing is known of the environment's packages"
    return "the project does not ask for it by itself; whether its dependencies bring it is not known"


def _of_another_variant(cell: Cell) -> Cell:
    """The claim of a wheel that is not tested, from the same release's that is: one inference, and on the CPU alone."""
    if cell.verdict in CONCLUSIVE and (cell.basis or not cell.hardware.startswith("cpu-")):
        return replace(
            cell, verdict=Verdict.NOT_RUN, reason="not run: would rest on more than one inference", basis=None
        )
    if cell.verdict not in CONCLUSIVE:
        return cell
    basis = Basis(VARIANT_RULE, cell.build, cell.hardware)
    return replace(cell, basis=basis, reason=f"inferred from {cell.build}, another variant: {cell.reason}")


def _case(issue: Issue, build: Build, claim: _Claim, asked: _PreparedQuestion) -> Case:
    cell = claim.cell
    fails = cell.verdict in FAILURES
    return Case(
        issue=issue,
        build=asked.known.builds[cell.build],
        cell=cell,
        now=asked.now,
        on_base=asked.known.cell(issue, asked.base, cell.hardware) if fails and asked.base else None,
        fix=asked.known.fix_of(issue.id, build, cell.hardware) if fails else None,
        declared=asked.declared.get(issue.id, ()),
        ignores=asked.ignores.get(issue.id, ()),
        strays=_strays(issue, build, asked.resolved),
        elsewhere=helped_elsewhere(issue, cell, asked.known),
        only_on=claim.only_on,
        unknown_on=claim.unknown_on,
        is_accepted=_is_accepted(cell, asked),
    )


def _is_accepted(cell: Cell, asked: _PreparedQuestion) -> bool:
    """Of an environment that may have several Pythons nothing was measured: which of them it has is not known."""
    if asked.policy.accept is Accept.INFERRED or cell.verdict not in CONCLUSIVE:
        return True
    return cell.basis is None and len(asked.twins) == 1


def _strays(issue: Issue, build: Build, resolved: ResolvedBuild) -> str:
    """Only of the package that the issue concerns: any other that it installs is a helper of its script."""
    concerned = issue.requires.package
    if not resolved.packages or not concerned:
        return ""
    pins = {canonical_package(name): version for name, version in environment_request(issue, build).pins.items()}
    held = {canonical_package(name): version for name, version in resolved.packages.items()}
    return strays_in({name: version for name, version in pins.items() if name == concerned}, held)


def _reason(case: Case, policy: Policy, known: Known) -> Reason:
    weighed = weigh(case, policy)
    cell, fix, hardware = case.cell, case.fix, case.cell.hardware
    return Reason(
        issue=case.issue.id,
        title=case.issue.title,
        component=case.issue.component,
        severity=case.issue.severity,
        silent=is_silent(case.issue, cell),
        build=case.build.id,
        hardware=hardware,
        verdict=cell.verdict,
        effect=weighed.effect,
        why=weighed.why,
        measured_at=cell.measured_at,
        age_days=age_days(cell, case.now),
        stale=is_stale(cell, case.build, policy, case.now),
        workarounds=_workarounds(case.issue, cell),
        applied=tuple(dict.fromkeys(case.declared)),
        ignored=weighed.ignored,
        fixed_in=fix.in_words if fix else "",
        first_fixed=fix.build.id if fix else "",
        evidence_url=f"/cells/{cell.issue}/{cell.build.replace('+', '%2B')}" + (hardware and f"?hardware={hardware}"),
        is_new=case.is_new,
        assurance=Assurance.NOT_KNOWN if case.only_on else cell.assurance,
        grounds=(cell.basis,) if cell.basis else (),
        runs=cell.runs,
        upstream=case.issue.report.url if case.issue.report else None,
        caveat=case.issue.caveat,
        fix_doubts=doubts_about_fix(case.issue, fix, known, hardware) if fix else (),
        not_covered=cell.not_covered,
        sign=status_of(cell),
        works_on=case.works_on,
        elsewhere=_shown(case.elsewhere[0], WorkaroundFinding(WorkaroundVerdict.EFFECTIVE)) if case.elsewhere else None,
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
    tried = [(one, cell.workarounds[one.id].verdict) for one in issue.workarounds if one.id in cell.workarounds]
    return tuple(
        _shown(one, cell.workarounds[one.id])
        if wanted is WorkaroundVerdict.EFFECTIVE
        else MeasuredWorkaround(one.id, one.title, verdict)
        for wanted in _TRIED
        for one, verdict in tried
        if verdict is wanted
    )


def _shown(one: Workaround, found: WorkaroundFinding) -> MeasuredWorkaround:
    """One that helps, to be pasted."""
    return MeasuredWorkaround(
        one.id, one.title, WorkaroundVerdict.EFFECTIVE, one.trade_off, one.body, found.runs, found.ground
    )


def _untested(watched: Iterable[Issue], asked: _PreparedQuestion) -> list[Reason]:
    """The watched issues on a build that nobody tested: unknown, one and all."""
    named = asked.classes if asked.policy.hardware else ()
    return [_of_untested(issue, named[0] if len(named) == 1 else "", asked) for issue in watched]


def _of_untested(issue: Issue, hardware: str, asked: _PreparedQuestion) -> Reason:
    elsewhere = _whom_it_concerns(issue, asked)
    unknown = WeighedCell(asked.policy.unknown, ("not run: the build is not tested",))
    told = WeighedCell(Effect.PASS, (elsewhere,)) if elsewhere else unknown
    weighed = by_ignores(asked.ignores.get(issue.id, ()), asked.now, told)
    return Reason(
        issue=issue.id,
        title=issue.title,
        component=issue.component,
        severity=issue.severity,
        silent=issue.silent,
        build="",
        hardware=hardware,
        verdict=Verdict.NOT_APPLICABLE if elsewhere else Verdict.NOT_RUN,
        effect=weighed.effect,
        why=weighed.why,
        applied=tuple(dict.fromkeys(asked.declared.get(issue.id, ()))),
        ignored=weighed.ignored,
        evidence_url=f"/issues/{issue.id}",
        sign=StatusLabel.NOT_APPLICABLE if elsewhere else StatusLabel.NOT_RUN,
        upstream=issue.report.url if issue.report else None,
        caveat=issue.caveat,
    )


def _most_severe_first(reason: Reason) -> tuple[int, int, str, str]:
    return (-EFFECT_RANK[reason.effect], -SEVERITY_RANK[reason.severity], reason.issue, reason.hardware)


def _ruling(asked: _PreparedQuestion, reasons: Sequence[Reason], *, answered: bool, notes: Iterable[str]) -> Ruling:
    doubts = tuple(_doubts(asked, reasons, answered=answered))
    counts = Counter(reason.effect for reason in reasons)
    decision = Decision.BLOCK if asked.refusals else _decision(counts, doubts)
    return Ruling(
        decision=decision,
        why=_why(decision, asked, reasons, doubts),
        build=asked.build.id if asked.build else None,
        asked=asked.resolved.asked,
        nearest=asked.resolved.nearest,
        hardware=asked.classes,
        reasons=tuple(reasons),
        notes=tuple(dict.fromkeys((*_notes_on_all(asked), *notes, *asked.notes))),
        counts={effect: counts[effect] for effect in Effect},
        decided_at=asked.now,
        known_at=asked.known.as_of,
        line=asked.resolved.line or None,
        refusals=asked.refusals,
    )


def _decision(counts: Mapping[Effect, int], doubts: Sequence[str]) -> Decision:
    if counts[Effect.BLOCK]:
        return Decision.BLOCK
    return Decision.INSUFFICIENT if counts[Effect.INSUFFICIENT] or doubts else Decision.PASS


def _doubts(asked: _PreparedQuestion, reasons: Sequence[Reason], *, answered: bool) -> Iterable[str]:
    """Reasons for which the evidence is insufficient as a whole, whatever the single reasons say."""
    if asked.build is None:
        yield asked.resolved.not_tested
        return
    if asked.resolved.is_assumed and asked.policy.refuse_assumed:
        yield f"the build {asked.build.id} is assumed, and the policy refuses assumed builds"
    if not asked.resolved.platforms and asked.policy.refuse_unstated:
        yield "the environment states no platform, and the policy refuses to take it for Linux x86-64"
    if not reasons:
        yield "what is watched names no issue of this catalogue"
    elif not answered:
        yield f"nothing that is watched has an answer on {asked.build.id}"


def _notes_on_all(asked: _PreparedQuestion) -> Iterable[str]:
    resolved, policy = asked.resolved, asked.policy
    if resolved.is_assumed and asked.build:
        yield f"the build is assumed to be {asked.build.id}" + (f": {resolved.note}" if resolved.note else "")
    elif resolved.note:
        yield resolved.note
    if asked.build and not resolved.platforms:
        yield TAKEN
    if asked.build and resolved.build is None:
        yield f"{resolved.asked} is not tested; by the policy {asked.build.id}, another variant, answers for it"
    wheel, refused = asked.known.builds.get(resolved.build or ""), {one.hardware for one in asked.refusals}
    yield from (told for one in policy.hardware if one not in refused and (told := asked.known.against(wheel, one)))
    yield from several_gpus(resolved.gpus)
    yield from built_for_another(asked.build, resolved.packages) if asked.build else ()
    if not policy.hardware and asked.build:
        classes = ", ".join(asked.classes) or "none yet"
        yield f"no hardware class was named: every measured one counts ({classes}), and the worst wins"


def _why(decision: Decision, asked: _PreparedQuestion, reasons: Sequence[Reason], doubts: Sequence[str]) -> str:
    total = len({reason.issue for reason in reasons})
    watched = many(total, "watched issue")
    build = asked.build.id if asked.build else "it"
    match decision:
        case Decision.BLOCK:
            blocking = _issues(reasons, Effect.BLOCK)
            refused = [one.why for one in asked.refusals]
            if not blocking:
                return "; ".join(refused)
            block = "blocks" if len(blocking) == 1 else "block"
            says = f"{len(blocking)} of {watched} {block} {build}"
            rest = doubts if asked.build is None else _unsaid(asked, reasons)
            return "; ".join([*refused, f"{says}: {listed(blocking)}", *rest])
        case Decision.INSUFFICIENT if doubts:
            return "; ".join(doubts)
        case Decision.INSUFFICIENT:
            lacking = _issues(reasons, Effect.INSUFFICIENT)
            says = f"not enough evidence on {build} for {len(lacking)} of {watched}: {listed(lacking)}"
            return "; ".join([says, *_unsaid(asked, reasons)])
        case Decision.PASS:
            none = "the watched issue does not block" if total == 1 else f"none of {watched} blocks"
            rest = (*_unsaid(asked, reasons), *_grounds(asked, reasons), *_beside(reasons))
            return "; ".join([f"{none} {build}", *rest])


def _unsaid(asked: _PreparedQuestion, reasons: Iterable[Reason]) -> Iterable[str]:
    """How many failures are new, and of how many nobody can say it, where the policy asks for what is new."""
    failing = [one for one in reasons if one.verdict in FAILURES]
    new, open_ = ({one.issue for one in failing if one.is_new is wanted} for wanted in (True, None))
    if asked.policy.only_new and asked.base and failing:
        yield f"{len(new)} new since {asked.base.id}, and of {len(open_)} nobody can say whether they are"


def _grounds(asked: _PreparedQuestion, reasons: Iterable[Reason]) -> Iterable[str]:
    """How the passes are known, where nobody ran them there, or only once."""
    passing = [one for one in reasons if one.verdict is Verdict.NOT_AFFECTED]
    builds = asked.known.builds
    inferred = Counter(
        f"Python {builds[ground.build].python}" if ground.rule == PYTHON_RULE else ground.hardware
        for one in passing
        for ground in one.grounds
    )
    if inferred:
        yield f"{inferred.total()} inferred, {listed([f'{n} from {ground}' for ground, n in inferred.most_common()])}"
    single = sum(1 for one in passing if one.runs == 1)
    if single:
        yield f"{single} on a single run"


def _beside(reasons: Sequence[Reason]) -> Iterable[str]:
    warned = _issues(reasons, Effect.WARN)
    if warned:
        yield f"{len(warned)} to look at: {listed(warned)}"
    ignored = list(dict.fromkeys(reason.issue for reason in reasons if reason.ignored))
    if ignored:
        yield f"{len(ignored)} ignored: {listed(ignored)}"


def _issues(reasons: Iterable[Reason], effect: Effect) -> list[str]:
    return list(dict.fromkeys(reason.issue for reason in reasons if reason.effect is effect))
