"""A request to the gate, in words and files, and the question that it is.

The server, the command and a snapshot all come through here, so that they cannot understand the same words differently.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from shlex import join
from typing import Any, ClassVar

from knowngood import foreign_text
from knowngood.cli.knowledge import ground_here, read_given
from knowngood.domain.builds.build_names import minor_python
from knowngood.domain.builds.platforms import parse_platform, platform_of_gpus
from knowngood.domain.errors import BadRequest, BadSnapshot, KnownGoodError, OtherPython
from knowngood.domain.hardware_names import class_named
from knowngood.domain.issue_selectors import Watch, read_severity
from knowngood.domain.message import Message, quoted
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.environments.service import stated_build
from knowngood.environments.wheels.table import wheels_of
from knowngood.gate.asking import Answer, say
from knowngood.gate.decision import Ruling, decide
from knowngood.gate.policy import Policy, filled
from knowngood.gate.question import GateQuestion
from knowngood.gate.renderers import Form, render
from knowngood.store.knowledge.model import Knowledge

# pydantic reads policies, and takes longer than all else that a question of a snapshot without one needs.

MOST_CHARACTERS = 6_000_000  # of a file; uv's own lock of a large project has 1,000,000
_CLOCKS_DIFFER = timedelta(days=1)
SNAPSHOT_DAYS = 30
"""The oldest snapshot that is taken where no policy says so."""


class BadField(BadRequest):
    """One part of what was asked cannot be understood. `field` names it as the API does, `nearest` are ids that may be
    meant, and `problem` is the message without them; `why` says the same in any language, where it has words in it.
    """

    def __init__(self, field: str, problem: str, nearest: Sequence[str] = (), why: Message | None = None) -> None:
        self.field = field
        self.problem = problem
        self.nearest = tuple(nearest)
        self.message = f"{problem}; nearest: {', '.join(nearest)}" if nearest else problem
        self.why = why or quoted(self.message)
        super().__init__(f"{field}: {self.message}")


@dataclass(frozen=True)
class AttachedFile:
    """A file: its name says what it may be (`uv.lock`), its content is text."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # this and the limits are for questions over HTTP

    content: str = field(metadata={"max_length": MOST_CHARACTERS})
    name: str = field(default="", metadata={"max_length": 300})


@dataclass(frozen=True)
class GateRequest:
    """One question, not understood yet. Either `build` or `environment` is given.

    `python` is that of the environment: it narrows what the file or the build's name leaves open; `groups` are the
    extras and groups that are installed (none: all). `platform` is one of `platforms.PLATFORMS`, as
    `macos-arm64`, and is held against what the file states. What is named to be watched takes the place of what
    the policy watches; `hardware`, `base`, `python` and `platform` likewise; `applied` (`issue=workaround`) is added.
    `base_environment` is a file to compare with, in place of a base build (without content: there was none).
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
    base_environment: AttachedFile | None = None
    only_new: bool = False

    @property
    def where(self) -> str:
        """The file that holds the environment; empty where there is none, or it has no name."""
        return self.environment.name if self.environment else ""

    def named(self, *fields: str) -> str:
        """The first of these fields that is given; where none is, the policy says it."""
        return next((name for name in fields if getattr(self, name)), "policy")


WATCHED = ("issues", "component", "package", "severity", "watch")


def read_request(fields: Mapping[str, Any]) -> GateRequest:
    """Make a question from plain fields, as JSON has them; their types were checked."""
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    files = {name: AttachedFile(**value) for name, value in plain.items() if isinstance(value, Mapping)}
    return GateRequest(**plain | files)


def rule_here(
    fields: Mapping[str, Any], forms: Sequence[str], *, advisory: bool, snapshot: str, keys: Sequence[str]
) -> Answer:
    """Answer in this process: from a snapshot, which opens no database (empty: none is named), else from the local
    store, or from what comes with this release. Raises BadSnapshot, also for one that is older than the policy takes.
    """
    request, now = read_request(fields), datetime.now(UTC)
    if snapshot:
        given, remark = read_given(snapshot, keys)
        ruling = rule(request, given.knowledge, now, is_snapshot=True)
    else:
        ground, remark = ground_here(), ""
        ruling = rule(request, ground.knowledge, now, is_snapshot=not ground.has_store, most_days=None)
    texts = {form: render(ruling, Form(form), where=request.where, advisory=advisory) for form in forms}
    if remark:
        say(remark)
    return ruling.decision.value, texts


def rule(
    request: GateRequest,
    knowledge: Knowledge,
    now: datetime,
    *,
    is_snapshot: bool = False,
    most_days: int | None = SNAPSHOT_DAYS,
) -> Ruling:
    """Understand and decide. Raises BadField, and BadSnapshot for one that is older than the policy takes; where that
    says nothing, older than `most_days` (None: it may be of any age).
    """
    question = read_question(request, knowledge, now)
    days = most_days if question.policy.snapshot_days is None else question.policy.snapshot_days
    if is_snapshot and days is not None:
        _refuse_old(knowledge.known.as_of, now, days)
    with about(request.named(*WATCHED)):
        _ = question.watched
    with about(request.named("hardware")):
        _ = question.classes
    with about(request.named("base")):
        _ = question.base
    return decide(question)


def _refuse_old(made_at: datetime, now: datetime, days: int) -> None:
    if made_at > now + _CLOCKS_DIFFER:
        raise BadSnapshot(f"the snapshot says that it is of {made_at:%Y-%m-%d}, which is still to come")
    if now - made_at > timedelta(days=days):
        age = (now - made_at).days
        raise BadSnapshot(
            f"the snapshot is of {made_at:%Y-%m-%d}, {age} days old, and the policy takes {days} at most "
            "(snapshot_days); make a new one with `knowngood snapshot`"
        )


def read_question(request: GateRequest, knowledge: Knowledge, now: datetime) -> GateQuestion:
    """Raises BadField."""
    if request.build and request.environment:
        raise BadField("build", "name a build or give an environment, not both")
    if not request.build and request.environment is None:
        raise BadField("build", "name a build, or give an environment such as a requirements or lock file")
    if request.groups and request.environment is None:
        raise BadField("groups", "names extras and groups of a file; give one as the environment")
    policy = _policy(request, knowledge)
    resolved, base = _resolved(request, knowledge, policy)
    named = policy.hardware or resolved.gpus  # the GPUs that a pasted environment names are the hardware asked about
    classes = tuple(dict.fromkeys(class_named(name, knowledge.known.hardware) for name in named))
    policy = replace(policy, hardware=classes)
    return GateQuestion(resolved, policy, now, knowledge.known, base, _asked_as(request, resolved, classes))


def _asked_as(request: GateRequest, resolved: ResolvedBuild, classes: Sequence[str]) -> str:
    """The options that name the same environment to another command."""
    named = {"-r": request.where} if request.where else {"--build": request.build or resolved.build or ""}
    options = {**named, "--hardware": ",".join(classes), "--python": request.python}
    return join(word for option, value in options.items() if value for word in (option, value))


def _resolved(request: GateRequest, knowledge: Knowledge, policy: Policy) -> tuple[ResolvedBuild, ResolvedBuild | None]:
    """The environment, and the one to compare with (None: no file states it), which is read alike."""
    names, tested, table = knowledge.known.build_names, knowledge.tested, wheels_of(knowledge.known)
    with about(request.named("platform")):
        platforms = {**platform_of_gpus(policy.hardware), **parse_platform(request.platform or policy.platform)}
    with about(request.named("python")):
        python = minor_python(request.python or policy.python)

        def stated(field: str, file: AttachedFile) -> ResolvedBuild:
            how: Any = {"name": PurePath(file.name).name, "python": python, "groups": request.groups}
            with about(field, OtherPython):
                return stated_build(file.content, names, tested, table, **how, platforms=platforms)

        before, base = request.base_environment, None
        if before:
            missing = ResolvedBuild(None, f"of {before.name} (there is no such file)")
            base = stated("base_environment", before) if before.content.strip() else missing
        if request.environment:
            return stated("environment", request.environment), base
        with about("build", OtherPython):
            build = resolve_build(request.build, names, tested, table, python=python, platforms=platforms)
        return build, base


def _policy(request: GateRequest, knowledge: Knowledge) -> Policy:
    policy = Policy()
    if request.policy:
        from knowngood.gate.policy_file import parse_policy

        with about("policy"):
            policy = foreign_text.read(parse_policy, request.policy.content, request.policy.name)
    with about("severity"):
        severity = read_severity(request.severity)
    named = Watch(request.issues, request.component, request.package, severity, request.watch)
    policy = replace(
        policy,
        watch=policy.watch if named.is_empty else named,
        hardware=request.hardware or policy.hardware,
        applied=_applied(policy.applied, request.applied),
        base=request.base or policy.base,
        only_new=request.only_new or policy.only_new,
    )
    if policy.only_new and not (policy.base or request.base_environment):
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
        raise BadField(field, str(error), why=getattr(error, "why", None)) from None
