"""A comparison of two builds as JSON: what `/api/v1/compare` answers and `knowngood compare --format json` prints."""

from collections.abc import Mapping
from datetime import datetime

from knowngood.domain.verdicts.verdict import Assurance
from knowngood.matrix.evidence.cell_schemas import CellBody, cell_body
from knowngood.matrix.issues.build_schemas import BuildBody
from knowngood.move.compare.comparison import PAIRING_WORDS, Comparison, sentence
from knowngood.move.pair import Group, IssuePair, Transition, WorkaroundTurn
from knowngood.web.json_body import Body, TitledIssueBody
from knowngood.web.urls import compare_address, issue_address


class PackagesBody(Body):
    """Packages that the issue installs beside torch on either build."""

    before: list[str]
    after: list[str]


class PairBody(TitledIssueBody):
    """One issue on both builds. `group` says what a reader does with it; each pair is in one. `runs` is how many
    attempts each side rests on at least, and `assurance` that of the weaker side.
    """

    transition: Transition
    group: Group
    assurance: Assurance
    runs: int
    before: CellBody
    after: CellBody
    workarounds: dict[str, WorkaroundTurn]
    packages: PackagesBody
    url: str


class CompareBody(Body):
    """`sentence` is the answer. `pairs` stand in the order of `groups`, the most severe of each first; `counts` name
    every transition.

    `blind` says that no issue answers on both builds, so that nothing was compared.
    """

    sentence: str
    a: BuildBody
    b: BuildBody
    hardware: str
    counts: dict[Transition, int]
    groups: dict[Group, int]
    blind: bool
    pairing: str
    pairs: list[PairBody]
    url: str


def compare_body(compared: Comparison, now: datetime, said: Mapping[str, str] | None = None) -> CompareBody:
    """`said` is how the question narrowed it, for the address of the page that shows the same."""
    asked = {**(said or {}), "hardware": compared.hardware}
    return CompareBody(
        sentence=sentence(compared),
        a=BuildBody.of(compared.before),
        b=BuildBody.of(compared.after),
        hardware=compared.hardware,
        counts=dict(compared.counts),
        groups={group: len(compared.of(group)) for group in Group},
        blind=compared.is_blind,
        pairing=PAIRING_WORDS,
        pairs=[pair_body(pair, now) for pair in compared.pairs],
        url=compare_address(compared.before.id, compared.after.id, **asked),
    )


def pair_body(pair: IssuePair, now: datetime) -> PairBody:
    before, after = pair.packages
    first, second = pair.builds
    return PairBody(
        issue=pair.issue.id,
        title=pair.issue.title,
        component=pair.issue.component,
        severity=pair.issue.severity,
        silent=pair.issue.silent,
        transition=pair.transition,
        group=pair.group,
        assurance=pair.assurance,
        runs=pair.runs,
        before=cell_body(pair.before, first, now),
        after=cell_body(pair.after, second, now),
        workarounds=dict(pair.turns),
        packages=PackagesBody(before=list(before), after=list(after)),
        url=issue_address(pair.issue.id, build=second.id, hardware=pair.after.hardware),
    )
