"""An issue: one upstream bug with its links, claims, signature, repro and workarounds.

And what follows from it purely: what an environment for it must hold, whether it applies to a build, and what a result
of it is bound to.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property, lru_cache

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.hardware_classes import isa_classes, isa_of, whole_class
from knowngood.domain.message import Message


class Culprit(StrEnum):
    TORCH = "torch"
    TRITON = "triton"
    CUDA = "cuda"
    THIRD_PARTY = "third_party"
    USAGE = "usage"


class Severity(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Fidelity(StrEnum):
    """How near the repro is to the report: the reporter's own code, cut down, or made anew from its description."""

    ORIGINAL = "original"
    REDUCED = "reduced"
    RE_CREATED = "re-created"


class Status(StrEnum):
    BUG = "bug"
    LIMITATION = "limitation"
    USAGE = "usage"


class LinkKind(StrEnum):
    REPORT = "report"
    FIX = "fix"
    EVIDENCE = "evidence"


class Device(StrEnum):
    """Where an issue can be: ANY where its path is the same on every device (no kernels of a compiler's)."""

    CPU = "cpu"
    CUDA = "cuda"
    ANY = "any"


class SignatureKind(StrEnum):
    MESSAGE = "message"
    WRONG_RESULT = "wrong_result"
    SIGNAL = "signal"
    HANG = "hang"
    BIGGER = "bigger"
    MORE_WORK = "more_work"
    SLOWER = "slower"


class Comparison(StrEnum):
    """How a value that an arm reports is held against the control's."""

    EQUAL = "equal"
    CLOSE = "close"
    AT_MOST = "at_most"
    IGNORE = "ignore"


CONTROL = "control"
BASELINE = "baseline"

COSTS = "costs."
"""Followed by the id of an arm: the one whose attempts time it, a workaround beside the baseline. No verdict rests on
them, except those of issues that are `slower`: there each arm is timed beside the control.
"""

PROBES = ("dynamo_graph", "inductor_cpp", "inductor_triton", "triton_launch", "xla_compile", "export", "eager")
OPERATOR_PROBE = "operator:"  # followed by ns::name


@dataclass(frozen=True)
class Link:
    """`state` is what upstream says of the thread, `open` or `closed`, on the day `seen` (empty: not looked up)."""

    kind: LinkKind
    url: str
    title: str
    state: str = ""
    seen: date | None = None

    @property
    def name(self) -> str:
        """`pytorch/pytorch#151290` of a thread on GitHub; for anything else its title."""
        match = _THREAD.match(self.url)
        return f"{match[1]}#{match[2]}" if match else self.title


@dataclass(frozen=True)
class Look:
    """A state of a thread as upstream's API said it on the day `seen`. By its `etag` it can be asked whether that still
    holds.
    """

    state: str
    seen: date
    etag: str = ""


_THREAD = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/([0-9]+)")


@dataclass(frozen=True)
class Claim:
    """A statement of upstream's or a blog's, shown beside what was measured, never counted.

    `says` is `affected`, `fixed`, `cure`, `cause` or empty. `about` are the torch releases that it speaks of (a PEP 440
    specifier), and `workaround` the arm that it calls a cure: with either it can be held against measurements.
    """

    text: str
    source: str
    dated: date | None = None
    url: str = ""
    says: str = ""
    about: str = ""
    workaround: str = ""


@dataclass(frozen=True)
class Signature:
    """How a failure of this issue looks. Of `bigger` and `more_work` it is that an amount lies above the control's, of
    `slower` that its time does.

    `pattern` is a regular expression searched in what was raised (its message and those of its causes, without source
    that a traceback quotes) and, with `log`, in what the process wrote; for `signal` and `hang` in that alone, where
    the stacks are. `signals` are names (`SIGABRT`) for kind `signal`. For `wrong_result` the arm raises a class named
    WrongResult; `pattern`, where not empty, must then match its text too.
    """

    kind: SignatureKind
    pattern: str = ""
    signals: tuple[str, ...] = ()
    log: bool = False

    @property
    def searches_log(self) -> bool:
        return self.log or self.kind in {SignatureKind.SIGNAL, SignatureKind.HANG}


@dataclass(frozen=True)
class Suspect:
    """The functions that must run compiled for a pass of the baseline to count.

    `names` are the functions as Dynamo sees their frames, kernels, or exported classes and functions; one of them is
    enough, because releases differ in where they begin (none: any will do), by one of `backends` (none: by any, which
    proves nothing of what only some of them get to). `raises` says that where the issue is not,
    the call raises, as it should: then a compilation or call that failed is a run too.
    """

    names: tuple[str, ...] = ()
    raises: bool = False
    backends: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """A size or setting that arms are repeated with. `params` become keyword arguments of the arm's function.

    `arms` names the arms it applies to (empty: all of them), and `why_not` says why it leaves workarounds out.
    `is_reported` marks the variant that is the report's own.
    """

    id: str
    title: str
    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    arms: tuple[str, ...] = ()
    why_not: str = ""
    is_reported: bool = False


@dataclass(frozen=True)
class Left:
    """Something that a row's text says is wrong too. `variant` is the one that measures it; where none does, `why_not`
    says why. `applies_to` is a torch specifier (empty: all releases).
    """

    what: str
    variant: str = ""
    why_not: str = ""
    applies_to: str = ""
    what_zh: str = ""


@dataclass(frozen=True)
class Arm:
    """One thing the repro runs. `code` is the digest of the arm's code with all it uses in the script, comments and
    docstrings included; `env` are variables set before the interpreter starts; `applies_to` is a torch specifier.
    """

    id: str
    exercises: tuple[str, ...]
    code: str
    env: Mapping[str, str] = field(default_factory=dict)
    applies_to: str = ""


@dataclass(frozen=True)
class Observed:
    """How one value that arms report is compared. `close` lets each number of the text lie `atol + rtol * |control's|`
    from the control's; `at_most` is for an amount, which may lie above the control's by the greater of the two. `arms`
    names those that the rule is for (empty: all of them), `reason` says why it is so.
    """

    compare: Comparison = Comparison.CLOSE
    rtol: float = 1e-3
    atol: float = 1e-6
    reason: str = ""
    arms: tuple[str, ...] = ()


AS_A_RULE = Observed()
"""How a value is compared of which the issue says nothing."""

BOUNDS: Mapping[SignatureKind, Observed] = {
    SignatureKind.BIGGER: Observed(Comparison.AT_MOST, rtol=0.03, atol=32 << 20),
    SignatureKind.MORE_WORK: Observed(Comparison.AT_MOST, rtol=0, atol=0),
    SignatureKind.SLOWER: Observed(Comparison.AT_MOST, rtol=0.05, atol=0),
}
"""The kinds of issues that amounts tell, and how an amount is compared where the issue does not say how: bytes that an
allocator gave out, and counts, are equal from run to run (H200 and CPU, torch 2.11.0, 2026-11). Seconds are not: they
are compared by themselves, in many pairs of processes.
"""


@dataclass(frozen=True)
class Workaround:
    """A way around the issue for users of an affected build; `body` holds the snippet to paste. Its arm has the same
    id. `is_decoy` marks what only looks like one: listed so that nobody loses time with it.
    """

    id: str
    title: str
    body: str
    trade_off: str
    title_zh: str = ""
    body_zh: str = ""
    trade_off_zh: str = ""
    is_decoy: bool = False


@dataclass(frozen=True)
class Requires:
    """Where the issue can exist at all. `torch` is a specifier; `python` likewise; `compute_capability` a minimum.

    `package` names the one that it concerns (canonical, PEP 503): whoever does not have it has not the issue. On
    `vector_isas` its result depends: it is measured with each of them.
    """

    device: Device = Device.CPU
    torch: str = ""
    python: str = ""
    compute_capability: tuple[int, int] | None = None
    package: str = ""
    vector_isas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Packages:
    """Extra packages. `requirements` may hold `{torch}` (release of torch, without local part).

    `per_release` maps `2.7` to what replaces `requirements` there; `no_deps` names packages installed without their
    dependencies; `mutates` says that the repro edits site-packages and needs copies instead of hard links.
    """

    requirements: tuple[str, ...] = ()
    per_release: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    no_deps: tuple[str, ...] = ()
    mutates: bool = False

    def __hash__(self) -> int:
        """Of what can be hashed: packages are keys of a cache that is asked for every attempt that is judged."""
        return hash((self.requirements, self.no_deps, self.mutates))


NOT_REVIEWED = "a team's own repro, which Known Good has not reviewed"


@dataclass(frozen=True)
class Issue:
    """`reported_on` is the day of the first report (None: of a catalogue older than the field). `is_of_team` where it
    stands in a team's own catalogue: its results are worth what its authors are. `warnings` are those of `check` that
    such a row does not waive; a row of ours has none.
    """

    id: str
    title: str
    summary: str
    links: tuple[Link, ...]
    component: str
    culprit: Culprit
    severity: Severity
    silent: bool
    fidelity: Fidelity
    status: Status
    claims: tuple[Claim, ...]
    requires: Requires
    packages: Packages
    signature: Signature
    variants: tuple[Variant, ...]
    arms: tuple[Arm, ...]
    workarounds: tuple[Workaround, ...]
    timeout_s: float
    script: str
    title_zh: str = ""
    summary_zh: str = ""
    default: bool = False
    is_smoke: bool = False
    reported_on: date | None = None
    observed: Mapping[str, Observed] = field(default_factory=dict)
    suspect: Suspect = Suspect()
    left: tuple[Left, ...] = ()
    # Where it was read, and what `check` warns of in it, are nothing that it says: no part of its revision.
    is_of_team: bool = field(default=False, repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_timed(self) -> bool:
        """Whether time alone tells it: no run measures that, but `knowngood costs`."""
        return self.signature.kind is SignatureKind.SLOWER

    @property
    def timed_beside(self) -> str:
        """The arm beside which others are timed."""
        return CONTROL if self.is_timed else BASELINE

    @property
    def slower_from(self) -> float:
        """The part of the control's time that it may take longer."""
        return next(rule.rtol for rule in self.observed.values() if rule.compare is Comparison.AT_MOST)

    @property
    def agreeing(self) -> int:
        """Runs that have to agree: where amounts tell it, a single one may be an accident of its host. A time rests on
        tens of processes.
        """
        return 2 if self.signature.kind in BOUNDS and not self.is_timed else 1

    def looked_at(self, looks: Mapping[str, Look]) -> "Issue":
        """With the newest state of each thread, by its address: the row's own word stays where it is no older."""
        links = (
            replace(link, state=look.state, seen=look.seen)
            if (look := looks.get(link.url)) and look.seen > (link.seen or date.min)
            else link
            for link in self.links
        )
        return replace(self, links=tuple(links))

    def arm(self, id_: str) -> Arm:
        return next(arm for arm in self.arms if arm.id == id_)

    def workaround(self, id_: str) -> Workaround:
        return next(workaround for workaround in self.workarounds if workaround.id == id_)

    def not_covered(self, build: Build) -> tuple[str, ...]:
        """All that is still wrong on a build and that no variant measures: a pass does not cover it."""
        uncovered = (remark for remark in self.left if not remark.variant)
        return tuple(remark.what for remark in uncovered if not remark.applies_to or _holds(remark.applies_to, build))

    def comparison(self, key: str, arm: str) -> Observed:
        """How the value that `arm` reports as `key` is compared with the control's."""
        rule = self.observed.get(key, AS_A_RULE)
        return rule if not rule.arms or arm in rule.arms else AS_A_RULE

    @property
    def caveat(self) -> str:
        """A warning to show beside every verdict of it; empty for an issue that comes with this project."""
        return NOT_REVIEWED if self.is_of_team else ""

    @property
    def report(self) -> Link | None:
        """The thread upstream that it is known by."""
        return next((link for link in self.links if link.kind is LinkKind.REPORT), None)

    @property
    def revision(self) -> str:
        """The digest of everything an issue says; a new one is a new row of the issue's revisions."""
        return digest(repr(self))


@dataclass(frozen=True)
class EnvironmentRequest:
    """The environment to provision for (build, issue): all that decides what gets installed, and nothing else."""

    build: str
    requirements: tuple[str, ...]
    no_deps: tuple[str, ...]
    mutates: bool

    @cached_property
    def digest(self) -> str:
        return digest(json.dumps([self.build, self.requirements, self.no_deps, self.mutates]))

    @property
    def packages(self) -> tuple[str, ...]:
        """Everything required beside torch; empty where the build alone is enough."""
        return (*self.requirements, *self.no_deps)

    @property
    def name(self) -> str:
        """For people: `torch-2.6.0+cu124 with einops==0.8.1`."""
        return f"{self.build} with {', '.join(self.packages)}" if self.packages else self.build

    @cached_property
    def pins(self) -> dict[str, str]:
        """Extra packages with an exact version, by name: these are checked after import."""
        split = (requirement.partition("==") for requirement in self.packages)
        return {name.strip(): version.strip() for name, sep, version in split if sep}

    def is_met_by(self, installed: Mapping[str, str]) -> bool:
        """Whether all packages are among those installed, by name, in exactly their versions."""
        found = {canonicalize_name(name): version for name, version in installed.items()}
        here = [found.get(canonicalize_name(name)) == version for name, version in self.pins.items()]
        return all(here) and len(here) == len(self.packages)


def digest(text: str) -> str:
    """The first 32 hexadecimal digits of SHA-256 over UTF-8: short enough to read, long enough never to collide."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def environment_request(issue: Issue, build: Build) -> EnvironmentRequest:
    """The environment that `issue` needs with `build`. Issues that ask for nothing share the bare environment of the
    build.
    """
    return _requested(issue.packages, build)


@lru_cache(maxsize=65_536)
def _requested(packages: Packages, build: Build) -> EnvironmentRequest:
    requirements = packages.per_release.get(build.minor, packages.requirements)
    release = build.build_id.version.public if requirements else ""
    filled = tuple(sorted(text.replace("{torch}", release) for text in requirements))
    bare = {text.partition("==")[0].strip() for text in packages.no_deps}
    return EnvironmentRequest(
        build=build.id,
        requirements=tuple(text for text in filled if text.partition("==")[0].strip() not in bare),
        no_deps=tuple(text for text in filled if text.partition("==")[0].strip() in bare),
        mutates=packages.mutates,
    )


def variants_of(issue: Issue, arm: str) -> tuple[Variant, ...]:
    """The variants an arm is run with; an issue without variants has the one called `default`."""
    if not issue.variants:
        return (Variant(id="default", title=""),)
    return tuple(variant for variant in issue.variants if not variant.arms or arm in variant.arms)


def binding(arm: Arm, variant: Variant, request: EnvironmentRequest) -> str:
    """The digest of what ran: a result counts for as long as this is unchanged.

    Words, claims, signature and proof rules are left out on purpose: they are applied when verdicts are derived, so
    that a mended regular expression or summary costs no run.
    """
    ran = {
        "code": arm.code,
        "env": dict(sorted(arm.env.items())),
        "variant": variant.id,
        "params": dict(sorted(variant.params.items())),
        "environment": request.digest,
    }
    return digest(json.dumps(ran, sort_keys=True))


def cost_binding(issue: Issue, timed: str, variant: Variant, request: EnvironmentRequest) -> str:
    """The same of an arm's time, which counts for as long as neither side of it is edited."""
    return digest(" ".join(binding(issue.arm(arm), variant, request) for arm in (issue.timed_beside, timed)))


def inapplicable(issue: Issue, build: Build, hardware: str) -> Message | None:
    """Say why the issue cannot exist on (build, hardware class); None where it can."""
    return unmet(issue.requires, build, hardware)


@lru_cache(maxsize=65536)  # a page of the matrix asks for every cell, and specifiers are slow to compare
def unmet(requires: Requires, build: Build, hardware: str) -> Message | None:
    """Say which need (build, hardware class) does not meet; None where all are met."""
    if requires.torch and not _holds(requires.torch, build):
        return Message("other_torch", versions=requires.torch, found=build.torch)
    if not is_for_python(requires, build.python):
        return Message("other_python", versions=requires.python, found=build.python)
    if isa_of(hardware) and not _has_isa_classes(requires, build, isa_of(hardware)):
        return Message("no_isa_of_its_own", name=isa_of(hardware), hardware=whole_class(hardware))
    if requires.device is Device.CUDA:
        return _no_cuda(requires, build, hardware)
    if requires.device is Device.CPU and not hardware.startswith("cpu-"):
        return CPU_PATH
    if not hardware.startswith("cpu-") and build.cuda is None:
        return Message("needs_cuda")
    return None


CPU_PATH = Message("cpu_path")


def default_device(issue: Issue, hardware: str) -> str:
    """The device that torch makes tensors on in every arm of an issue, which names none itself (empty: torch's own).

    It is decided by where an arm runs, and no part of its binding: what was measured on the CPU stays what it is.
    """
    return "cuda" if issue.requires.device is Device.ANY and hardware.startswith("cuda-") else ""


def is_asked_on(issue: Issue, build: Build, hardware: str) -> bool:
    """Whether a cell is measured by itself. A row that depends on the vector ISA is measured with each of its ISAs, and
    its cell of the whole CPU class follows from these.
    """
    if any(_has_isa_classes(issue.requires, build, isa_of(class_)) for class_ in isa_classes(hardware)):
        return False
    return inapplicable(issue, build, hardware) is None


_FIRST_WITH_ISA = Version("2.6")  # before it nothing outside of a process chooses the ISA that Inductor takes


def _has_isa_classes(requires: Requires, build: Build, isa: str) -> bool:
    return isa in requires.vector_isas and build.build_id.version >= _FIRST_WITH_ISA


def is_for_python(requires: Requires, python: str) -> bool:
    """Whether an issue with these needs can exist on this Python (`3.12`); where that is open it may."""
    return not requires.python or not python or Version(python) in SpecifierSet(requires.python)


def _no_cuda(requires: Requires, build: Build, hardware: str) -> Message | None:
    if build.cuda is None:
        return Message("needs_cuda")
    capability = parse_capability(hardware)
    if capability is None:
        return Message("needs_gpu", hardware=hardware)
    if requires.compute_capability is not None and capability < requires.compute_capability:
        major, minor = requires.compute_capability
        return Message("needs_capability", version=f"{major}.{minor}", hardware=hardware)
    return None


def parse_capability(hardware: str) -> tuple[int, int] | None:
    """(9, 0) for `cuda-sm_90`, (10, 0) for `cuda-sm_100`; None for a CPU class."""
    if not hardware.startswith("cuda-sm_"):
        return None
    digits = hardware.removeprefix("cuda-sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits[:-1]), int(digits[-1])


def arm_inapplicable(arm: Arm, build: Build) -> Message | None:
    """Say why a workaround cannot be tried on this build; None where it can."""
    if arm.applies_to and not _holds(arm.applies_to, build):
        return Message("for_other_torch", versions=arm.applies_to)
    return None


def _holds(specifier: str, build: Build) -> bool:
    return is_within(specifier, build.build_id.version)


@lru_cache(maxsize=16_384)  # builds share versions, and issues specifiers
def is_within(specifier: str, version: Version | str) -> bool:
    """Whether a version, pre-releases too, is one of a PEP 440 specifier's."""
    return _read(specifier).contains(version, prereleases=True)


@lru_cache(maxsize=1024)
def _read(specifier: str) -> SpecifierSet:
    return SpecifierSet(specifier)
