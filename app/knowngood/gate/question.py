"""A question to the gate with everything that it names looked up, and the cells that have to answer it. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build, minor_of
from knowngood.domain.builds.packages import concerns, named_by
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.grouping import gathered
from knowngood.domain.issue import Issue, Workaround, environment_request
from knowngood.domain.issue_selectors import meant_by, nearest, watched_issues
from knowngood.domain.message import Message
from knowngood.domain.verdicts.history import Fix
from knowngood.domain.verdicts.inference import VARIANT_RULE, counted, inferred_reason, tells_most
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import helped_elsewhere
from knowngood.domain.verdicts.status import is_untried, passes_as_reported
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    EXCESSES,
    FAILING,
    NOT_RUN,
    Basis,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    tried_here,
)
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.environments.wheels.table import wheels_of
from knowngood.gate.policy import Accept, Ignore, Policy, Variants

UNKNOWN = frozenset({Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.NO_BUILD})
FAILURES = FAILING | {Verdict.DIFFERENT_FAILURE}
BROKEN = FAILURES - EXCESSES
"""What is counted as failing: what gives the right answer and takes more is counted apart."""


_ABSENT = Verdict.NOT_APPLICABLE
_SOUND = frozenset({Verdict.NOT_AFFECTED, _ABSENT})
_UNTRIED = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, NOT_RUN)
_CLASS = re.compile(r"cpu-[a-z0-9_]{1,40}|cuda-sm_[0-9]{2,3}[a-z]?|rocm-gfx[0-9]{3,4}[a-z]?")
_LOOKED_UP = 3  # looking for near names takes milliseconds each, and a policy may hold thousands

T = TypeVar("T")


@dataclass(frozen=True)
class GateQuestion:
    """May `resolved`, the environment, be used by `policy`, whose named lists are filled in? `now` is aware UTC.

    What they name is looked up in `known` once, when it is first needed. Raises BadRequest then for a name that means
    nothing. `stated_base` is an environment to compare with, in place of the policy's base build. `asked_as` are the
    options that name the environment on a command line.
    """

    resolved: ResolvedBuild
    policy: Policy
    now: datetime
    known: Known
    stated_base: ResolvedBuild | None = None
    asked_as: str = ""

    @property
    def is_unwatched(self) -> bool:
        """Whether nothing is watched: facts of wheels decide, and what fails only since the base build warns."""
        return self.policy.watch.is_empty

    @cached_property
    def watched(self) -> tuple[tuple[Issue, ...], tuple[str, ...]]:
        """The watched issues (where nothing is watched all but smoke rows), and notes on names that none of them needs.
        Raises BadRequest.
        """
        if self.is_unwatched:
            return tuple(issue for issue in self.known.issues.values() if not issue.is_smoke), ()
        return watched_issues(self.policy.watch, self.known.issues, self.known.names)

    @cached_property
    def build(self) -> Build | None:
        """The tested build; where the policy takes another variant of the release for it, that one."""
        resolved = self.resolved
        return self.known.builds.get(resolved.build or (resolved.variant if self.policy.accept_variant else ""))

    @cached_property
    def twins(self) -> tuple[Build, ...]:
        """The builds that the environment may be, which differ in Python alone, `build` first."""
        build = self.build
        if build is None:
            return ()
        alike = self.known.claims.builds_alike(build)
        others = [twin for twin in alike if twin.python in self.resolved.pythons and twin.id != build.id]
        return (build, *sorted(others, key=lambda twin: twin.build_id))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The hardware classes that count. One that nobody measured is a fair question with no answer; what is no class
        at all is a slip: raises BadRequest.
        """
        known = self.known.hardware
        for text in self.policy.hardware:
            if not _CLASS.fullmatch(text):
                measured = ", ".join(known) or "none yet"
                raise BadRequest(
                    f'"{text:.60}" is no hardware class; write for example cpu-x86_64 or H100 (measured: {measured})'
                )
        return tuple(sorted(set(self.policy.hardware or known)))

    @cached_property
    def base(self) -> ResolvedBuild | None:
        """The base build, which need not be tested. Raises BadRequest."""
        if self.stated_base:
            return self.stated_base
        if self.policy.base:
            try:
                return resolve_build(self.policy.base, self.known.build_names, self.known.builds, wheels_of(self.known))
            except UnknownBuild as error:
                raise BadRequest(f"base: {error}") from None
        if self.policy.only_new:
            raise BadRequest("only_new compares with a base build, and none is named; set base to a build id")
        return None

    @cached_property
    def base_build(self) -> Build | None:
        return self.known.builds.get(self.base.build or "") if self.base else None

    @cached_property
    def named(self) -> frozenset[str]:
        """The watched issues that the question names."""
        return named_by(self.policy.watch, self.watched[0], self.known.names)

    @cached_property
    def declared(self) -> Mapping[str, tuple[str, ...]]:
        """The workarounds in place by issue."""
        return self._by_issue(self.policy.applied.items())

    @cached_property
    def ignores(self) -> Mapping[str, tuple[Ignore, ...]]:
        return self._by_issue((ignore.issue, (ignore,)) for ignore in self.policy.ignores)

    def _by_issue(self, pairs: Iterable[tuple[str, tuple[T, ...]]]) -> Mapping[str, tuple[T, ...]]:
        names = self.known.names
        by_id = gathered((id_, value) for text, values in pairs for id_ in meant_by(text, names) for value in values)
        return defaultdict(tuple, {id_: tuple(each) for id_, each in by_id.items()})

    def lost_names(self) -> Iterable[str]:
        """Notes on what the policy declares or ignores of issues that are not known here."""
        names = self.known.names
        for what, written in (
            ("applied workarounds", self.policy.applied),
            ("ignore", [ignore.issue for ignore in self.policy.ignores]),
        ):
            for at, text in enumerate(name for name in written if not meant_by(name, names)):
                near = nearest(text, names.ids) if at < _LOOKED_UP else []
                yield f'{what}: no issue is called "{text:.60}" here' + (
                    f"; nearest: {', '.join(near)}" if near else ""
                )


@dataclass(frozen=True)
class Case:
    """A watched issue on one hardware class: the cell that answers for it, and all that a policy looks at beside it.

    `cell` stands for all Pythons that the environment may have. Where that is open, `only_on` are the Pythons on which
    it fails while it does not on others, `unknown_on` those of which nothing is known. The cell names no build where
    none is tested.
    """

    question: GateQuestion
    issue: Issue
    cell: Cell
    only_on: tuple[str, ...] = ()
    unknown_on: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        return self.question.policy

    @property
    def verdict(self) -> Verdict:
        return self.cell.verdict

    @property
    def fails(self) -> bool:
        return self.cell.verdict in FAILURES

    @property
    def build(self) -> Build | None:
        return self.question.known.builds.get(self.cell.build)

    @property
    def on_base(self) -> Cell | None:
        """The cell on the base build; None: none is named, or the catalogue has no such build."""
        base = self.question.base_build if self.fails else None
        return self.question.known.cell(self.issue, base, self.cell.hardware) if base else None

    @property
    def fix(self) -> Fix | None:
        """The release that passes again, of a failing cell."""
        build = self.question.build if self.fails else None
        return self.question.known.fix_of(self.issue.id, build, self.cell.hardware) if build else None

    @property
    def declared(self) -> tuple[str, ...]:
        """The workarounds in place, each once."""
        return tuple(dict.fromkeys(self.question.declared.get(self.issue.id, ())))

    @cached_property
    def strays(self) -> str:
        """Whether the environment has the package that the issue concerns in a version that was not measured, in a few
        words (empty: it has not). Any other package that the issue installs is a helper of its script.
        """
        build, packages, concerned = self.question.build, self.question.resolved.packages, self.issue.requires.package
        if not (build and packages and concerned):
            return ""
        pins: dict[str, str] = {
            canonicalize_name(name): pin for name, pin in environment_request(self.issue, build).pins.items()
        }
        measured = pins.get(concerned)
        installed = {str(canonicalize_name(name)): version for name, version in packages.items()}.get(concerned)
        if measured is None or not installed or _is_same_version(installed, measured):
            return ""
        return f"{concerned} {measured}, and the environment has {installed}"

    @cached_property
    def elsewhere(self) -> tuple[Workaround, Build] | None:
        """A workaround that is not verified here, and the build on which it helps."""
        return helped_elsewhere(self.issue, self.cell, self.question.known) if is_untried(self.cell) else None

    @property
    def works_on(self) -> str:
        return self.elsewhere[1].id if self.elsewhere else ""

    @property
    def is_accepted(self) -> bool:
        """Whether it has the assurance that the policy asks for. Of an environment that may have several Pythons
        nothing was measured: which of them it has is not known.
        """
        if self.policy.accept is Accept.INFERRED or self.verdict not in CONCLUSIVE:
            return True
        return self.cell.basis is None and len(self.question.twins) == 1

    @property
    def is_conclusive(self) -> bool:
        """Whether it answers for this environment: a pass beside other packages than these answers nothing."""
        is_stray_pass = bool(self.strays) and self.verdict is Verdict.NOT_AFFECTED
        return self.verdict in CONCLUSIVE and self.is_accepted and not is_stray_pass

    @property
    def is_new(self) -> bool | None:
        """Whether it fails here and not so on the base build; None where nothing is compared or nothing known."""
        if self.on_base is None or self.on_base.verdict in UNKNOWN:
            return None
        alike = FAILING if self.verdict in FAILING else {Verdict.DIFFERENT_FAILURE}
        return self.on_base.verdict not in alike

    def finding(self, workaround: str) -> WorkaroundFinding:
        return self.cell.workarounds.get(workaround, _UNTRIED)


def cases_of(issue: Issue, question: GateQuestion) -> list[Case]:
    """The cases of one watched issue, at least one: see `decide` for the classes that are asked for."""
    known, policy = question.known, question.policy
    if question.build is None:
        named = question.classes if policy.hardware else ()
        return [_untested(issue, named[0] if len(named) == 1 else "", question)]
    cases = [_case(issue, class_, question) for class_ in question.classes]
    if not cases:
        cell = Cell(issue.id, question.build.id, "", Verdict.NOT_RUN, Message("nothing_measured"))
        return [Case(question, issue, cell)]
    applicable = [case for case in cases if case.verdict is not _ABSENT]
    if policy.hardware or not applicable:
        return applicable or cases[:1]
    return [case for case in applicable if known.was_measured(issue.id, case.cell.hardware)] or applicable


def _untested(issue: Issue, hardware: str, question: GateQuestion) -> Case:
    """Make the case of an environment that is no tested build: all that is known is whom the issue concerns."""
    elsewhere = _whom_it_concerns(issue, question)
    verdict = _ABSENT if elsewhere else Verdict.NOT_RUN
    return Case(question, issue, Cell(issue.id, "", hardware, verdict, elsewhere or Message("build_not_tested")))


def _case(issue: Issue, hardware: str, question: GateQuestion) -> Case:
    """Make one case for all possible Pythons. Where some fail and others do not, nobody can say which it is; one
    that the policy lets pass as reported stands for none that it does not.
    """
    if len(question.twins) == 1:
        return Case(question, issue, _cell(issue, question.twins[0], hardware, question))
    is_eased = question.policy.variants is Variants.REPORTED
    cells = [(twin.python, _cell(issue, twin, hardware, question)) for twin in question.twins]
    pythons = dict(sorted(cells, key=lambda pair: is_eased and passes_as_reported(pair[1])))
    answers = {cell.build for cell in counted(list(pythons.values()))}
    failing = {python: cell for python, cell in pythons.items() if cell.build in answers and cell.verdict in FAILURES}
    sound = {cell.verdict for cell in pythons.values() if cell.build in answers or cell.verdict is _ABSENT} & _SOUND
    unknown = tuple(python for python, cell in pythons.items() if cell.verdict not in _SOUND | FAILURES)
    if failing and sound:
        return Case(question, issue, next(iter(failing.values())), only_on=tuple(sorted(failing, key=minor_of)))
    cell = tells_most(pythons.values())
    unknown_on = tuple(sorted(unknown, key=minor_of)) if cell.verdict in CONCLUSIVE else ()
    return Case(question, issue, cell, unknown_on=unknown_on)


def _cell(issue: Issue, build: Build, hardware: str, question: GateQuestion) -> Cell:
    elsewhere = _whom_it_concerns(issue, question)
    if elsewhere:
        return Cell(issue.id, build.id, hardware, _ABSENT, elsewhere)
    cell = question.known.cell(issue, build, hardware)
    cell = tried_here(cell) if question.policy.accept is Accept.MEASURED else cell
    return cell if question.resolved.build else _of_another_variant(cell)


def _whom_it_concerns(issue: Issue, question: GateQuestion) -> Message | None:
    """Why an issue of a package counts for another environment than this one; None where it counts."""
    resolved, package = question.resolved, issue.requires.package
    is_stated = bool(resolved.packages) and (resolved.is_whole or package in resolved.packages)
    if concerns(issue, resolved.packages if is_stated else None, named=issue.id in question.named):
        return None
    unknown = "packages_unknown" if resolved.is_whole else "package_not_asked_for"
    return Message("concerns_package", name=package, said=Message("environment_lacks_it" if is_stated else unknown))


def _of_another_variant(cell: Cell) -> Cell:
    """The claim of a wheel that is not tested, from the same release's that is: one inference, and on the CPU alone."""
    if cell.verdict in CONCLUSIVE and (cell.basis or not cell.hardware.startswith("cpu-")):
        return replace(cell, verdict=Verdict.NOT_RUN, reason=Message("two_inferences"), basis=None)
    if cell.verdict not in CONCLUSIVE:
        return cell
    basis = Basis(VARIANT_RULE, cell.build, cell.hardware)
    return replace(cell, basis=basis, reason=inferred_reason(basis, cell.reason))


def _is_same_version(installed: str, measured: str) -> bool:
    """Compare two versions without what follows a plus, which names another build of the same version."""
    try:
        return Version(Version(installed).public) == Version(Version(measured).public)
    except InvalidVersion:
        return installed == measured
