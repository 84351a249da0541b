"""A request to the gate, in words and files, and the question that it is.

The server, the command and a snapshot all come through here, so that they cannot understand the same words differently.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from knowngood import foreign_text
from knowngood.domain.builds.build_names import minor_python, read_build_name
from knowngood.domain.builds.platforms import platform_of_gpus, platform_said
from knowngood.domain.errors import BadRequest, BadSnapshot, KnownGoodError, OtherPython, UnknownBuild
from knowngood.domain.hardware_names import class_named
from knowngood.domain.issue_selectors import Watch, read_severity, watched_issues
from knowngood.domain.verdicts.known import Known
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.environments.service import stated_build
from knowngood.gate.decision import GateQuestion, Ruling, decide
from knowngood.gate.policy import Policy, filled
from knowngood.store.knowledge.model import Knowledge

# pydantic reads policies, and takes longer than all else that a question of a snapshot without one needs.
_PARSE_POLICY = "knowngood.gate.policy_file:parse_policy"

_CLOCKS_DIFFER = timedelta(days=1)
SNAPSHOT_DAYS = 30
"""The oldest snapshot that is taken where no policy says so."""


class BadField(BadRequest):
    """One part of what was asked cannot be understood. `field` names it as the API does, `nearest` are ids that may be
    meant, and `problem` is the message without them.
    """

    def __init__(self, field: str, problem: str, nearest: Sequence[str] = ()) -> None:
        self.field = field
        self.problem = problem
        self.nearest = tuple(nearest)
        self.message = f"{problem}; nearest: {', '.join(nearest)}" if nearest else problem
        super().__init__(f"{field}: {self.message}")


@dataclass(frozen=True)
class AttachedFile:
    """A file that came along: its name, which says what it may be, and its text. Folders before the name tell people
    where it is.
    """

    name: str
    content: str


@dataclass(frozen=True)
class GateRequest:
    """One question, not understood yet. Either `build` or `environment` is given.

    `python` is that of the environment: it narrows what the file or the build's name leaves open; `groups` are the
    extras and groups of a pyproject.toml that count (none: all). `platform` is one of `platforms.PLATFORMS`, as
    `macos-arm64`, and is held against what the file states. What is named to be watched takes the place of what
    the policy watches; `hardware`, `base`, `python` and `platform` likewise; `applied` (`issue=workaround`) is added.
    """

    build: str = ""
    environment: AttachedFile | None = None
    python: str = ""
    platform: str = ""
    groups: tuple[str, ...] = ()
    policy: AttachedFile | None = None
    hardware: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    component: tuple[str, ...] = ()
    package: tuple[str, ...] = ()
    severity: str = ""
    watch: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    base: str = ""
    only_new: bool = False


WATCHED = ("issues", "component", "package", "severity", "watch")


def read_request(fields: Mapping[str, Any]) -> GateRequest:
    """From plain fields, as JSON has them; their types were checked."""
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    plain |= {name: AttachedFile(**plain[name]) for name in ("environment", "policy") if plain.get(name)}
    return GateRequest(**plain)


def rule(
    asked: GateRequest,
    knowledge: Knowledge,
    now: datetime,
    *,
    is_snapshot: bool = False,
    most_days: int | None = SNAPSHOT_DAYS,
) -> Ruling:
    """Understand and decide. Raises BadField, and BadSnapshot for one that is older than the policy takes; where that
    says nothing, older than `most_days` (None: it may be of any age).
    """
    question = read_question(asked, knowledge, now)
    days = most_days if question.policy.snapshot_days is None else question.policy.snapshot_days
    if is_snapshot and days is not None:
        _refuse_old(knowledge.known.as_of, now, days)
    try:
        return decide(question, knowledge.known)
    except BadRequest as error:
        raise BadField(_at_fault(asked, question.policy, knowledge.known), str(error)) from None


def _at_fault(asked: GateRequest, policy: Policy, known: Known) -> str:
    """The field that a question was refused for, found out afterwards: few are refused."""
    try:
        watched_issues(policy.watch, known.issues, known.names)
        if policy.base:
            read_build_name(policy.base)
    except UnknownBuild:
        return "base" if asked.base else "policy"
    except BadRequest:
        return next((name for name in WATCHED if getattr(asked, name)), "policy")
    return "hardware" if asked.hardware else "policy"


def _refuse_old(made_at: datetime, now: datetime, days: int) -> None:
    if made_at > now + _CLOCKS_DIFFER:
        raise BadSnapshot(f"the snapshot says that it is of {made_at:%Y-%m-%d}, which is still to come")
    if now - made_at > timedelta(days=days):
        age = (now - made_at).days
        raise BadSnapshot(
            f"the snapshot is of {made_at:%Y-%m-%d}, {age} days old, and the policy takes {days} at most "
            "(snapshot_days); make a new one with `knowngood snapshot`"
        )


def read_question(asked: GateRequest, knowledge: Knowledge, now: datetime) -> GateQuestion:
    if asked.build and asked.environment:
        raise BadField("build", "name a build or give an environment, not both")
    if not asked.build and asked.environment is None:
        raise BadField("build", "name a build, or give an environment such as a requirements or lock file")
    if asked.groups and asked.environment is None:
        raise BadField("groups", "names extras and groups of a pyproject.toml; give that as the environment")
    policy = _policy(asked, knowledge)
    resolved = _resolved(asked, knowledge, policy)
    policy = replace(policy, hardware=tuple(class_named(one, knowledge.known.hardware) for one in policy.hardware))
    if not policy.hardware:  # the GPUs that a pasted environment names are the hardware asked about
        classes = (class_named(one, knowledge.known.hardware) for one in resolved.gpus)
        policy = replace(policy, hardware=tuple(dict.fromkeys(classes)))
    return GateQuestion(resolved, policy, now)


def _resolved(asked: GateRequest, knowledge: Knowledge, policy: Policy) -> ResolvedBuild:
    builds = knowledge.known.builds
    with about("platform" if asked.platform else "policy"):
        platforms = {**platform_of_gpus(policy.hardware), **platform_said(asked.platform or policy.platform)}
    with about("python" if asked.python else "policy"):
        python = minor_python(asked.python or policy.python)
        if asked.environment is None:
            with about("build", OtherPython):
                return resolve_build(asked.build, builds, knowledge.tested, python=python, platforms=platforms)
        with about("environment", OtherPython):
            name = PurePath(asked.environment.name).name
            content, tested = asked.environment.content, knowledge.tested
            return stated_build(
                content, builds, tested, name=name, python=python, groups=asked.groups, platforms=platforms
            )


def _policy(asked: GateRequest, knowledge: Knowledge) -> Policy:
    policy = Policy()
    if asked.policy:
        with about("policy"):
            policy = foreign_text.read(_PARSE_POLICY, asked.policy.content, asked.policy.name)
    with about("severity"):
        named = Watch(asked.issues, asked.component, asked.package, read_severity(asked.severity), asked.watch)
    policy = replace(
        policy,
        watch=policy.watch if named.is_empty else named,
        hardware=asked.hardware or policy.hardware,
        applied=_applied(policy.applied, asked.applied),
        base=asked.base or policy.base,
        only_new=asked.only_new or policy.only_new,
    )
    if policy.watch.is_empty:
        raise BadField(
            "issues",
            "nothing is watched; name issues, components, packages, a severity or a watch list, or `all` issues "
            "(dozens of them fail on every build, so that watching all would hardly ever pass)",
        )
    if policy.only_new and not policy.base:
        raise BadField("base", "only_new compares with a base build; name one")
    with about("watch"):
        return filled(policy, knowledge.lists)


def _applied(before: Mapping[str, Sequence[str]], named: Sequence[str]) -> dict[str, tuple[str, ...]]:
    applied = {issue: tuple(ids) for issue, ids in before.items()}
    for text in named:
        issue, sign, workaround = text.partition("=")
        if not (issue and sign and workaround):
            raise BadField("applied", f'"{text[:80]}" is not issue=workaround, such as xla-8464=contiguous')
        applied[issue] = tuple(dict.fromkeys([*applied.get(issue, ()), workaround]))
    return applied


@contextmanager
def about(field: str, *others: type[KnownGoodError]) -> Iterator[None]:
    """Errors meanwhile become a BadField of `field`, unless it is one already or one of `others`."""
    try:
        yield
    except KnownGoodError as error:
        if isinstance(error, (BadField, *others)):
            raise
        raise BadField(field, str(error)) from None
