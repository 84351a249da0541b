"""The answer to a pasted failure, as JSON."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from knowngood.ask.explain.matcher import (
    Explanation,
    Match,
    PastedLine,
    Strength,
    advise,
    is_elsewhere,
    measured_workarounds,
    told_first,
)
from knowngood.ask.explain.next_step import next_step
from knowngood.ask.text_index import Likeness
from knowngood.domain.issue import Issue, SignatureKind
from knowngood.domain.verdicts.history import FAILING
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Assurance, Cell, Verdict, WorkaroundVerdict
from knowngood.environments.log_cleaning import VersionMention
from knowngood.web.json_body import Body, CellUrl, EvidenceUrl, IssueUrl, read_from
from knowngood.web.urls import issue_address

METHOD = (
    "matches: the issue's own signature, searched in the paste. nearest and silent: BM25 (k1 = 1.2, b = 0.75) over "
    "title, summary, signature, claims, workarounds and recorded failures; score is that over the most that the words "
    "looked for can come to, between 0 and 1"
)


class PlaceBody(Body):
    """A cell in short; `inferred_from` names what it is inferred from, empty where it was measured."""

    build: str
    hardware: str
    verdict: Verdict
    reason: str
    signature_line: Annotated[
        str, BeforeValidator(lambda line, info: line if info.data["verdict"] in FAILING else "")
    ] = read_from("line")
    assurance: Assurance
    inferred_from: Annotated[str, BeforeValidator(lambda basis: ground_of(basis) if basis else "")] = read_from("basis")
    runs: int
    url: CellUrl = read_from("key")
    evidence_url: EvidenceUrl = read_from("evidence")


class TriedWorkaroundBody(Body):
    """A workaround with what was measured of it on the cell of `cures_on`, those that work first; `unverified` where
    there is none.
    """

    id: str
    title: str
    verdict: WorkaroundVerdict
    note: str
    trade_off: str
    body: str


class MatchBody(Body):
    """`sure`: the signature is this issue's own, or the traceback is, or the text names what the issue is about.
    `possible`: its words are anybody's too, or what is stated rules it out; workarounds stand with `sure` alone.

    `here` is the cell of the build in question (null: nobody measured it); `cures_on` the one whose workarounds stand
    here: that same one where the issue was seen on it, else the newest on which it was. `report_url` is the thread
    upstream, `caveat` the issue's own, `to_do` what to do next.
    """

    issue: str
    title: str
    component: str
    silent: bool
    strength: Strength
    why: str
    line: str
    around: list[PastedLine]
    url: str
    report_url: str | None
    caveat: str = ""
    history: dict[str, str]
    seen: list[PlaceBody]
    here: PlaceBody | None
    cures_on: PlaceBody | None
    workarounds: list[TriedWorkaroundBody]
    to_do: str


class NearBody(Body):
    """`score` is between 0 and 1; `words` are those it shares with the paste, the most telling first."""

    issue: str
    title: str
    score: float
    words: list[str]
    url: str
    report_url: str | None


class ExplanationBody(Body):
    """`known` says whether a match is sure. `build` is the tested one that was named or read from the paste.

    `asked` is the environment in words, `note` why it is no tested build, or what was assumed. `wheel` says of each GPU
    of the text that the wheel holds no code for it, or that nobody knows, and on Windows that torch brings no Triton.
    `silent` lists issues that raise nothing, where the words speak of wrong numbers. `untried` are issues whose
    signature took too long to look for; `left_out` counts characters of the middle of a long paste that were not read.
    """

    known: bool
    versions: list[VersionMention]
    build: str | None
    asked: str
    note: str
    wheel: list[str]
    matches: list[MatchBody]
    nearest: list[NearBody]
    silent: list[NearBody]
    untried: list[str]
    lines: int
    left_out: int
    method: str = METHOD


class SignatureLineBody(Body):
    """`pattern` is a regular expression; empty where the failure itself is the signature."""

    issue: str = read_from("id")
    title: str
    kind: SignatureKind = read_from("signature", "kind")
    pattern: str = read_from("signature", "pattern")
    silent: bool
    url: IssueUrl = read_from("id")


class SignaturesBody(Body):
    signatures: list[SignatureLineBody]


def explanation_body(found: Explanation, issues: Mapping[str, Issue], known: Known) -> ExplanationBody:
    """`issues` are those that the paste was held against."""
    resolved = found.resolved
    return ExplanationBody(
        known=found.is_known,
        versions=list(found.versions),
        build=resolved.build,
        asked=resolved.asked,
        note=resolved.remark,
        wheel=list(told_first(found, known)),
        matches=[_match(one, found, known) for one in found.matches],
        nearest=[near_body(one, issues) for one in found.nearest],
        silent=[near_body(one, issues) for one in found.silent],
        untried=list(found.untried),
        lines=found.lines,
        left_out=found.left_out,
    )


def _match(match: Match, found: Explanation, known: Known) -> MatchBody:
    issue, build = match.issue, found.resolved.build or ""
    match = advise(match, build, known)
    return MatchBody(
        issue=issue.id,
        title=issue.title,
        component=issue.component,
        silent=issue.silent,
        strength=match.strength,
        why=match.why,
        line=match.line,
        around=list(match.around),
        url=issue_address(issue.id),
        report_url=issue.report.url if issue.report else None,
        caveat=issue.caveat,
        history=dict(match.histories),
        seen=[PlaceBody.of(cell) for cell in match.seen],
        here=PlaceBody.of(match.own) if match.own else None,
        cures_on=PlaceBody.of(match.shown) if match.shown else None,
        workarounds=_workarounds(issue, match.shown) if match.strength is Strength.SURE else [],
        to_do=str(next_step(match, build, known, elsewhere=is_elsewhere(found))),
    )


def _workarounds(issue: Issue, cell: Cell | None) -> list[TriedWorkaroundBody]:
    return [
        TriedWorkaroundBody(
            id=id_,
            title=(one := issue.workaround(id_)).title,
            verdict=finding.verdict,
            note=finding.note,
            trade_off=one.trade_off,
            body=one.body,
        )
        for id_, finding in measured_workarounds(issue, cell)
    ]


def near_body(near: Likeness, issues: Mapping[str, Issue]) -> NearBody:
    issue = issues[near.name]
    return NearBody(
        issue=near.name,
        title=issue.title,
        score=round(near.score, 3),
        words=list(near.words[:10]),
        url=issue_address(near.name),
        report_url=issue.report.url if issue.report else None,
    )
