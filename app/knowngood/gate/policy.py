"""The policy: what a team lets pass, apart from the form of its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import UnknownWatchList, Watch, WatchList, once, or_near
from knowngood.domain.verdicts.verdict import NIGHTLY_STALE_AFTER, STALE_AFTER


class Effect(StrEnum):
    """The effect of one cell on the decision, from the mildest; a later one outweighs an earlier one."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    INSUFFICIENT = "insufficient"
    BLOCK = "block"


class Accept(StrEnum):
    """Claims that count as known: those measured on the very build, Python and class, or inferred from them too."""

    MEASURED = "measured"
    INFERRED = "inferred"


class Variants(StrEnum):
    """Whose failures count: those of every variant, or of the one that the report ran alone."""

    ALL = "all"
    REPORTED = "reported"


class RemedyFilter(StrEnum):
    """Whether a failing issue blocks only where something can be done about it, or only where nothing can."""

    ANY = "any"
    WITH_REMEDY = "with_remedy"
    WITHOUT_REMEDY = "without_remedy"


@dataclass(frozen=True)
class Ignore:
    """An issue that a team accepts: why, who said so, and until when (inclusive). An expired one blocks and says so."""

    issue: str
    reason: str
    author: str
    expires: date
    workaround: str = ""


@dataclass(frozen=True)
class Policy:
    """The rules. Defaults are those of a team that wrote none: docs/decisions/018-the-gate-never-guesses.md says why.

    `hardware` are the classes that count (none: every measured one, the worst wins). `python` is that of environments
    that leave it open, `platform` theirs where no command says it. `minimum` is the severity from
    which on a failing issue blocks; `silent_always` blocks on silent wrong results whatever their severity. `applied`
    maps issues to the workarounds that the team has in place. `base` is the build that `only_new` compares with, and
    `unknown_on_base` the effect at most of a failure of which nothing is known there.
    `refuse_assumed` makes an assumed build insufficient evidence, `refuse_unstated` an environment that does not state
    its platform. `accept` says which claims count as known;
    `variants` says which variants of an issue are looked at where it fails;
    `accept_variant` takes another variant of the same release (its CUDA wheel for a `+cpu` one) as inferred on the CPU.
    `snapshot_days` is the oldest snapshot that is taken (None: 30 days, and of what comes with a release any).
    """

    watch: Watch = field(default_factory=Watch)
    hardware: tuple[str, ...] = ()
    python: str = ""
    platform: str = ""
    affected: Effect = Effect.BLOCK
    flaky: Effect = Effect.BLOCK
    different_failure: Effect = Effect.BLOCK
    bigger: Effect = Effect.WARN
    more_work: Effect = Effect.WARN
    slower: Effect = Effect.WARN
    unknown: Effect = Effect.INSUFFICIENT
    stale: Effect = Effect.WARN
    remedy: RemedyFilter = RemedyFilter.ANY
    minimum: Severity = Severity.LOW
    silent_always: bool = True
    release_days: int = STALE_AFTER.days
    nightly_days: int = NIGHTLY_STALE_AFTER.days
    snapshot_days: int | None = None
    only_new: bool = False
    base: str = ""
    unknown_on_base: Effect = Effect.WARN
    applied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignores: tuple[Ignore, ...] = ()
    refuse_assumed: bool = False
    refuse_unstated: bool = False
    accept: Accept = Accept.INFERRED
    accept_variant: bool = False
    variants: Variants = Variants.ALL


def filled(policy: Policy, lists: Mapping[str, WatchList]) -> Policy:
    """The policy with what its named lists say written into it, so that nothing more need be looked up.

    Everything counts together; of severities the lowest does. The classes of lists count where the policy names none,
    and where every list names some: a list without classes means every measured one.
    Raises UnknownWatchList with the nearest names.
    """
    if not policy.watch.lists:
        return policy
    for name in policy.watch.lists:
        if name not in lists:
            raise UnknownWatchList(f'no watch list is called "{name}" here{or_near(name, lists)}')
    contents = [lists[name].content for name in policy.watch.lists]
    watches = [replace(policy.watch, lists=()), *(content.watch for content in contents)]
    severities = [source.severity for source in watches if source.severity is not None]
    watch = Watch(
        issues=once(name for source in watches for name in source.issues),
        components=once(name for source in watches for name in source.components),
        packages=once(name for source in watches for name in source.packages),
        severity=min(severities, key=list(Severity).index, default=None),
    )
    hardware = [content.hardware for content in contents]
    classes = once(name for names in hardware for name in names) if all(hardware) else ()
    return replace(policy, watch=watch, hardware=policy.hardware or classes)
