"""A ruling as SARIF 2.1.0, which code scanning shows as alerts on the environment's file.

A result for each reason that does something: block is an error, insufficient and warn are warnings. What passes is
left out, because viewers show a result of kind `pass` as an alert too. An alert is the same from run to run, so its
fingerprint holds the issue, the hardware class and the file, and not the build: an upgrade that does not help must not
close one alert and open another. The platform takes 25,000 results of a run and shows 5,000; a catalogue has fewer.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from knowngood.gate.decision import Decision, Reason, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import (
    DECISIONS,
    active_reasons,
    all_lines,
    best_workaround,
    fix_in_words,
    is_explained,
    named,
    one_line,
    other_workarounds,
)
from knowngood.gate.renderers.json import address
from knowngood.gate.renderers.markdown import escaped, quoted

PLACEHOLDER = "knowngood/environment"
"""The file that results point to when the environment comes from no file of the repository. Never changed: alerts hang
on it.
"""

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
NO_ANSWER = "knowngood-no-answer"
_LEVELS = {Effect.BLOCK: "error", Effect.INSUFFICIENT: "warning", Effect.WARN: "warning", Effect.PASS: "none"}
# `](` in a plain message would make a link of what stands before it.
_LINK = re.compile(r"\](?=\()")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~:/?#@!$&'*+,;=%-]*)?\Z")
_Json = dict[str, Any]


def answer_sarif(ruling: Ruling, base: str = "", *, where: str = "") -> str:
    """A SARIF log with one run. `where` is the environment's file, relative to the repository."""
    reasons = active_reasons(ruling)
    rules = _rules(reasons, base)
    places = {issue: place for place, issue in enumerate(rules)}
    results = [_result(reason, places[reason.issue], base, where, ruling.line) for reason in reasons]
    if not is_explained(ruling, reasons):
        rules[NO_ANSWER] = _no_answer_rule()
        results.append(_no_answer(ruling, len(rules) - 1, where))
    informed = {"informationUri": base} if _ADDRESS.match(base) else {}
    run = {
        "tool": {"driver": {"name": "Known Good", "rules": list(rules.values()), **informed}},
        "automationDetails": {"id": "knowngood/"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCodeDescription": DECISIONS[ruling.decision],
                **({"endTimeUtc": _utc(ruling.decided_at)} if ruling.decided_at else {}),
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": _facts(ruling),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2) + "\n"


def _rules(reasons: Sequence[Reason], base: str) -> dict[str, _Json]:
    """One rule for each issue, in the order of its worst reason."""
    worst = {reason.issue: reason for reason in reversed(reasons)}
    return {issue: _rule(worst[issue], base) for issue in dict.fromkeys(reason.issue for reason in reasons)}


def _rule(reason: Reason, base: str) -> _Json:
    page = address(base, f"/issues/{quote(one_line(reason.issue), safe='')}")
    return {
        "id": one_line(reason.issue),
        "shortDescription": {"text": _message(reason.title)},
        "fullDescription": {"text": _message(reason.title)},
        "help": {
            "text": "\n".join([_message(reason.title), *_help(reason, one_line, all_lines)]),
            "markdown": "\n\n".join(
                [f"Upstream: {escaped(reason.title)}", *_help(reason, escaped, lambda text: [quoted(text)])]
            ),
        },
        "defaultConfiguration": {"level": _LEVELS[reason.effect]},
        "properties": {
            "tags": [one_line(reason.component) or "torch"],
            "severity": reason.severity.value,
            "silent": reason.silent,
        },
        **({"helpUri": page} if _ADDRESS.match(page) else {}),
    }


def _help(reason: Reason, write: Callable[[str], str], write_snippet: Callable[[str], list[str]]) -> Iterator[str]:
    """Say which release to go to, and what helps. `write` and `write_snippet` make one form of a text: plain, or
    Markdown.
    """
    if fix_in_words(reason):
        yield f"Upgrade: {write(fix_in_words(reason))}."
    if workaround := best_workaround(reason):
        where = write(f"{named(reason.build)} on {named(reason.hardware)}")
        yield f"{where}: workaround {write(workaround.how)}, {write(workaround.title)}:"
        yield from write_snippet(workaround.snippet)
    if other_workarounds(reason):
        yield f"Workarounds, measured: {write(other_workarounds(reason))}."


def _result(reason: Reason, rule: int, base: str, where: str, line: int | None) -> _Json:
    evidence = address(base, reason.evidence_url or "")
    return {
        "ruleId": one_line(reason.issue),
        "ruleIndex": rule,
        "level": _LEVELS[reason.effect],
        "message": {"text": _message(reason.why)},
        "locations": [_location(where, line, reason.build, reason.hardware)],
        "partialFingerprints": _fingerprints(reason.issue, reason.hardware, where),
        "properties": {
            "effect": reason.effect.value,
            "verdict": reason.verdict.value,
            "build": one_line(reason.build),
            "hardware": one_line(reason.hardware),
            "stale": reason.stale,
        },
        **({"hostedViewerUri": evidence} if _ADDRESS.match(evidence) else {}),
        **({} if reason.is_new is None else {"baselineState": "new" if reason.is_new else "unchanged"}),
    }


def _location(where: str, line: int | None, build: str, hardware: str) -> _Json:
    path = one_line(where.replace("\\", "/")).removeprefix("./") or PLACEHOLDER
    artifact = {"uri": quote(path), **({} if path.startswith("/") else {"uriBaseId": "%SRCROOT%"})}
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line or 1}},
        "logicalLocations": [{"fullyQualifiedName": one_line(f"{build} on {hardware}"), "kind": "environment"}],
    }


def _fingerprints(issue: str, hardware: str, where: str) -> Mapping[str, str]:
    """Code scanning reads `primaryLocationLineHash` alone; the other key is for viewers that keep all."""
    seal = fingerprint(issue, hardware, where)
    return {"primaryLocationLineHash": f"{seal}:1", "knowngood/v1": seal}


def fingerprint(issue: str, hardware: str, where: str) -> str:
    """32 hexadecimal digits that stay the same from run to run, whatever the build is."""
    named = "\n".join(one_line(part) for part in (issue, hardware, where))
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _no_answer_rule() -> _Json:
    text = "Nothing that was measured says whether this environment may be used."
    return {
        "id": NO_ANSWER,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": "warning"},
    }


def _no_answer(ruling: Ruling, rule: int, where: str) -> _Json:
    return {
        "ruleId": NO_ANSWER,
        "ruleIndex": rule,
        "level": "error" if ruling.decision is Decision.BLOCK else "warning",
        "message": {"text": _message(" ".join((ruling.why, *ruling.notes)))},
        "locations": [
            _location(where, ruling.line, ruling.build or "not tested", ", ".join(ruling.hardware) or "any hardware")
        ],
        "partialFingerprints": _fingerprints(NO_ANSWER, "", where),
    }


def _facts(ruling: Ruling) -> _Json:
    return {
        "decision": ruling.decision.value,
        "why": one_line(ruling.why),
        "build": one_line(ruling.build) if ruling.build else None,
        "asked": one_line(ruling.asked),
        "nearest": [one_line(build) for build in ruling.nearest],
        "notes": [one_line(note) for note in ruling.notes],
        "counts": {effect.value: ruling.counts.get(effect, 0) for effect in Effect},
        "knownAt": _utc(ruling.known_at) if ruling.known_at else None,
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(text: str) -> str:
    return _LINK.sub("] ", one_line(text)) or "-"
