"""A request for advice on an upgrade, in words, and the question that it is: for pages, programs and terminals
alike.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from packaging.utils import canonicalize_name

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import find_build, find_build_or_wheel, read_build_name
from knowngood.domain.builds.packages import concerns, named_by
from knowngood.domain.builds.platforms import TAKEN, parse_platform, platform_of_gpus, why_not_tested
from knowngood.domain.errors import NotTested, OtherPython, UnknownBuild, UnknownIssue
from knowngood.domain.hardware_names import class_named, hardware_named, measured_classes, several_gpus
from knowngood.domain.issue import Issue, parse_capability
from knowngood.domain.issue_selectors import (
    Watch,
    find_issues,
    is_all,
    nearest,
    read_severity,
    speaks_of,
    watched_issues,
)
from knowngood.domain.measuring.planning import ENVIRONMENT_S
from knowngood.domain.message import Message, clauses, english, quoted
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.environments.service import stated_build
from knowngood.environments.wheels.refusals import refused_pairs
from knowngood.environments.wheels.table import wheels_of
from knowngood.gate.policy import Policy, filled
from knowngood.gate.request import WATCHED, BadField, about
from knowngood.move.upgrade.candidates import ENOUGH, UpgradeQuestion
from knowngood.move.upgrade.constraints import (
    Constraints,
    read_cuda,
    read_driver,
    read_pin,
    read_python,
)
from knowngood.store.knowledge.model import Knowledge, Recorded

NO_PACKAGE = "none"


@dataclass(frozen=True)
class UpgradeRequest:
    """The question in words, for pages, programs and terminals alike.

    `start` is a build id or a version of torch. Nothing named to be watched means every issue, as `all` does among
    `issues`. `has` are the packages of the environment beside torch, with their versions or without (empty: nothing is
    known of them; `none` alone: it has none); `is_whole` says that it has no others. `platform` is where it runs, as
    `linux-x86_64` (empty: not said). `enough` is a percentage (None: the usual one). `to` is the candidate that is
    looked at (empty: the recommended one).
    """

    start: str = ""
    watch: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    component: tuple[str, ...] = ()
    package: tuple[str, ...] = ()
    severity: str = ""
    python: str = ""
    platform: str = ""
    cuda: str = ""
    driver: str = ""
    hardware: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    enough: int | None = None
    to: str = ""
    is_whole: bool = True

    @property
    def packages(self) -> Mapping[str, str] | None:
        """Packages by canonical name, with their versions (empty: not stated); None where nothing is known of them."""
        parts = [text.partition("==") for text in self.has if text.strip()]
        versions = {canonicalize_name(name.strip()): version.strip() for name, _, version in parts}
        return {name: version for name, version in versions.items() if name != NO_PACKAGE} if versions else None

    @property
    def is_constrained(self) -> bool:
        named = (self.python, self.cuda, self.driver, self.pin, self.severity, self.has, self.enough)
        return any(named)

    def asking(self, **changes: object) -> str:
        """The query string of this question with `changes`; what is left open is left out."""
        request = {**vars(self), **changes}
        named = {"from": request.pop("start"), **request, "is_whole": ""}
        parameters = {name: value for name, value in named.items() if value}
        return f"?{urlencode(parameters, doseq=True)}" if parameters else ""


def with_uses(text: str, request: UpgradeRequest, knowledge: Knowledge) -> UpgradeRequest:
    """The request with what is named in one line besides: components, packages, and issues by any of their names or by
    words of their titles. Raises BadField.
    """
    issues = knowledge.known.issues
    components = {_key(issue.component): issue.component for issue in issues.values()}
    packages = {_key(name): name for name in _known_packages(knowledge)}
    named: dict[str, list[str]] = {
        name: [*getattr(request, name)] for name in ("component", "package", "has", "issues")
    }
    for words in filter(None, map(str.strip, _BETWEEN_USES.split(text))):
        key = _key(words.partition("==")[0])
        if key in components:
            named["component"].append(components[key])
        elif package := packages.get(key):
            named["has"].append(f"{package}=={words.partition('==')[2]}".removesuffix("=="))
            named["package"] += [package] if any(issue.requires.package == package for issue in issues.values()) else []
        else:
            named["issues"] += _issues_named(words, knowledge)
    of_components, of_packages, has, of_issues = (tuple(dict.fromkeys(values)) for values in named.values())
    return replace(request, component=of_components, package=of_packages, has=has, issues=of_issues)


_BETWEEN_USES = re.compile(r"[,;\n]|\s\+\s")
_MOST_BY_WORDS = 10


def _key(text: str) -> str:
    """`flex_attention` is FlexAttention, `torch_xla` torch-xla."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _issues_named(words: str, knowledge: Knowledge) -> list[str]:
    issues = knowledge.known.issues
    with suppress(UnknownIssue):
        return [issue.id for issue in find_issues([words], issues)]
    found = [issue.id for issue in issues.values() if speaks_of(issue, words)]
    if not found:
        names = {issue.component for issue in issues.values()} | _known_packages(knowledge)
        raise BadField("uses", f'"{words[:80]}" is no component, package or issue here', nearest(words, names))
    if len(found) > _MOST_BY_WORDS:
        raise BadField("uses", f'"{words[:80]}" is in the titles of {len(found)} issues; write more of one', found[:3])
    return found


class UntestedStart(BadField, NotTested):
    """The environment that one is on was understood, and nothing here is measured of it."""


def read_upgrade(request: UpgradeRequest, knowledge: Knowledge, times: Recorded) -> UpgradeQuestion:
    """Raises BadField, which names the part that cannot be understood."""
    start, assumed = _start(request, knowledge)
    watched, policy, notes = _watched(request, knowledge)
    named = named_by(policy.watch, watched, knowledge.known.names)
    concerned, left_out = _concerned(watched, named, request)
    constraints = _constraints(request, knowledge, policy.hardware)
    of_wheel = (knowledge.known.against(start, class_, constraints.driver) for class_ in constraints.hardware)
    pairs = {name: (version,) for name, version in constraints.packages.items() if version}
    refused = refused_pairs(start.build_id.version, pairs, start.python, wheels_of(knowledge.known))
    against = tuple(Message("where_you_are", said=sentence) for sentence in (*of_wheel, *refused) if sentence)
    gpus = [constraints.names.get(class_, class_) for class_ in constraints.hardware if parse_capability(class_)]
    return UpgradeQuestion(
        start=start,
        watched=concerned,
        constraints=constraints,
        enough=ENOUGH if request.enough is None else request.enough / 100,
        durations=times.durations,
        environment_s=ENVIRONMENT_S if times.environment_s is None else times.environment_s,
        notes=(*against, *several_gpus(gpus), *map(quoted, notes), *left_out, *assumed),
    )


def start_of(
    name: str, content: str, python: str, knowledge: Knowledge, groups: Sequence[str] = (), platform: str = ""
) -> ResolvedBuild:
    """The build that an environment is (`pip freeze`, a lock file, a pyproject.toml). Raises BadField.

    `python` is the one that the upgrade must be for, and where the file leaves it open also that of the environment.
    One may set out from what nobody measured.
    """
    names, builds, table = knowledge.known.build_names, knowledge.known.builds, wheels_of(knowledge.known)
    with about("platform"):
        platforms = parse_platform(platform)
    with about("environment"):
        try:
            return stated_build(
                content, names, builds, table, name=name, python=python, groups=groups, platforms=platforms
            )
        except OtherPython:
            return stated_build(content, names, builds, table, name=name, groups=groups, platforms=platforms)


def start_name(resolved: ResolvedBuild) -> str:
    """The build of an environment as `start` names it: a Python that the environment leaves open stays open."""
    build = resolved.build or ""
    return build.removeprefix("torch-") if len(resolved.pythons) > 1 else build


def gpus_of(resolved: ResolvedBuild) -> tuple[str, ...]:
    """The GPUs of an environment that may be asked about, by name."""
    return tuple(gpu for gpu in resolved.gpus if parse_capability(class_named(gpu, ())))


def _start(request: UpgradeRequest, knowledge: Knowledge) -> tuple[Build, tuple[Message, ...]]:
    builds, table = knowledge.known.builds, wheels_of(knowledge.known)
    written = request.start.strip()
    if not written:
        raise BadField("from", "say which build you are on: its id, or the version of torch")
    with about("platform"):
        platforms = {**platform_of_gpus(request.hardware), **parse_platform(request.platform)}
    if other := why_not_tested(platforms):
        raise UntestedStart("from", english(other))
    try:
        is_named = request.python or any(pin.strip().casefold().startswith("python") for pin in request.pin)
        start = _with_python((find_build if is_named else find_build_or_wheel)(written, builds), request.python, builds)
    except UnknownBuild as error:
        raise BadField("from", error.problem, error.nearest) from None
    known = read_build_name(written).python or start.python if request.python else ""
    remarks = resolve_build(written, knowledge.known.build_names, builds, table, python=known).notes
    assumed = (*remarks, *([] if platforms else [TAKEN]))
    return start, ((Message("assumed", said=clauses(assumed)),) if assumed else ())


def _with_python(start: Build, python: str, builds: Mapping[str, Build]) -> Build:
    """Find the build that differs in Python alone and has the one asked for; else `start`. Evidence of one Python is
    compared.
    """
    if not python:
        return start
    same = start.build_id.apart_from_python
    alike = (build for build in builds.values() if build.build_id.apart_from_python == same and build.python == python)
    return next(alike, start)


def _watched(request: UpgradeRequest, knowledge: Knowledge) -> tuple[tuple[Issue, ...], Policy, tuple[str, ...]]:
    """The issues, the policy that watches them with its lists filled in, and notes."""
    issues = knowledge.known.issues
    with about("severity"):
        named = Watch(
            request.issues, request.component, request.package, read_severity(request.severity), request.watch
        )
    if named.is_empty or any(map(is_all, request.issues)):
        return tuple(issues[id_] for id_ in sorted(issues) if not issues[id_].is_smoke), Policy(watch=named), ()
    with about("watch"):
        policy = filled(Policy(watch=named), knowledge.lists)
    with about(next(name for name in WATCHED if getattr(request, name))):
        watched, notes = watched_issues(policy.watch, issues, knowledge.known.names)
    if not watched:
        raise BadField("watch", "what is watched names no issue of this catalogue")
    return watched, policy, notes


def relevant_packages(packages: Mapping[str, str], knowledge: Knowledge) -> tuple[str, ...]:
    """Select the packages of an environment that some issue concerns, or that are made for one torch: what `has` may
    name.
    """
    relevant = _known_packages(knowledge)
    return has_of({name: packages[name] for name in packages if name in relevant})


def _known_packages(knowledge: Knowledge) -> set[str]:
    concerned = {issue.requires.package for issue in knowledge.known.issues.values()} - {""}
    claimed = {companion.package for build in knowledge.known.builds.values() for companion in build.companions}
    return concerned | claimed | {*wheels_of(knowledge.known).packages}


def has_of(packages: Mapping[str, str]) -> tuple[str, ...]:
    """Packages as `has` names them."""
    return tuple(f"{name}=={packages[name]}" if packages[name] else name for name in sorted(packages)) or (NO_PACKAGE,)


def _concerned(
    watched: Sequence[Issue], named: Collection[str], request: UpgradeRequest
) -> tuple[tuple[Issue, ...], tuple[Message, ...]]:
    """The issues that concern the environment, and a note on those that do not."""
    packages = request.packages
    concerned = tuple(issue for issue in watched if concerns(issue, packages, named=issue.id in named))
    others = Counter(issue.requires.package for issue in watched if issue not in concerned)
    if not others:
        return concerned, ()
    counts = tuple(f"{package} ({n})" for package, n in sorted(others.items()))
    if not concerned:
        where = ", ".join(counts)
        raise BadField("watch", f"what is watched concerns packages that are not known to be there: {where}")
    if packages is None:
        why = "packages_not_known"
    elif request.is_whole:
        why = "packages_lacking"
    else:
        why = "packages_not_asked_for"
    return concerned, (Message("not_watched", said=Message(why), packages=counts),)


def _constraints(request: UpgradeRequest, knowledge: Knowledge, classes: Sequence[str]) -> Constraints:
    """The classes of watch lists count where none are named; of those that nobody measured only GPUs that somebody
    names can: the wheels' lists say something of them.
    """
    measured = knowledge.known.hardware
    names = {
        class_named(name, measured): gpu.name if (gpu := hardware_named(name)) else name for name in request.hardware
    }
    gpus = [name for name in names if parse_capability(name)]
    with about("python"):
        python = read_python(request.python.strip())
    with about("cuda"):
        cuda = read_cuda(request.cuda.strip())
    with about("driver"):
        driver = read_driver(request.driver.strip())
    with about("pin"):
        pins = tuple(read_pin(text) for text in request.pin)
    with about("hardware"):
        hardware = measured_classes(
            list(names) or [class_ for class_ in classes if class_ in measured], [*measured, *gpus]
        )
    return Constraints(
        python,
        driver,
        hardware,
        (*cuda, *pins),
        names,
        dict(sorted((request.packages or {}).items())),
        wheels_of(knowledge.known),
    )
