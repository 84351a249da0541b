"""The rules told a second time, from their text alone: plain loops over every stored cell, slow and without cleverness.

What the product decides is held against this. Nothing here may come from the modules that decide (a test looks at the
imports): of the product's own it knows the values that cells, issues, builds and policies are.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.verdict import Cell, Judged
from knowngood.gate.policy import Effect, Policy

CPU = "cpu-x86_64"
SEEN = ("affected", "flaky", "bigger", "more_work", "slower")
FAILS = (*SEEN, "different_failure")
ANSWERS = (*FAILS, "not_affected")
OPEN = ("not_run", "inconclusive", "no_build")


@dataclass(frozen=True)
class Store:
    """All that is stored, by id and by (issue, build, class)."""

    issues: Mapping[str, Issue]
    builds: Mapping[str, Build]
    cells: Mapping[tuple[str, str, str], Cell]
    rates: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict, compare=False)

    @cached_property
    def classes(self) -> list[str]:
        return sorted({class_ for _, _, class_ in self.cells})

    @cached_property
    def flaky(self) -> set[tuple[str, str]]:
        """Issue and class where any variant, on any build, both passed and failed with nothing changed."""
        return {
            (issue, class_)
            for (issue, _, class_), cell in self.cells.items()
            for one in cell.variants
            if one.verdict == "flaky"
            or english(one.reason).removeprefix("varies by machine: ").startswith("passed and failed")
        }

    @cached_property
    def sound_builds(self) -> set[str]:
        """Those that pass the smoke row on some class."""
        return {
            build
            for (issue, build, _), cell in self.cells.items()
            if cell.verdict == "not_affected" and self.issues[issue].is_smoke
        }


@dataclass(frozen=True)
class Claim:
    """`ground` is the stored cell that it rests on, `rule` what leads from there to here (empty: it is that cell).

    `is_flaky`: the issue was seen to do now this and now that, on some build of the ground's class. `lent` is what
    another Python says of workarounds.
    """

    verdict: str
    assurance: str = "not_known"
    ground: Cell | None = None
    rule: str = ""
    is_flaky: bool = False
    lent: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        return runs_of(self.ground) if self.ground and self.verdict in ANSWERS else 0

    @property
    def is_good_as_reported(self) -> bool:
        """Whether it is affected, though not by what the report ran."""
        by_variant = {one.variant: one.verdict for one in self.ground.variants} if self.ground else {}
        reported = self.ground.reported if self.ground else ""
        return self.verdict == "affected" and by_variant.get(reported, "") == "not_affected"

    def workaround(self, id_: str) -> str:
        """The workaround's verdict where the claim is made; "unverified" where nothing was tried."""
        found = self.ground.workarounds.get(id_) if self.ground else None
        is_luck = found and self.is_flaky and found.verdict in {"effective", "partial"} and found.runs == 1
        own = "unverified" if found is None or is_luck else found.verdict.value
        return self.lent.get(id_, own) if own == "unverified" else own


def runs_of(cell: Cell) -> int:
    """Rule 10: of a pass the fewest attempts that any variant rests on, of a failure the most."""
    numbers = [one.n for one in cell.variants if one.verdict == cell.verdict]
    if not numbers:
        return 0
    return min(numbers) if cell.verdict == "not_affected" else max(numbers)


# -- rules 1, 2, 3 and 8: what is claimed of one place -----------------------------------------------------------------


def claim(store: Store, issue: Issue, build: Build, class_: str) -> Claim:
    own = store.cells.get((issue.id, build.id, class_))
    if own is not None and own.verdict != "not_run":
        assurance = "measured" if own.verdict in ANSWERS else "not_known"
        lent = _lent_by_another_python(store, issue, build, own)
        return Claim(own.verdict.value, assurance, own, is_flaky=(own.issue, own.hardware) in store.flaky, lent=lent)
    if not applies(issue, build, class_):
        return Claim("not_applicable")
    if issue.requires.device == "any" and class_ != CPU:
        ground, rule = _on_the_cpu(store, issue, build), "device"
        own = store.cells.get((issue.id, build.id, CPU))
        if own is None or own.verdict not in ANSWERS:
            ground, rule = _on_the_cpu_with_another_python(store, issue, build), "device_and_python"
    else:
        ground, rule = _on_another_python(store, issue, build, class_), "python"
    if ground is None:
        return Claim("not_run")
    return Claim(
        ground.verdict.value, "inferred", ground, rule, is_flaky=(ground.issue, ground.hardware) in store.flaky
    )


def applies(issue: Issue, build: Build, class_: str) -> bool:
    needs = issue.requires
    if needs.torch and not SpecifierSet(needs.torch).contains(Version(build.torch), prereleases=True):
        return False
    if needs.python and Version(build.python) not in SpecifierSet(needs.python):
        return False
    if class_ == CPU:
        return needs.device != "cuda"
    if needs.device == "cpu" or build.cuda is None:
        return False
    return needs.compute_capability is None or capability_of(class_) >= needs.compute_capability


def capability_of(class_: str) -> tuple[int, int]:
    digits = class_.removeprefix("cuda-sm_")
    return int(digits[:-1]), int(digits[-1:])


def _on_the_cpu(store: Store, issue: Issue, build: Build) -> Cell | None:
    ground = store.cells.get((issue.id, build.id, CPU))
    if ground is None or ground.verdict not in ANSWERS or lower_bound(*agreement_of_devices(store)) < 0.95:
        return None
    return ground


def _on_the_cpu_with_another_python(store: Store, issue: Issue, build: Build) -> Cell | None:
    """A rule of its own: the default Python of the CPU is asked first, then the oldest."""
    if issue.requires.python or issue.is_smoke or build.id not in store.sound_builds:
        return None
    if lower_bound(*agreement_of_devices(store)) < 0.95:
        return None
    grounds = {
        other.python: cell
        for other in store.builds.values()
        if is_same_wheel(build, other) and other.python != build.python
        if (cell := store.cells.get((issue.id, other.id, CPU))) and cell.verdict in ANSWERS
    }
    if len({cell.verdict for cell in grounds.values()}) != 1:
        return None
    in_order = sorted(grounds, key=lambda python: (python != "3.11", Version(python)))
    return next((grounds[one] for one in in_order if lower_bound(*_composed(store, one, build.python)) >= 0.95), None)


def _composed(store: Store, on_cpu: str, on_gpu: str) -> tuple[int, int]:
    """Pairs of the CPU on one Python with a GPU on another; none where they are of too few rows, builds or failures."""
    if ("cpu " + on_cpu, "gpu " + on_gpu) not in store.rates:
        pairs = [
            (id_, build.id, cell.verdict, beside.verdict)
            for (id_, build_id, class_), cell in store.cells.items()
            if class_ != CPU and cell.verdict in ANSWERS and (build := store.builds.get(build_id))
            if build.python == on_gpu and (issue := store.issues.get(id_)) and issue.requires.device == "any"
            if not issue.requires.python and not issue.is_smoke
            for twin in store.builds.values()
            if twin.python == on_cpu != on_gpu and is_same_wheel(build, twin)
            if (beside := store.cells.get((id_, twin.id, CPU))) and beside.verdict in ANSWERS
        ]
        rows, builds = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        is_enough = len(rows) >= 40 and len(builds) >= 3 and sum(pair[2] in SEEN for pair in pairs) >= 40
        agreed = sum(one == other for _, _, one, other in pairs)
        store.rates["cpu " + on_cpu, "gpu " + on_gpu] = (agreed, len(pairs)) if is_enough else (0, 0)
    return store.rates["cpu " + on_cpu, "gpu " + on_gpu]


def agreement_of_devices(store: Store) -> tuple[int, int]:
    """Of the rows that name no device, each build and GPU with an answer there and on the CPU."""
    if ("cpu", "gpu") not in store.rates:
        pairs = [
            (cell.verdict, beside.verdict)
            for (id_, build_id, class_), cell in store.cells.items()
            if class_ != CPU and id_ in store.issues and store.issues[id_].requires.device == "any"
            if (beside := store.cells.get((id_, build_id, CPU))) and {cell.verdict, beside.verdict} <= {*ANSWERS}
        ]
        store.rates["cpu", "gpu"] = sum(one == other for one, other in pairs), len(pairs)
    return store.rates["cpu", "gpu"]


def _on_another_python(store: Store, issue: Issue, build: Build, class_: str) -> Cell | None:
    """Of several grounds the one whose Pythons agree best; then the default one's, then the oldest Python's."""
    if issue.requires.python or issue.is_smoke or build.id not in store.sound_builds:
        return None
    grounds = []
    for other in store.builds.values():
        cell = store.cells.get((issue.id, other.id, class_))
        if is_same_wheel(build, other) and other.python != build.python and cell and cell.verdict in ANSWERS:
            grounds.append((other.python, cell))
    if len({cell.verdict for _, cell in grounds}) != 1:
        return None
    rated = [(lower_bound(*agreement(store, build.python, python)), python, cell) for python, cell in grounds]
    good = [one for one in rated if one[0] >= 0.95]
    if not good:
        return None
    return min(good, key=lambda one: (-one[0], one[1] != "3.11", Version(one[1])))[2]


def _lent_by_another_python(store: Store, issue: Issue, build: Build, own: Cell) -> dict[str, str]:
    """Of the workarounds, as of the cell itself, where the same variants fail: the default Python is asked first."""
    lent: dict[str, str] = {}
    if own.verdict not in SEEN or issue.requires.python or issue.is_smoke or build.id not in store.sound_builds:
        return lent
    for other in sorted(store.builds.values(), key=lambda one: (one.python != "3.11", Version(one.python))):
        cell = store.cells.get((issue.id, other.id, own.hardware))
        if not is_same_wheel(build, other) or other.python == build.python or not cell or cell.verdict != own.verdict:
            continue
        if lower_bound(*agreement(store, build.python, other.python)) < 0.95 or _failing(cell) != _failing(own):
            continue
        claim_there = Claim(cell.verdict.value, ground=cell, is_flaky=(cell.issue, cell.hardware) in store.flaky)
        lent = {id_: claim_there.workaround(id_) for id_ in own.workarounds} | {
            id_: said for id_, said in lent.items() if said != "unverified"
        }
    return lent


def _failing(cell: Cell) -> set[str]:
    return {one.variant for one in cell.variants if one.verdict in SEEN}


def is_same_wheel(one: Build, other: Build) -> bool:
    return one.id.partition("~py")[0] == other.id.partition("~py")[0] and one.triton == other.triton


def agreement(store: Store, python: str, other: str) -> tuple[int, int]:
    """Of the cells with an answer on both Pythons of one wheel: how many have the same one, and how many there are."""
    if (python, other) in store.rates:
        return store.rates[python, other]
    agreed = compared = 0
    for (issue_id, build_id, class_), cell in store.cells.items():
        issue, build = store.issues.get(issue_id), store.builds.get(build_id)
        if issue is None or build is None or issue.is_smoke or issue.requires.python or build.python != python:
            continue
        for twin in store.builds.values():
            beside = store.cells.get((issue_id, twin.id, class_))
            is_pair = twin.python == other and is_same_wheel(build, twin) and beside is not None
            if is_pair and beside and cell.verdict in ANSWERS and beside.verdict in ANSWERS:
                compared += 1
                agreed += cell.verdict == beside.verdict
    store.rates[python, other] = agreed, compared
    return agreed, compared


def lower_bound(agreed: int, compared: int) -> float:
    """The least share from which so few agreements are no surprise at 95 %, found by halving (Wilson)."""
    if compared == 0 or agreed == 0:
        return 0.0
    share, low, high = agreed / compared, 0.0, agreed / compared
    for _ in range(60):
        middle = (low + high) / 2
        is_surprise = (share - middle) ** 2 > 1.959963984540054**2 * middle * (1 - middle) / compared
        low, high = (middle, high) if is_surprise else (low, middle)
    return low


# -- rule 4: workarounds -----------------------------------------------------------------------------------------------

FAILED = ("match", "other_failure", "crash")
SAYS_NOTHING = ("env_error", "harness_error", "cancelled", "not_applicable")


def workaround(
    baseline: Mapping[str, str], tries: Mapping[str, Sequence[str]], silent_instead: Mapping[str, bool]
) -> str:
    """`baseline` has the verdict of each variant, `tries` the outcomes of the workaround with each.

    `silent_instead`: with which variants it gives wrong numbers without an error in place of a loud failure.
    """
    did = {variant: with_one(tries.get(variant, ())) for variant in baseline}
    if any(did[variant] == "fails" and verdict == "not_affected" for variant, verdict in baseline.items()):
        return "harmful"
    failing = [variant for variant, verdict in baseline.items() if verdict in SEEN]
    if any(did[variant] == "fails" and silent_instead[variant] for variant in failing):
        return "harmful"
    if failing:
        found = [did[variant] for variant in failing]
        if all(one == "passes" for one in found):
            return "effective"
        if "passes" in found:
            return "partial"
        return "ineffective" if {"fails", "not every time"} & {*found} else "unverified"
    if any(verdict not in {"not_affected", "not_applicable"} for verdict in baseline.values()):
        return "unverified"
    tried = {did[variant] for variant, verdict in baseline.items() if verdict == "not_affected" and tries.get(variant)}
    return "unnecessary" if tried == {"passes"} else "unverified"


def outcome(attempts: Iterable[Judged], one: Judged) -> str:
    """What an attempt ended with; `differs` for a pass of which no control with its variant tells the same.

    The values of these stores are single words: the same is the same text.
    """
    if one.outcome != "pass" or one.arm == "control":
        return one.outcome.value
    controls = [other for other in attempts if other.arm == "control"]
    own = [other for other in controls if other.variant == one.variant]
    told = [other.observed for other in own if other.outcome == "pass"]
    is_alone = bool(controls) and not own
    return "differs" if is_alone or (told and dict(one.observed) not in [dict(other) for other in told]) else "pass"


def with_one(outcomes: Iterable[str]) -> str:
    """`passes`, `fails`, `not every time` (with the issue's own failure), or `unknown`."""
    said = {one for one in outcomes if one not in SAYS_NOTHING}
    if said == {"pass"}:
        return "passes"
    if {"pass", "match"} <= said:
        return "not every time"
    return "fails" if said & {*FAILED} and "pass" not in said else "unknown"


# -- rule 5: histories -------------------------------------------------------------------------------------------------


def line(store: Store, issue: str, class_: str) -> list[tuple[str, bool | None]]:
    """Each release of the default index, oldest first: whether it fails, passes, or (None) says neither."""
    found: dict[str, set[str]] = {}
    for build in sorted(store.builds.values(), key=lambda one: Version(one.torch)):
        if build.origin == "default" and build.triton == build.pinned_triton:
            said = found.setdefault(Version(build.torch).public, set())
            cell = store.cells.get((issue, build.id, class_))
            if cell is not None:
                said.add(cell.verdict.value)
    return [(release, _fails(said)) for release, said in found.items()]


def _fails(said: set[str]) -> bool | None:
    fails, passes = bool(said & {*SEEN}), "not_affected" in said
    return None if fails == passes else fails


def intervals(store: Store, issue: str, class_: str) -> set[tuple[str, str, str]]:
    """Every pair of neighbours, among the releases that say something, between which the answer turns."""
    said = [(release, fails) for release, fails in line(store, issue, class_) if fails is not None]
    return {
        ("broke" if now else "fixed", before, after) for (before, was), (after, now) in pairwise(said) if was is not now
    }


def passes_again(store: Store, issue: str, failing: Build, class_: str) -> str:
    """The oldest release after that of `failing` which passes; empty where none does."""
    newer = [
        release
        for release, fails in line(store, issue, class_)
        if fails is False and Version(release) > Version(Version(failing.torch).public)
    ]
    return newer[0] if newer else ""


# -- section 9: the gate -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Environment:
    """An environment in question, as whoever made it up knows it.

    `possible` are the builds that it may be, the one that is told of first; none: such a wheel is not tested.
    `stand_ins` are those of the nearest tested wheel of the same release, which a policy may take for it. `packages`
    are those beside torch (None: nothing is known of them). `is_refused` where the public index, which it is to come
    from, has no such wheel.
    """

    possible: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    is_assumed: bool = False
    packages: Mapping[str, str] | None = None
    is_refused: bool = False


@dataclass(frozen=True)
class Told:
    """`reasons` maps (issue, class) to (effect, verdict, assurance)."""

    decision: str
    reasons: Mapping[tuple[str, str], tuple[str, str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Side:
    """One issue on one class over all possible Pythons."""

    claim: Claim
    build: Build
    is_split: bool = False


def gate(
    store: Store,
    policy: Policy,
    watched: Iterable[str],
    environment: Environment,
    now: datetime,
    *,
    named: Collection[str] = (),
) -> Told:
    """`watched` are ids (none: nothing is watched), `named` those of them that the question names by themselves or by
    the package they concern; a policy's watch, names and lists are read by whoever asks.
    """
    watched = [*watched]
    if not watched:
        return _unwatched(store, policy, environment, now)
    is_variant = not environment.possible
    ids = environment.stand_ins if is_variant and policy.accept_variant else environment.possible
    if not ids:
        effects = {}
        for id_ in watched:
            where = policy.hardware[0] if len({*policy.hardware}) == 1 else ""
            is_about_it = concerns(store.issues[id_], environment.packages, is_named=id_ in named)
            effect, verdict = (policy.unknown, "not_run") if is_about_it else (Effect.PASS, "not_applicable")
            effects[id_, where] = (_ignored(id_, policy, now, effect), verdict, "not_known")
        blocked = environment.is_refused or any(effect == "block" for effect, _, _ in effects.values())
        return Told("block" if blocked else "insufficient_evidence", effects)
    reasons = {}
    is_answered = False
    for id_ in watched:
        issue = store.issues[id_]
        is_about_it = concerns(issue, environment.packages, is_named=id_ in named)
        for class_, side in _sides(store, policy, issue, ids, is_variant=is_variant, is_about_it=is_about_it).items():
            weighed, counts = _weighed(store, policy, store.issues[id_], side, class_, ids, now, environment)
            assurance = "not_known" if side.is_split else side.claim.assurance
            reasons[id_, class_] = (weighed, side.claim.verdict, assurance)
            is_answered = is_answered or counts
    effects_ = [effect for effect, _, _ in reasons.values()]
    if environment.is_refused or "block" in effects_:
        return Told("block", reasons)
    doubt = (environment.is_assumed and policy.refuse_assumed) or not is_answered
    return Told("insufficient_evidence" if doubt or "insufficient" in effects_ else "pass", reasons)


def _unwatched(store: Store, policy: Policy, environment: Environment, now: datetime) -> Told:
    """Facts alone block. What fails here and not on the base build warns, unless the policy lets it pass anyway."""
    every = [id_ for id_, issue in store.issues.items() if not issue.is_smoke]
    told = gate(store, policy, every, environment, now)
    is_tested = bool(environment.possible or (environment.stand_ins and policy.accept_variant))
    doubt = not is_tested or (environment.is_assumed and policy.refuse_assumed)
    decision = "block" if environment.is_refused else "insufficient_evidence" if doubt else "pass"
    if policy.base not in store.builds or not is_tested:
        return Told(decision)
    new = {}
    for (id_, class_), (effect, verdict, assurance) in told.reasons.items():
        before = claim(store, store.issues[id_], store.builds[policy.base], class_).verdict
        alike = before in SEEN if verdict in SEEN else before == "different_failure"
        if verdict in FAILS and effect != "pass" and before not in _NOTHING_KNOWN and not alike:
            new[id_, class_] = ("warn", verdict, assurance)
    return Told(decision, new)


def concerns(issue: Issue, packages: Mapping[str, str] | None, *, is_named: bool) -> bool:
    """Rule 7."""
    if not issue.requires.package:
        return True
    return issue.requires.package in packages if packages else is_named


def _sides(
    store: Store, policy: Policy, issue: Issue, ids: Sequence[str], *, is_variant: bool, is_about_it: bool
) -> dict[str, _Side]:
    """On which classes it is asked, and what is claimed there."""
    classes = sorted({*policy.hardware}) if policy.hardware else store.classes
    nothing = _Side(Claim("not_applicable"), store.builds[ids[0]])
    found = {
        class_: _side(store, policy, issue, ids, class_, is_variant=is_variant) if is_about_it else nothing
        for class_ in classes
    }
    if not found:
        return {"": _Side(Claim("not_run"), store.builds[ids[0]])}
    there = {class_: side for class_, side in found.items() if side.claim.verdict != "not_applicable"}
    if not there:
        return dict(list(found.items())[:1])
    if policy.hardware:
        return there
    measured = {
        class_: side
        for class_, side in there.items()
        if any(
            issue_id == issue.id and place == class_ and cell.verdict not in _without_evidence(issue, class_)
            for (issue_id, _, place), cell in store.cells.items()
        )
    }
    return measured or there


def _side(store: Store, policy: Policy, issue: Issue, ids: Sequence[str], class_: str, *, is_variant: bool) -> _Side:
    claims = [(store.builds[id_], claim(store, issue, store.builds[id_], class_)) for id_ in ids]
    if is_variant:
        claims = [(build, _of_another_wheel(one, class_)) for build, one in claims]
    claims.sort(key=lambda pair: policy.variants == "reported" and pair[1].is_good_as_reported)
    answers = [pair for pair in claims if pair[1].verdict in ANSWERS]
    answers = [pair for pair in answers if pair[1].assurance == "measured"] or answers
    failing = [pair for pair in answers if pair[1].verdict in FAILS]
    sound = [pair for pair in answers if pair not in failing]
    if failing and (sound or any(one.verdict == "not_applicable" for _, one in claims)):
        return _Side(failing[0][1], failing[0][0], is_split=True)
    tried = [pair for pair in claims if pair[1].ground is not None and pair[1].verdict != "not_applicable"]
    others = [pair for pair in claims if pair[1].verdict != "not_applicable"]
    build, told = (answers or tried or others or claims)[0]
    return _Side(told, build)


def _of_another_wheel(one: Claim, class_: str) -> Claim:
    """The wheel of another variant stands in on the CPU alone, and for nothing that is inferred itself."""
    if one.verdict not in ANSWERS:
        return one
    if one.assurance == "inferred" or class_ != CPU:
        return Claim("not_run")
    return replace(one, assurance="inferred", rule="variant")


def _weighed(  # noqa: PLR0913, C901 - the policy's fine print, from the first line to the last
    store: Store,
    policy: Policy,
    issue: Issue,
    side: _Side,
    class_: str,
    ids: Sequence[str],
    now: datetime,
    environment: Environment,
) -> tuple[str, bool]:
    """The effect, and whether it counts as an answer."""
    told, verdict = side.claim, side.claim.verdict
    strays = _strays(issue, side.build, environment)
    accepted = policy.accept == "inferred" or verdict not in ANSWERS or (not told.rule and len(ids) == 1)
    counts = verdict in ANSWERS and accepted and not (strays and verdict == "not_affected")
    if not accepted:
        return _ignored(issue.id, policy, now, policy.unknown), counts
    effect: str = {
        "affected": policy.affected,
        "flaky": policy.flaky,
        "different_failure": policy.different_failure,
        "bigger": policy.bigger,
        "more_work": policy.more_work,
        "slower": policy.slower,
        "not_affected": policy.unknown if strays else Effect.PASS,
        "not_applicable": Effect.PASS,
    }.get(verdict, policy.unknown)
    helps = [one.id for one in issue.workarounds if told.workaround(one.id) == "effective" and not strays]
    declared = policy.applied.get(issue.id, ())
    if verdict in FAILS:
        rank = ["low", "medium", "high", "critical"]
        ground = told.ground
        is_silent = issue.silent if ground is None or ground.silent is None else ground.silent
        is_grave = rank.index(issue.severity) >= rank.index(policy.minimum)
        if not is_grave and not (policy.silent_always and is_silent and verdict in SEEN):
            effect = _eased(effect)
        if policy.remedy != "any":
            remedy = bool(helps) or bool(passes_again(store, issue.id, store.builds[ids[0]], class_))
            if remedy is not (policy.remedy == "with_remedy"):
                effect = _eased(effect)
        if policy.only_new and policy.base in store.builds:
            before = claim(store, issue, store.builds[policy.base], class_).verdict
            effect = _beside_base(effect, verdict, before, policy.unknown_on_base)
        if policy.variants == "reported" and told.is_good_as_reported and not strays:
            effect = "pass"
        if any(one in helps for one in declared):
            effect = "pass"
    if any(told.workaround(one) == "harmful" for one in declared):
        effect = _graver(effect, "warn")
    if verdict in ANSWERS and told.ground is not None and told.ground.measured_at is not None:
        limit = policy.nightly_days if Version(side.build.torch).is_devrelease else policy.release_days
        if (now - told.ground.measured_at).total_seconds() > limit * 86_400:
            effect = _graver(effect, policy.stale)
    if side.is_split and effect == "block":
        effect = "insufficient"
    return _ignored(issue.id, policy, now, effect), counts


def _strays(issue: Issue, build: Build, environment: Environment) -> bool:
    """Whether the environment has the package that the row concerns in another version than the one measured."""
    name = issue.requires.package
    held = (environment.packages or {}).get(name, "") if name else ""
    release = f"{Version(build.torch).major}.{Version(build.torch).minor}"
    for text in issue.packages.per_release.get(release, issue.packages.requirements):
        package, _, version = text.replace("{torch}", Version(build.torch).public).partition("==")
        if package.strip().lower().replace("_", "-") == name and held and version:
            return Version(Version(held).public) != Version(Version(version).public)
    return False


def _beside_base(effect: str, verdict: str, before: str, unknown: str) -> str:
    if before in _NOTHING_KNOWN:
        return min(effect, unknown, key=_ORDER.index)
    alike = before in SEEN if verdict in SEEN else before == "different_failure"
    return _eased(effect) if alike else effect


_NOTHING_KNOWN = {"not_run", "inconclusive", "no_build"}
_ORDER = ("pass", "warn", "insufficient", "block")


def _graver(one: str, other: str) -> str:
    return max(str(one), str(other), key=_ORDER.index)


def _eased(effect: str) -> str:
    return "warn" if effect in {"block", "insufficient"} else effect


def _ignored(issue: str, policy: Policy, now: datetime, effect: str) -> str:
    return "pass" if any(one.issue == issue and one.expires >= now.date() for one in policy.ignores) else str(effect)


# -- rule 6: before and after ------------------------------------------------------------------------------------------


def became(issue: Issue, before: Claim, after: Claim) -> str:
    """The transition of a row, in the words of `compare`'s groups."""
    was, now = _standing(before), _standing(after)
    if before.rule and after.rule and before.rule != after.rule:
        return "not_known_now"
    if "absent" in {was, now}:
        if was == now:
            return "nowhere"
        if now == "absent":
            return "gone"
        return {"fails": "new", "passes": "passes_new"}.get(now, "not_known_now")
    if now == "unknown":
        return "not_known_now"
    if was == "unknown":
        return "not_known_before"
    if was == now:
        if was == "passes":
            return "still_passes"
        return "still_fails" if _is_one_failure(before, after) else "fails_otherwise"
    if was == "passes":
        return "not_known_before" if _may_be_luck(after, before) else "newly_broken"
    return "not_known_now" if _may_be_luck(before, after) else "fixed"


def _standing(one: Claim) -> str:
    if one.verdict in FAILS:
        return "fails"
    return {"not_affected": "passes", "not_applicable": "absent", "no_build": "absent"}.get(one.verdict, "unknown")


def _is_one_failure(before: Claim, after: Claim) -> bool:
    """With the issue's own signature on both sides, or with one other text, numbers apart."""
    if before.verdict in SEEN or after.verdict in SEEN:
        return before.verdict in SEEN and after.verdict in SEEN
    texts = [re.sub(r"0x[0-9a-fA-F]+|\d+", "#", english(one.ground.reason)) for one in (before, after) if one.ground]
    return texts[0] == texts[1]


def _may_be_luck(failing: Claim, passing: Claim) -> bool:
    """A flaky failure that is not seen in m runs of a variant is gone by chance with (1 - k/n)^m: at most 0.05."""
    if failing.verdict != "flaky" or failing.ground is None or passing.ground is None:
        return False
    flaky = [one for one in failing.ground.variants if one.verdict == "flaky" and 0 < one.k < one.n]
    passes = {one.variant: one.n - one.k for one in passing.ground.variants}
    return not flaky or any((1 - one.k / one.n) ** passes.get(one.variant, 0) > 0.05 for one in flaky)


def helps(one: Claim) -> bool:
    """Whether it fails with the issue's own signature, and a workaround helps with all of it."""
    found = one.ground.workarounds if one.ground else {}
    return one.verdict in SEEN and any(one.workaround(id_) == "effective" for id_ in found)


def may_help(one: Claim) -> bool:
    """Whether it is seen, and a workaround that could be tried there has no answer yet, where none helps with all."""
    if one.verdict not in SEEN or one.ground is None or helps(one):
        return False
    found = one.ground.workarounds
    return any(found[id_].applies and one.workaround(id_) == "unverified" for id_ in found)


@dataclass(frozen=True)
class Row:
    """One watched issue on a candidate, on the class where it is told."""

    issue: Issue
    before: Claim
    after: Claim
    class_: str
    is_run_there: bool

    @property
    def became(self) -> str:
        return became(self.issue, self.before, self.after)

    @property
    def does(self) -> str:
        if self.after.verdict == "not_applicable":
            return "does_not_apply"
        if self.after.verdict == "not_affected":
            return "passes"
        if self.after.verdict not in ANSWERS:
            return "not_known"
        return "needs_workaround" if helps(self.after) else "fails"

    @property
    def may_be_lost(self) -> bool:
        return self.after.verdict in FAILS and self.became in {"newly_broken", "not_known_before"}

    @property
    def weight(self) -> int:
        points = {"low": 1, "medium": 2, "high": 4, "critical": 8}[self.issue.severity]
        return points * 2 if self.issue.silent else points

    @property
    def runs(self) -> int:
        sides = [one for one in (self.before, self.after) if _standing(one) != "absent"]
        return min((one.runs for one in sides), default=0)


DOES = ("fails", "not_known", "needs_workaround", "passes", "does_not_apply")
_BECAME = (
    *("newly_broken", "fixed", "new", "not_known_before", "not_known_now", "fails_otherwise"),
    *("gone", "passes_new", "still_fails", "still_passes", "nowhere"),
)


@dataclass(frozen=True)
class Candidate:
    """A build beside the one that one is on."""

    build: Build
    rows: tuple[Row, ...]

    def count(self, word: str) -> int:
        return sum(1 for row in self.rows if row.does == word)

    def turned(self, word: str) -> list[Row]:
        return [row for row in self.rows if row.became == word]

    @property
    def coverage(self) -> float:
        """Of the rows that are run on the class, or of all: what fewer are known of."""
        there = [row for row in self.rows if row.does != "does_not_apply"]
        own = [row for row in there if row.is_run_there]
        return min(_share(own), _share(there)) if own else _share(there)

    @property
    def assurance(self) -> float:
        return min(_passing(self.rows), _passing([row for row in self.rows if row.is_run_there]))

    @property
    def lost(self) -> list[Row]:
        return self.turned("newly_broken")

    @property
    def unremedied(self) -> list[Row]:
        return [row for row in self.rows if row.may_be_lost and not helps(row.after)]

    @property
    def hope(self) -> int:
        return _sum(self.turned("fixed")) - _sum(row for row in self.lost if helps(row.after) or may_help(row.after))

    @property
    def gain(self) -> int:
        return _sum(self.turned("fixed")) - _sum(row for row in self.rows if row.may_be_lost and helps(row.after))

    @property
    def is_confirmed(self) -> bool:
        return any(row.runs >= 2 for row in self.turned("fixed"))


def _share(rows: Sequence[Row]) -> float:
    return sum(1 for row in rows if row.does != "not_known") / len(rows) if rows else 0.0


def _passing(rows: Sequence[Row]) -> float:
    passing = sum(1 for row in rows if row.does == "passes")
    unknown = sum(1 for row in rows if row.does == "not_known")
    return passing / (passing + unknown) if unknown else 1.0


def _sum(rows: Iterable[Row]) -> int:
    return sum(row.weight for row in rows)


@dataclass(frozen=True)
class Advised:
    decision: str
    best: str
    base: Candidate
    candidates: tuple[Candidate, ...]
    ratings: Mapping[str, str]


def upgrade(  # noqa: PLR0913 - the question, part by part
    store: Store,
    start: Build,
    watched: Sequence[str],
    classes: Sequence[str],
    choices: Iterable[Build],
    enough: float,
    packages: Collection[str] = (),
) -> Advised:
    """`choices` are the builds that break no constraint."""
    base = _candidate(store, start, start, watched, classes)
    found = [_candidate(store, start, build, watched, classes) for build in choices]
    others = [
        id_
        for id_, issue in store.issues.items()
        if not issue.is_smoke and id_ not in watched and issue.requires.package in {"", *packages}
    ]
    outside = {one.build.id: _candidate(store, start, one.build, others, classes) for one in found}
    found.sort(
        key=lambda one: (
            _sum(outside[one.build.id].turned("fixed")) - _sum(outside[one.build.id].lost),
            *_tie(one.build),
        ),
        reverse=True,
    )
    found.sort(key=lambda one: _rank(one, enough))
    ratings = {one.build.id: _rating(one, base, enough) for one in found}
    good = [one.build.id for one in found if ratings[one.build.id] == "good"]
    if good:
        return Advised("go", good[0], base, tuple(found), ratings)
    decision = "stay"
    if found and base.coverage < 0.5:
        decision = "cannot_say"
    elif found and any(row.after.verdict in FAILS for row in base.rows):
        hopeful = {"may_lose", "not_confirmed"} & {*ratings.values()}
        if hopeful or ratings[found[0].build.id] == "not_enough_measured":
            decision = "cannot_say"
    return Advised(decision, "", base, tuple(found), ratings)


def _tie(build: Build) -> tuple[Version, bool, str]:
    return Version(Version(build.torch).public), is_plain(build), build.id


def is_plain(build: Build) -> bool:
    return build.origin == "default" and build.triton == build.pinned_triton


def _candidate(store: Store, start: Build, build: Build, watched: Sequence[str], classes: Sequence[str]) -> Candidate:
    rows = []
    for id_ in watched:
        issue = store.issues[id_]
        found = [_row(store, issue, start, build, class_) for class_ in _classes_of(store, issue, classes)]
        row = min(
            found,
            key=lambda one: (not one.may_be_lost, DOES.index(one.does), _BECAME.index(one.became), one.class_),
        )
        if not row.before.verdict == row.after.verdict == "not_applicable":
            rows.append(row)
    return Candidate(build, tuple(rows))


def _without_evidence(issue: Issue, class_: str) -> set[str]:
    """Of a row that names no device, doubt on a GPU is none: it may have run on the CPU."""
    return {
        "not_run",
        "not_applicable",
        *(["inconclusive"] if issue.requires.device == "any" and class_ != CPU else []),
    }


def _classes_of(store: Store, issue: Issue, classes: Sequence[str]) -> Sequence[str]:
    """Those that are named; else those on which the row was ever measured; else all."""
    if classes:
        return classes
    measured = {
        class_
        for (row, _, class_), cell in store.cells.items()
        if row == issue.id and cell.verdict not in _without_evidence(issue, class_)
    }
    return sorted(measured) or store.classes or [CPU]


def _row(store: Store, issue: Issue, start: Build, build: Build, class_: str) -> Row:
    before, after = (claim(store, issue, one, class_) for one in (start, build))
    return Row(issue, before, after, class_, applies(issue, build, class_) and not after.rule.startswith("device"))


def _rank(one: Candidate, enough: float) -> tuple[int, ...]:
    unknown = one.count("not_known")
    return (
        0 if one.assurance >= enough else unknown,
        _sum(one.unremedied),
        0 if one.gain > 0 and one.is_confirmed else 1,
        -one.gain,
        _sum(row for row in one.rows if row.does == "fails"),
        unknown,
        _sum(row for row in one.rows if row.does == "needs_workaround"),
    )


def _rating(one: Candidate, base: Candidate, enough: float) -> str:
    can_exist = [row for row in one.rows if row.does != "does_not_apply"]
    if base.coverage < 0.5 or one.assurance < enough or not can_exist:
        return "not_enough_measured"
    if any(not helps(row.after) and not may_help(row.after) for row in one.lost):
        return "loses"
    if one.hope <= 0:
        return "no_gain"
    if one.unremedied or one.gain <= 0:
        return "may_lose"
    return "good" if one.is_confirmed else "not_confirmed"
