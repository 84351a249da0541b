"""Issues as OSV records: which exact torch versions fail.

The schema is https://ossf.github.io/osv-schema/. OSV was made for other facts, and three rules keep the difference
honest. They stand in every record under `database_specific.rules`, for whoever reads one file without us.

- The prefix of `id` is our own and not registered: the one deviation from OSV's schema.
- `versions` are exact: only what was measured and fails. `2.7.0+cu128 > 2.7.0` by PEP 440, so that a `last_affected:
  2.7.0` would call the wheel that people import not affected; we never write `last_affected`.
- A range is derived, and says so. It is given only where every version of the catalogue inside it was measured and
  fails, and where a measured pass ends it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue, LinkKind, inapplicable
from knowngood.domain.message import english
from knowngood.domain.verdicts.claims import doubts_about
from knowngood.domain.verdicts.history import FailingSpan
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import CONCLUSIVE, FAILING, Cell
from knowngood.share.exports.extract import Extract, utc

SCHEMA_VERSION = "1.6.7"
PREFIX = "KNOWNGOOD-"

RULES = {
    "id": "The prefix KNOWNGOOD is our own and not registered with OSV: the one deviation from its schema.",
    "versions": (
        "Exact versions that were measured and fail, as imported and, for wheels of the default index, as published "
        "there; listed where any Python they were measured with fails. Builds with a foreign Triton stand in "
        "database_specific.measured alone."
    ),
    "ranges": (
        "Derived, never measured as such. Given only where every version of the catalogue inside was measured on that "
        "hardware and fails, and a measured pass ends it. Pre-releases of the version that ends it count as inside. "
        "last_affected is never written: by PEP 440 2.7.0+cu128 comes after 2.7.0."
    ),
    "intervals": (
        "Between the two versions of an interval none was measured to pass or to fail; `unanswered` names those of the "
        "catalogue there (before: inside broke_in, after: inside fixed_in) and between the failures (within). `beside` "
        "is what upstream says against them."
    ),
    "absence": "A version that is not listed was not seen to fail. Only `measured` says whether it was tried.",
    "hardware": "affected has one entry per hardware class it was measured on; OSV readers join them.",
}

_REFERENCES = {LinkKind.REPORT: "REPORT", LinkKind.FIX: "FIX", LinkKind.EVIDENCE: "EVIDENCE"}


def osv_document(extract: Extract) -> bytes:
    """All records of an extract, in the shape in which OSV's own query answers: `{"vulns": [..]}`."""
    return orjson.dumps({"vulns": list(osv_records(extract))})


def osv_records(extract: Extract) -> Iterator[dict[str, Any]]:
    """One record per issue with a measured cell, in the order of the extract's issues."""
    measured = (cell for cell in extract.cells if cell.measured_at is not None and cell.basis is None)
    by_issue = grouped(measured, lambda cell: cell.issue)
    for issue in extract.issues:
        if issue.id in by_issue:
            yield _record(extract, issue, by_issue[issue.id])


def _record(extract: Extract, issue: Issue, measured: Sequence[Cell]) -> dict[str, Any]:
    classes = sorted({cell.hardware for cell in measured})
    affected = [_affected(extract, issue, class_, measured) for class_ in classes]
    ours = [{"type": "EVIDENCE", "url": extract.links.issue(issue.id)}] if extract.links else []
    return {
        "schema_version": SCHEMA_VERSION,
        "id": f"{PREFIX}{issue.id}",
        "modified": utc(max(cell.measured_at for cell in measured if cell.measured_at is not None)),
        "summary": issue.title,
        "details": issue.summary,
        "affected": [entry for entry in affected if entry is not None],
        "references": [*({"type": _REFERENCES[link.kind], "url": link.url} for link in issue.links), *ours],
        "database_specific": {
            "rules": RULES,
            "issue": issue.id,
            "component": issue.component,
            "culprit": issue.culprit,
            "severity": issue.severity,
            "silent": issue.silent,
            "status": issue.status,
            "workarounds": [
                {
                    "id": workaround.id,
                    "title": workaround.title,
                    "body": workaround.body,
                    "trade_off": workaround.trade_off,
                }
                for workaround in issue.workarounds
            ],
            "measured": [_measured(extract, cell) for cell in measured],
        },
    }


def _measured(extract: Extract, cell: Cell) -> dict[str, Any]:
    record = {
        "build": cell.build,
        "hardware": cell.hardware,
        "verdict": cell.verdict,
        "sign": status_of(cell),
        "stale": extract.is_stale(cell),
        "measured_at": utc(cell.measured_at) if cell.measured_at else None,
        "workarounds": {id_: finding.verdict for id_, finding in cell.workarounds.items()},
    }
    address = extract.evidence_address(cell)
    return {**record, "evidence": address} if address else record


def _affected(extract: Extract, issue: Issue, hardware: str, measured: Iterable[Cell]) -> dict[str, Any] | None:
    """The failing versions on one hardware class; None where nothing fails that OSV has a word for."""
    cells = {cell.build: cell for cell in measured if cell.hardware == hardware}
    failing = [
        extract.builds[id_]
        for id_, cell in cells.items()
        if cell.verdict in FAILING and not extract.builds[id_].is_mismatched
    ]
    if not failing:
        return None
    history = extract.known.history(issue.id, hardware)
    possible = [build for build in extract.builds.values() if inapplicable(issue, build, hardware) is None]
    known = {build.id: cell for build, cell in extract.known.measured(issue.id, hardware)}
    ranges = [
        {
            "type": "ECOSYSTEM",
            "events": [{"introduced": span.first_bad}, {"fixed": span.good_after}],
            "database_specific": {"derived": True, "rule": RULES["ranges"]},
        }
        for span in history.spans
        if _is_proven(span, possible, known)
    ]
    return {
        "package": {"ecosystem": "PyPI", "name": "torch", "purl": "pkg:pypi/torch"},
        "versions": _versions(failing),
        **({"ranges": ranges} if ranges else {}),
        "ecosystem_specific": {"hardware": hardware, "beside": list(issue.packages.requirements)},
        "database_specific": {
            "history": english(history.sentence),
            "beside": list(map(english, doubts_about(issue, history))),
            "intervals": [_interval(span) for span in history.spans],
        },
    }


def _interval(span: FailingSpan) -> dict[str, Any]:
    silent = {"before": span.before, "within": span.within, "after": span.after}
    named = {
        where: {release.name: release.answer for release in releases} for where, releases in silent.items() if releases
    }
    return {"broke_in": span.broke_in, "fixed_in": span.fixed_in, "unanswered": named}


def _versions(failing: Iterable[Build]) -> list[str]:
    versions = {build.torch for build in failing}
    versions |= {build.requirement for build in failing if build.origin == "default"}
    return sorted(versions, key=lambda text: (Version(text), text))


def _is_proven(span: FailingSpan, possible: Iterable[Build], cells: Mapping[str, Cell]) -> bool:
    """Whether nothing but measured failures lies inside. `possible` are the builds on which the issue can exist at all.

    A version answers with whatever Pythons it was measured with; one with a foreign Triton is no version of its own.
    """
    if span.good_after is None:
        return False
    first, end = Version(span.first_bad), Version(span.good_after)
    inside: dict[str, set[bool]] = {}
    for build in possible:
        if not build.is_mismatched and first <= build.build_id.version < end:
            answers = inside.setdefault(build.torch, set())
            if build.id in cells and cells[build.id].verdict in CONCLUSIVE:
                answers.add(cells[build.id].verdict in FAILING)
    return all(answers == {True} for answers in inside.values())
