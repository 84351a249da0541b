"""The answers to `issue` and `env`. What happens on an environment, and what helps there, are the gate's reasons: there
is no second rule for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import ALL, SEVERITY_RANK
from knowngood.domain.verdicts.history import History
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import telling_build, telling_class
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.environments.resolve import ResolvedBuild
from knowngood.environments.wheels.refusals import torch_bounds
from knowngood.environments.wheels.table import wheels_of
from knowngood.gate.decision import Reason, Ruling, decide
from knowngood.gate.question import FAILURES
from knowngood.gate.request import GateRequest, read_question
from knowngood.store.knowledge.model import Knowledge


@dataclass(frozen=True)
class IssueAnswer:
    """An issue, its history by measured class, and what it does on one environment: `ruling` has the reasons. Where
    nobody named an environment `is_example`: the build is then the newest that is affected.
    """

    issue: Issue
    histories: Mapping[str, History]
    ruling: Ruling
    is_example: bool


@dataclass(frozen=True)
class EnvironmentAnswer:
    """An environment, and the issues on it, worst first: `ruling` has the reasons. `packages` are those of it that some
    issue concerns, with their versions; `holding` those that hold torch back, with what they ask for (`==2.7.1`).
    """

    resolved: ResolvedBuild
    packages: Mapping[str, str]
    holding: Mapping[str, str]
    ruling: Ruling

    def of(self, *verdicts: Verdict) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.ruling.reasons if reason.verdict in verdicts)


def answer_issue(issue: Issue, wanted: GateRequest | None, knowledge: Knowledge, now: datetime) -> IssueAnswer:
    """Answer for the environment that is `wanted`, else for the newest affected build. Raises BadField."""
    known = knowledge.known
    classes = dict.fromkeys(cell.hardware for cell in known.stored(issue.id))
    histories = {class_: known.history(issue.id, class_) for class_ in sorted(classes)}
    request = wanted or GateRequest(build=_example(issue, known))
    ruling = decide(read_question(replace(request, issues=(issue.id,)), knowledge, now))
    return IssueAnswer(issue, histories, ruling, is_example=wanted is None)


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
    return EnvironmentAnswer(
        question.resolved,
        {name: packages[name] for name in sorted(concerned)},
        torch_bounds(packages, question.build.python if question.build else "", wheels_of(known)),
        replace(ruling, reasons=tuple(sorted(reasons, key=_worst_first))),
    )


def _worst_first(reason: Reason) -> tuple[bool, int, bool, bool, str, str]:
    """Failures before the rest; among them the most severe first, then what is silent, then what nothing helps."""
    return (
        reason.verdict not in FAILURES,
        -SEVERITY_RANK[reason.severity],
        not reason.silent,
        has_workaround(reason),
        reason.issue,
        reason.hardware,
    )


def has_workaround(reason: Reason) -> bool:
    return any(workaround.verdict == WorkaroundVerdict.EFFECTIVE for workaround in reason.workarounds)
