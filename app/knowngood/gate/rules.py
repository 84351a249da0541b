"""The rules of a policy: what one cell weighs in the gate's decision, and why. Each rule of a policy is one small
function here.

A rule gets what the rules before it made of the cell and makes it milder or more severe, with a few words for the
reason. No rule makes an unknown milder but an ignore, and `unknown` itself. What decides whether a cell is an answer at
all (`accept`, `refuse_assumed`, `accept_variant`) is no rule of this kind: it stands in decision.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import CONCERNS, Issue, Workaround
from knowngood.domain.issue_selectors import is_at_least
from knowngood.domain.verdicts.history import FAILING, Fix
from knowngood.domain.verdicts.status import is_untried, passes_as_reported
from knowngood.domain.verdicts.verdict import (
    AS_REPORTED,
    CONCLUSIVE,
    Cell,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    is_silent,
)
from knowngood.domain.vocabulary import VERDICTS
from knowngood.gate.policy import Effect, Ignore, Policy, RemedyFilter, Variants

UNKNOWN = frozenset({Verdict.NOT_RUN, Verdict.INCONCLUSIVE, Verdict.NO_BUILD})
FAILURES = FAILING | {Verdict.DIFFERENT_FAILURE}

_ANSWERS = FAILURES | {Verdict.NOT_AFFECTED}

_UNTRIED = WorkaroundFinding(WorkaroundVerdict.UNVERIFIED, "not run yet")


@dataclass(frozen=True)
class Case:
    """One cell and all that a policy looks at beside it.

    `on_base` is the same cell on the base build (None: none is named, or the catalogue has no such build); `fix` the
    release that passes again, of a failing cell; `declared` the workarounds in place; `ignores` those of this issue;
    `strays` says which of the issue's own packages stand in the environment in a version that was not measured (empty:
    none). `elsewhere` is a workaround that was not tried here, and the build on which it helps.
    Of an environment that does not state its Python, `only_on` are the Pythons on which it fails while it does not on
    others, `unknown_on` those of which nothing is known. `is_accepted` is False for an answer with less assurance than
    the policy takes.
    """

    issue: Issue
    build: Build
    cell: Cell
    now: datetime
    on_base: Cell | None = None
    fix: Fix | None = None
    declared: tuple[str, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    strays: str = ""
    elsewhere: tuple[Workaround, Build] | None = None
    only_on: tuple[str, ...] = ()
    unknown_on: tuple[str, ...] = ()
    is_accepted: bool = True

    @property
    def works_on(self) -> str:
        return self.elsewhere[1].id if self.elsewhere else ""

    @property
    def verdict(self) -> Verdict:
        return self.cell.verdict

    @property
    def is_conclusive(self) -> bool:
        """Whether it answers for this environment: a pass beside other packages than these answers nothing."""
        is_stray_pass = bool(self.strays) and self.verdict is Verdict.NOT_AFFECTED
        return self.verdict in CONCLUSIVE and self.is_accepted and not is_stray_pass

    @property
    def is_new(self) -> bool | None:
        """Whether it fails here and not so on the base build; None where nothing is compared or nothing known."""
        if self.on_base is None or self.verdict not in FAILURES or self.on_base.verdict in UNKNOWN:
            return None
        alike = FAILING if self.verdict in FAILING else {Verdict.DIFFERENT_FAILURE}
        return self.on_base.verdict not in alike

    def finding(self, workaround: str) -> WorkaroundFinding:
        return self.cell.workarounds.get(workaround, _UNTRIED)


@dataclass(frozen=True)
class WeighedCell:
    """`words` are clauses, each of which may go on after a semicolon; `ignored` says until when, by whom and why."""

    effect: Effect
    words: tuple[str, ...]
    ignored: str = ""

    @property
    def why(self) -> str:
        return "; ".join(self.words)

    def become(self, effect: Effect, *words: str) -> "WeighedCell":
        return replace(self, effect=effect, words=(*self.words, *words))

    def eased(self, words: str) -> "WeighedCell":
        """A warning at most."""
        return self.become(Effect.WARN, words) if self.effect in {Effect.BLOCK, Effect.INSUFFICIENT} else self

    def at_least(self, effect: Effect, *words: str) -> "WeighedCell":
        return self.become(max(self.effect, effect, key=EFFECT_RANK.__getitem__), *words)


EFFECT_RANK = {effect: rank for rank, effect in enumerate(Effect)}


def weigh(case: Case, policy: Policy) -> WeighedCell:
    """Apply the policy to one cell."""
    weighed = _by_verdict(case, policy)
    if not case.is_accepted:
        weighed = weighed.become(policy.unknown, "the policy takes measured answers only")
        return by_ignores(case.ignores, case.now, weighed)
    if case.verdict in FAILURES:
        weighed = _by_severity(case, policy, weighed)
        weighed = _by_remedy(case, policy, weighed)
        weighed = _by_base(case, policy, weighed)
        weighed = _by_variants(case, policy, weighed)
    weighed = _by_declared(case, weighed)
    weighed = _by_age(case, policy, weighed)
    weighed = _by_python(case, weighed)
    return by_ignores(case.ignores, case.now, weighed)


def _by_verdict(case: Case, policy: Policy) -> WeighedCell:
    effects = {
        Verdict.AFFECTED: policy.affected,
        Verdict.FLAKY: policy.flaky,
        Verdict.DIFFERENT_FAILURE: policy.different_failure,
        Verdict.NOT_AFFECTED: policy.unknown if case.strays else Effect.PASS,
        Verdict.NOT_APPLICABLE: Effect.PASS,
    }
    strays = f"measured with other packages: {case.strays}" if case.strays and case.verdict in CONCLUSIVE else ""
    said = (in_words(case.cell), not_tried(case.works_on) if is_untried(case.cell) else "", strays)
    return WeighedCell(effects.get(case.verdict, policy.unknown), tuple(words for words in said if words))


def not_tried(works_on: str) -> str:
    """`works_on` is the build on which one helps (empty: none is known)."""
    return "workaround not tried here" + (f" (works on {works_on})" if works_on else "")


def _by_variants(case: Case, policy: Policy, weighed: WeighedCell) -> WeighedCell:
    if policy.variants is Variants.ALL or case.strays or not passes_as_reported(case.cell):
        return weighed
    return weighed.become(Effect.PASS, "the policy asks for what the report ran alone")


def _by_python(case: Case, weighed: WeighedCell) -> WeighedCell:
    """A failure on some of the Pythons that an environment may have neither blocks it nor lets it pass."""
    if case.only_on:
        pythons = " and ".join(case.only_on)
        words = f"only on Python {pythons}, and the environment does not state its Python: say --python"
        return weighed.become(Effect.INSUFFICIENT if weighed.effect is Effect.BLOCK else weighed.effect, words)
    if case.unknown_on:
        return weighed.become(weighed.effect, f"not known on Python {' and '.join(case.unknown_on)}")
    return weighed


def in_words(cell: Cell) -> str:
    """The verdict and its reason, as a clause. An issue that concerns others says whom it concerns, and no more."""
    clause = VERDICTS[cell.verdict].as_clause
    word = f"{clause} here" if cell.verdict in _ANSWERS else clause
    if passes_as_reported(cell):
        return f"{AS_REPORTED}, {word} in a variant: {cell.reason}"
    says_it_all = (word, CONCERNS if cell.verdict is Verdict.NOT_APPLICABLE else AS_REPORTED)
    return cell.reason if cell.reason.startswith(says_it_all) else f"{word}: {cell.reason}" if cell.reason else word


def _by_severity(case: Case, policy: Policy, weighed: WeighedCell) -> WeighedCell:
    severity = case.issue.severity
    if is_at_least(severity, policy.minimum):
        return weighed
    if policy.silent_always and is_silent(case.issue, case.cell) and case.verdict in FAILING:
        return weighed.become(
            weighed.effect, f"its severity is {severity}, but silent wrong results count whatever it is"
        )
    return weighed.eased(f"its severity is {severity}, and only {policy.minimum} or worse blocks")


def _by_remedy(case: Case, policy: Policy, weighed: WeighedCell) -> WeighedCell:
    if policy.remedy is RemedyFilter.ANY:
        return weighed
    remedy = _remedy(case)
    if policy.remedy is RemedyFilter.WITH_REMEDY and not remedy:
        known = "no later release" if is_untried(case.cell) else "no later release and no workaround"
        return weighed.eased(f"{known} is known to help, and only what can be helped blocks")
    if policy.remedy is RemedyFilter.WITHOUT_REMEDY and remedy:
        return weighed.eased(f"{remedy}, and only what cannot be helped blocks")
    return weighed


def _remedy(case: Case) -> str:
    """The remedy in a few words; empty where none is known."""
    helping = [one.id for one in case.issue.workarounds if _helps(case, one.id)]
    if helping:
        return f"the workaround {helping[0]} helps here"
    return f"{case.fix.build.id} passes" if case.fix else ""


def _helps(case: Case, workaround: str) -> bool:
    return not case.strays and case.finding(workaround).verdict is WorkaroundVerdict.EFFECTIVE


def _by_base(case: Case, policy: Policy, weighed: WeighedCell) -> WeighedCell:
    if not policy.only_new or case.on_base is None:
        return weighed
    base = case.on_base.build
    match case.is_new:
        case None:
            mildest = min(weighed.effect, policy.unknown_on_base, key=EFFECT_RANK.__getitem__)
            return weighed.become(
                mildest, f"nobody can say whether it is new: nothing is known of it on the base build {base}"
            )
        case True:
            return weighed.become(
                weighed.effect,
                f"it is new: on the base build {base} it {VERDICTS[case.on_base.verdict].as_clause}",
            )
        case False:
            return weighed.eased(f"it is not new: it fails on the base build {base} too")


def _by_declared(case: Case, weighed: WeighedCell) -> WeighedCell:
    """A workaround counts where it was measured on this very cell; one that does harm never leaves a plain pass."""
    declared = list(dict.fromkeys(case.declared))
    weighed = weighed.become(weighed.effect, *(_said_of(case, one) for one in declared))
    if case.verdict in FAILURES and any(_helps(case, one) for one in declared):
        weighed = weighed.become(Effect.PASS)
    if any(case.finding(one).verdict is WorkaroundVerdict.HARMFUL for one in declared):
        weighed = weighed.at_least(Effect.WARN)
    return weighed


def _said_of(case: Case, workaround: str) -> str:
    known = [one.id for one in case.issue.workarounds]
    if workaround not in known:
        return f"no workaround of it is called {workaround:.60}; known: {', '.join(known) or 'none'}"
    finding = case.finding(workaround)
    if finding.verdict is WorkaroundVerdict.EFFECTIVE and case.strays:
        return f"the declared workaround {workaround} was measured with other packages and does not count"
    note = f": {finding.note}" if finding.note else ""
    return f"the declared workaround {workaround} {_DOES[finding.verdict]}{note}"


_DOES: Mapping[WorkaroundVerdict, str] = {
    WorkaroundVerdict.EFFECTIVE: "helps here",
    WorkaroundVerdict.PARTIAL: "helps here with some variants only",
    WorkaroundVerdict.INEFFECTIVE: "does not help here",
    WorkaroundVerdict.UNNECESSARY: "is not needed here",
    WorkaroundVerdict.HARMFUL: "does harm here",
    WorkaroundVerdict.UNVERIFIED: "is not verified here",
}


def _by_age(case: Case, policy: Policy, weighed: WeighedCell) -> WeighedCell:
    if case.verdict not in CONCLUSIVE or not is_stale(case.cell, case.build, policy, case.now):
        return weighed
    words = (
        f"measured {age_days(case.cell, case.now)} days ago, and after {_limit_days(case.build, policy)} it is stale"
    )
    return weighed.at_least(policy.stale, words)


def is_stale(cell: Cell, build: Build, policy: Policy, now: datetime) -> bool:
    """Whether its evidence is older than the policy allows for a build of this class."""
    return cell.measured_at is not None and now - cell.measured_at > timedelta(days=_limit_days(build, policy))


def _limit_days(build: Build, policy: Policy) -> int:
    return policy.nightly_days if build.build_id.version.is_devrelease else policy.release_days


def age_days(cell: Cell, now: datetime) -> int | None:
    """Whole days since it was measured; 0 for what a clock ahead of ours wrote."""
    return None if cell.measured_at is None else max(0, (now - cell.measured_at).days)


def by_ignores(ignores: Sequence[Ignore], now: datetime, weighed: WeighedCell) -> WeighedCell:
    """The ignore that holds longest counts; one that ran out changes nothing and says so."""
    if not ignores:
        return weighed
    longest = max(ignores, key=lambda one: (one.expires, one.author, one.reason))
    if longest.expires < now.date():
        return weighed.become(weighed.effect, f"the ignore of {longest.author} ran out on {longest.expires}")
    if weighed.effect is Effect.PASS:
        return weighed.become(Effect.PASS, f"the ignore of {longest.author} is not needed here")
    told = f"until {longest.expires} by {longest.author}: {longest.reason}"
    return replace(weighed.become(Effect.PASS, f"ignored {told}"), ignored=told)


def strays_in(pins: Mapping[str, str], packages: Mapping[str, str]) -> str:
    """Which `pins` (what was measured) stand in `packages` (the environment) in another version, in a few words.

    Both map canonical names to versions. What the environment does not name, or names without a version, is no stray.
    """
    return ", ".join(
        f"{name} {measured}, and the environment has {found}"
        for name, measured in sorted(pins.items())
        if (found := packages.get(name, "")) and not _alike(found, measured)
    )


def _alike(found: str, measured: str) -> bool:
    try:
        return Version(Version(found).public) == Version(Version(measured).public)
    except InvalidVersion:
        return found == measured
