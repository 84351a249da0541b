"""The matrix as a KCIDB report (schema 5.3), the words of KernelCI: checkouts, builds, tests, issues, incidents.

A checkout is a torch release, a build one of ours, a test one cell's baseline or one workaround on it. An incident says
that an issue was present in a test, or that it was not; a failure without the issue's signature has none.

| our verdict | status | incident |
| --- | --- | --- |
| affected, flaky | FAIL | present |
| not_affected | PASS | absent |
| different_failure | FAIL | none: which issue it is, nobody has said |
| inconclusive | MISS where only the environment failed, else ERROR | none |
| not_applicable, no_build | SKIP | none |
| not_run, and whatever is inferred | no test: KCIDB reads one without status as scheduled | none |

| workaround | status |
| --- | --- |
| effective | PASS |
| partial, ineffective, harmful | FAIL |
| unnecessary | DONE: it ran, and there was nothing to cure |
| unverified | no test |
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import orjson

from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.issue import Culprit, Issue
from knowngood.app.domain.verdicts.outcome import Outcome
from knowngood.app.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.app.features.exports.extract import Extract, utc

ORIGIN = "knowngood"
_TREE = "pytorch"
_REPOSITORY = "https://github.com/pytorch/pytorch.git"
_EXCERPT_SIGNS = 16_384
_FULL_HASH = re.compile(r"[0-9a-f]{40}\Z")
_NOT_A_PATH = re.compile(r"[^a-zA-Z0-9_-]+")


class Status(StrEnum):
    """From the most severe to the lightest, as KCIDB sums them up."""

    FAIL = "FAIL"
    ERROR = "ERROR"
    MISS = "MISS"
    PASS = "PASS"  # noqa: S105 - a status, no secret
    DONE = "DONE"
    SKIP = "SKIP"


_WORKAROUNDS = {
    WorkaroundVerdict.EFFECTIVE: Status.PASS,
    WorkaroundVerdict.PARTIAL: Status.FAIL,
    WorkaroundVerdict.INEFFECTIVE: Status.FAIL,
    WorkaroundVerdict.HARMFUL: Status.FAIL,
    WorkaroundVerdict.UNNECESSARY: Status.DONE,
}

# In KCIDB's words: the tested code is torch with what it brings along, a tool is what it is used with.
_CULPRITS: Mapping[Culprit, dict[str, bool]] = {
    Culprit.TORCH: {"code": True, "tool": False, "harness": False},
    Culprit.TRITON: {"code": True, "tool": False, "harness": False},
    Culprit.CUDA: {"code": True, "tool": False, "harness": False},
    Culprit.THIRD_PARTY: {"code": False, "tool": True, "harness": False},
}

_PRESENT = {Verdict.AFFECTED: True, Verdict.FLAKY: True, Verdict.NOT_AFFECTED: False}


def status_of(cell: Cell) -> Status | None:
    """None for a cell that nobody measured, an inferred one too: a test that KCIDB knows has been run."""
    if cell.verdict is Verdict.INCONCLUSIVE and cell.basis is None and _never_ran(cell):
        return Status.MISS
    return None if cell.basis else _STATUSES[cell.verdict]


_STATUSES: Mapping[Verdict, Status | None] = {
    Verdict.AFFECTED: Status.FAIL,
    Verdict.FLAKY: Status.FAIL,
    Verdict.DIFFERENT_FAILURE: Status.FAIL,
    Verdict.NOT_AFFECTED: Status.PASS,
    Verdict.INCONCLUSIVE: Status.ERROR,
    Verdict.NOT_APPLICABLE: Status.SKIP,
    Verdict.NO_BUILD: Status.SKIP,
    Verdict.NOT_RUN: None,
}


def _never_ran(cell: Cell) -> bool:
    """Whether the environment alone failed: neither the baseline nor a failing control came to say anything."""
    outcomes = {Outcome(word) for word in cell.attempts}
    if cell.control not in {None, Outcome.PASS}:
        outcomes.add(cell.control)
    return outcomes <= {Outcome.ENV_ERROR, Outcome.CANCELLED}


def kcidb_document(extract: Extract) -> bytes:
    """One whole report. Issues carry the time of the export as their version: of two reports the newer one counts."""
    cells = [(cell, status) for cell in extract.cells if (status := status_of(cell)) is not None]
    used = {cell.build for cell, _ in cells}
    seen = {cell.issue for cell, _ in cells}
    builds = [build for id_, build in extract.builds.items() if id_ in used]
    ran = {cell.build for cell, status in cells if status in {Status.PASS, Status.FAIL}}
    version = int(extract.now.timestamp())
    return orjson.dumps(
        {
            "version": {"major": 5, "minor": 3},
            "checkouts": list(_checkouts(builds)),
            "builds": [_build(build, came_to_be=build.id in ran) for build in builds],
            "tests": [test for cell, status in cells for test in _tests(extract, cell, status)],
            "issues": [_issue(extract, issue, version) for issue in extract.issues if issue.id in seen],
            "incidents": [_incident(cell, version) for cell, _ in cells if cell.verdict in _PRESENT],
        }
    )


def _checkouts(builds: Iterable[Build]) -> Iterator[dict[str, Any]]:
    """One per release of torch: its CUDA variants come from the same sources."""
    releases: dict[str, list[Build]] = {}
    for build in builds:
        releases.setdefault(build.build_id.release, []).append(build)
    for release, of in releases.items():
        hashes = {build.git for build in of if _FULL_HASH.match(build.git)}
        yield {
            "id": _checkout_id(of[0]),
            "origin": ORIGIN,
            "tree_name": _TREE,
            "git_repository_url": _REPOSITORY,
            "comment": f"torch {release}",
            "valid": True,
            **({"git_commit_hash": hashes.pop()} if len(hashes) == 1 else {}),
            **({} if of[0].build_id.version.is_devrelease else {"git_commit_name": f"v{release}"}),
        }


def _checkout_id(build: Build) -> str:
    return f"{ORIGIN}:torch-{build.build_id.release}"


def _build(build: Build, *, came_to_be: bool) -> dict[str, Any]:
    known = {"cuda": build.cuda, "triton": build.triton, "python": build.python, "origin": build.origin}
    told = {name: value for name, value in known.items() if value is not None}
    return {
        "id": _build_id(build.id),
        "checkout_id": _checkout_id(build),
        "origin": ORIGIN,
        "architecture": "x86_64",
        "config_name": ", ".join(f"{name} {value}" for name, value in told.items()),
        **({"comment": _text(build.note)} if build.note else {}),
        **({"status": Status.PASS} if came_to_be else {}),
        "misc": {"torch": build.torch, "requirement": build.requirement, "as_of": str(build.as_of), **told},
    }


def _build_id(build: str) -> str:
    return f"{ORIGIN}:{build}"


def _test_id(cell: Cell) -> str:
    return f"{ORIGIN}:{cell.issue}/{cell.build}/{cell.hardware}"


def _tests(extract: Extract, cell: Cell, status: Status) -> Iterator[dict[str, Any]]:
    address = extract.evidence_address(cell)
    yield {
        **_test(cell, _test_id(cell), cell.issue, status),
        "comment": _text(cell.reason),
        **({"log_url": f"{address}/log.txt"} if address else {}),
        **({"log_excerpt": _text(cell.line)[:_EXCERPT_SIGNS]} if cell.line else {}),
        "misc": {
            "issue": cell.issue,
            "verdict": cell.verdict,
            "stale": extract.is_stale(cell),
            "attempts": dict(cell.attempts),
            **({"measured_at": utc(cell.measured_at)} if cell.measured_at else {}),
        },
    }
    for id_, finding in cell.workarounds.items():
        if finding.verdict in _WORKAROUNDS:
            yield _workaround(cell, id_, finding)


def _workaround(cell: Cell, id_: str, finding: WorkaroundFinding) -> dict[str, Any]:
    return {
        **_test(cell, f"{_test_id(cell)}/{id_}", f"{cell.issue}/{id_}", _WORKAROUNDS[finding.verdict]),
        **({"comment": _text(finding.note)} if finding.note else {}),
        "misc": {"issue": cell.issue, "workaround": id_, "verdict": finding.verdict},
    }


def _test(cell: Cell, id_: str, path: str, status: Status) -> dict[str, Any]:
    """`path` has slashes between its parts; KCIDB wants dots, and no other characters than these in a part."""
    parts = [_NOT_A_PATH.sub("_", part) for part in path.split("/")]
    return {
        "id": id_,
        "origin": ORIGIN,
        "build_id": _build_id(cell.build),
        "path": ".".join([ORIGIN, *parts]),
        "status": status,
        "environment": {"comment": cell.hardware, "misc": {"hardware": cell.hardware}},
    }


def _issue_id(issue: str) -> str:
    return f"{ORIGIN}:{issue}"


def _issue(extract: Extract, issue: Issue, version: int) -> dict[str, Any]:
    culprit = _CULPRITS.get(issue.culprit)
    return {
        "id": _issue_id(issue.id),
        "version": version,
        "origin": ORIGIN,
        "categories": [_NOT_A_PATH.sub("_", issue.component)],
        "report_subject": _text(issue.title),
        **({"report_url": issue.report.url} if issue.report else {}),
        **({"culprit": culprit} if culprit else {}),
        "comment": _text(issue.title),
        "misc": {
            "culprit": issue.culprit,
            "severity": issue.severity,
            "silent": issue.silent,
            "revision": issue.revision,
            **({"url": extract.links.issue(issue.id)} if extract.links else {}),
        },
    }


def _incident(cell: Cell, version: int) -> dict[str, Any]:
    return {
        "id": _test_id(cell),
        "origin": ORIGIN,
        "issue_id": _issue_id(cell.issue),
        "issue_version": version,
        "test_id": _test_id(cell),
        "present": _PRESENT[cell.verdict],
    }


def _text(text: str) -> str:
    """KCIDB's texts hold anything but NUL."""
    return text.replace("\0", "\ufffd")
