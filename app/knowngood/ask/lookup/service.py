"""The answers to `issue` and `env`. What happens on an environment, and what helps there, are the gate's reasons: there
is no second rule for it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from packaging.version import Version

from knowngood.domain.builds.architectures import driver_objection, driver_runs
from knowngood.domain.builds.platforms import LINUX, PLATFORMS
from knowngood.domain.hardware_names import class_named
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import ALL, SEVERITY_RANK
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import NOTHING, Message, english
from knowngood.domain.verdicts.history import History
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import telling_build, telling_class
from knowngood.domain.verdicts.paired_time import TimedCost
from knowngood.domain.verdicts.verdict import EXCESSES, Verdict, WorkaroundVerdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.environments.resolve import ResolvedBuild
from knowngood.environments.wheels.answer import find_wheel
from knowngood.environments.wheels.refusals import is_made_for, newest_beside, torch_bounds
from knowngood.environments.wheels.table import PYTHONS, WheelTable, wheels_of
from knowngood.gate.decision import Reason, Ruling, decide
from knowngood.gate.question import BROKEN, FAILURES, UNKNOWN, GateQuestion
from knowngood.gate.request import GateRequest, read_question
from knowngood.store.knowledge.model import Knowledge


@dataclass(frozen=True)
class IssueAnswer:
    """An issue, its history by measured class, and what it does on one environment: `ruling` has the reasons. Where
    nobody named an environment `is_example`: the build is then the newest that is affected. `costs` are the times that
    its workarounds take, as far as they were measured.
    """

    issue: Issue
    histories: Mapping[str, History]
    ruling: Ruling
    is_example: bool
    costs: Mapping[str, TimedCost] = field(default_factory=dict)


@dataclass(frozen=True)
class WheelFact:
    """A fact of wheels about one part of an environment, such as `H100` or `xformers 0.0.29.post3`: whether it works
    with the others (null: nobody knows), and the command that mends it (empty: none is known).
    """

    name: str
    says: Message
    holds: bool | None
    fix: str = ""


@dataclass(frozen=True)
class EnvironmentAnswer:
    """An environment, and the issues on it, worst first: `ruling` has the reasons. `packages` are those of it that some
    issue concerns, with their versions; `holding` those that hold torch back, with what they ask for (`==2.7.1`).
    `on_cpu` counts the issues that fail on the CPU alone, where the question is about GPUs.
    `resolution` says which torch comes with all of them, where an index was asked.
    """

    resolved: ResolvedBuild
    packages: Mapping[str, str]
    holding: Mapping[str, str]
    ruling: Ruling
    facts: tuple[WheelFact, ...] = ()
    on_cpu: int = 0
    resolution: Message | None = None

    def of(self, *verdicts: Verdict) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.ruling.reasons if reason.verdict in verdicts)

    @cached_property
    def failing(self) -> tuple[Reason, ...]:
        """One reason for each issue that fails, of its worst class: silent ones first, then the severe, then what has a
        workaround.
        """
        worst = {reason.issue: reason for reason in reversed(self.of(*BROKEN))}
        return tuple(
            sorted(
                worst.values(),
                key=lambda one: (not one.silent, -SEVERITY_RANK[one.severity], not has_workaround(one), one.issue),
            )
        )

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Numbers of issues, each counted once. Of those that are `failing`: `silent` give wrong numbers without an
        error, and by what is known to help each is one of `works` (here), `untried` (here), `partial` and `unhelped`.
        `run` answers were run on the hardware that was named, the others are `from_cpu`. `on_cpu` more fail for code
        that is compiled for the CPU.
        """
        helped = Counter(map(help_of, self.failing))
        answers = {reason.issue: reason for reason in self.of(*FAILURES, Verdict.NOT_AFFECTED)}
        run = sum(all(one.hardware == reason.hardware for one in reason.grounds) for reason in answers.values())
        failing = {reason.issue for reason in self.failing}
        return {
            "failing": len(failing),
            "silent": sum(reason.silent for reason in self.failing),
            **{name: helped[label] for name, label in _HELPED.items()},
            **{verdict: len({reason.issue for reason in self.of(verdict)} - failing) for verdict in sorted(EXCESSES)},
            "passing": len({reason.issue for reason in self.of(Verdict.NOT_AFFECTED)} - failing),
            "not_known": len({reason.issue for reason in self.of(*UNKNOWN)} - failing),
            "run": run,
            "from_cpu": len(answers) - run,
            "on_cpu": self.on_cpu,
        }

    @property
    def document(self) -> dict[str, Any]:
        """Its JSON: the gate's document about all issues, without a decision, which would need a policy."""
        names = ("asked", "build", "nearest", "hardware", "notes", "refusals", "known_at", "reasons")
        return {
            **{name: getattr(self.ruling, name) for name in names},
            "pythons": self.resolved.pythons,
            "is_assumed": self.resolved.is_assumed,
            "packages": self.resolved.packages,
            "concerned": self.packages,
            "holding": self.holding,
            "resolution": english(self.resolution) or None,
            "facts": self.facts,
            "counts": self.counts,
        }


_HELPED = {
    "works": StatusLabel.WORKAROUND,
    "untried": StatusLabel.UNTRIED,
    "partial": StatusLabel.PARTIAL,
    "unhelped": StatusLabel.FAILS,
}


def help_of(reason: Reason) -> StatusLabel:
    """The help against a failure, as the status that it would have if it always failed."""
    verdicts = {workaround.verdict for workaround in reason.workarounds}
    holding = {
        StatusLabel.WORKAROUND: WorkaroundVerdict.EFFECTIVE in verdicts,
        StatusLabel.UNTRIED: reason.works_on or reason.sign is StatusLabel.UNTRIED,
        StatusLabel.PARTIAL: WorkaroundVerdict.PARTIAL in verdicts,
    }
    return next((label for label, holds in holding.items() if holds), StatusLabel.FAILS)


def answer_issue(issue: Issue, wanted: GateRequest | None, knowledge: Knowledge, now: datetime) -> IssueAnswer:
    """Answer for the environment that is `wanted`, else for the newest affected build. Raises BadField."""
    known = knowledge.known
    classes = dict.fromkeys(cell.hardware for cell in known.stored(issue.id))
    histories = {class_: known.history(issue.id, class_) for class_ in sorted(classes)}
    request = wanted or GateRequest(build=_example(issue, known))
    ruling = decide(read_question(replace(request, issues=(issue.id,)), knowledge, now))
    return IssueAnswer(issue, histories, ruling, wanted is None, known.costs.get(issue.id, {}))


def _example(issue: Issue, known: Known) -> str:
    cells = known.stored(issue.id)
    measured = tuple(dict.fromkeys(sorted(cell.hardware for cell in cells)))
    build = telling_build(known.builds, cells, telling_class(cells, measured))
    return build.id if build else ""


def answer_environment(request: GateRequest, knowledge: Knowledge, now: datetime) -> EnvironmentAnswer:
    """Answer for every issue except those that only show whether a compiler works. Raises BadField."""
    known = knowledge.known
    question = read_question(replace(request, issues=(ALL,)), knowledge, now)
    ruling = decide(question)
    reasons = (reason for reason in ruling.reasons if not known.issues[reason.issue].is_smoke)
    packages = question.resolved.packages
    concerned = {issue.requires.package for issue in known.issues.values()} & set(packages)
    python = question.build.python if question.build else question.resolved.python
    answer = EnvironmentAnswer(
        question.resolved,
        {name: packages[name] for name in sorted(concerned)},
        torch_bounds(packages, python, wheels_of(known)),
        replace(ruling, reasons=tuple(sorted(reasons, key=_worst_first))),
        tuple(_facts(question, python if python in PYTHONS else "", [*question.resolved.gpus, *request.hardware])),
    )
    return replace(answer, on_cpu=len(_failing_on_cpu(question) - {reason.issue for reason in answer.failing}))


def _failing_on_cpu(question: GateQuestion) -> set[str]:
    """The issues that fail on the CPU, where a question is about GPUs alone."""
    named, known = question.policy.hardware, question.known
    if not (question.build and named and CPU_CLASS in known.hardware) or CPU_CLASS in named:
        return set()
    ruling = decide(replace(question, policy=replace(question.policy, hardware=(CPU_CLASS,))))
    failing = {reason.issue for reason in ruling.reasons if reason.verdict in BROKEN}
    return {issue for issue in failing if not known.issues[issue].is_smoke}


def _facts(question: GateQuestion, python: str, gpus: Sequence[str]) -> Iterator[WheelFact]:
    """Facts that refuse first, then those that hold. `gpus` are the words for the hardware."""
    resolved, known, table = question.resolved, question.known, wheels_of(question.known)
    wheel = known.builds.get(resolved.build or "")
    if not (wheel or resolved.torch):
        return
    torch = wheel.build_id.version if wheel else Version(resolved.torch.partition("~")[0])
    for fact in resolved.refusals:
        name = str(fact.values.get("name", f"torch {torch.public}"))
        yield WheelFact(name, cast("Message", fact.values["said"]), holds=False, fix=_fix(name, torch, python, table))
    for class_ in (class_ for class_ in question.policy.hardware if class_.startswith("cuda-")):
        gpu = next((gpu for gpu in gpus if class_named(gpu, known.hardware) == class_), class_)
        serves = known.serves(wheel, class_) if wheel else None
        yield WheelFact(gpu, Message("has_code") if serves else known.against(wheel, class_) or NOTHING, holds=serves)
        if resolved.driver and wheel and serves is not False:
            objection = driver_objection(wheel, resolved.driver)
            runs = Message("driver_runs", found=wheel.cuda or "-")
            says = Message("this_wheel", said=objection) if objection else runs
            yield WheelFact(f"driver {resolved.driver}", says, holds=driver_runs(wheel, resolved.driver))
    platform = next(iter(resolved.platforms), LINUX)
    if platform != LINUX and platform in PLATFORMS:
        found = find_wheel("torch", torch.public, python, platform, table)
        yield from [WheelFact("wheel", found.why, holds=True)] if found.exists else []
    for package, version in resolved.packages.items():
        if platform == LINUX and is_made_for(package, version, torch, python, table):
            yield WheelFact(f"{package} {version}", Message("goes_with_torch", torch=str(torch)), holds=True)


def _fix(name: str, torch: Version, python: str, table: WheelTable) -> str:
    """The command that installs what goes with this torch; of torch itself the nearest that there is."""
    package, _, _ = name.partition(" ")
    if package == "torch":
        changes = find_wheel(package, torch.public, python, LINUX, table).changes
        return changes[0].command if changes else ""
    fitting = newest_beside(package, torch, python, table)
    return f"pip install {package}=={fitting}" if fitting else ""


def _worst_first(reason: Reason) -> tuple[bool, int, bool, bool, str, str]:
    """Failures before the rest; among them the most severe first, then what is silent, then what nothing helps."""
    return (
        reason.verdict not in BROKEN,
        -SEVERITY_RANK[reason.severity],
        not reason.silent,
        has_workaround(reason),
        reason.issue,
        reason.hardware,
    )


def has_workaround(reason: Reason) -> bool:
    return any(workaround.verdict == WorkaroundVerdict.EFFECTIVE for workaround in reason.workarounds)
