"""The matrix as CSV (RFC 4180): one line per cell, UTF-8 without a mark, safe to open in a spreadsheet.

A text that a spreadsheet would compute gets an apostrophe before it, and so does one that begins with an apostrophe:
take one away from whatever begins with it, and the text is as it was.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from io import StringIO

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue
from knowngood.domain.message import english
from knowngood.domain.verdicts.inference import ground_of
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import Cell, is_silent
from knowngood.share.exports.extract import Extract, utc

COLUMNS = (
    "issue",
    "title",
    "component",
    "severity",
    "silent",
    "build",
    "torch",
    "cuda",
    "triton",
    "python",
    "hardware",
    "verdict",
    "stale",
    "measured_at",
    "reason",
    "control",
    "attempts",
    "signature_line",
    "evidence_url",
    "workarounds",
    "assurance",
    "runs",
    "inferred_from",
    "sign",
)
"""New ones come last, so that whoever reads by place reads on."""

_LINES_AT_ONCE = 500

# = + - @ as Excel, LibreOffice and Sheets take them, and their full-width twins, behind whatever blanks.
_COMPUTED = re.compile("\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def table(extract: Extract) -> Iterator[bytes]:
    """The head, then every cell in the order of the extract, in pieces of some hundred lines."""
    yield _lines([COLUMNS])
    issues = {issue.id: issue for issue in extract.issues}
    rows: list[tuple[str, ...]] = []
    for cell in extract.cells:
        values = _row(extract, issues[cell.issue], extract.builds[cell.build], cell)
        rows.append(tuple(_safe(values[name]) for name in COLUMNS))
        if len(rows) == _LINES_AT_ONCE:
            yield _lines(rows)
            rows = []
    if rows:
        yield _lines(rows)


def _lines(rows: "list[tuple[str, ...]]") -> bytes:
    out = StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()


def _row(extract: Extract, issue: Issue, build: Build, cell: Cell) -> dict[str, str]:
    return {
        "issue": issue.id,
        "title": issue.title,
        "component": issue.component,
        "severity": issue.severity,
        "silent": _bool(is_silent(issue, cell)),
        "build": build.id,
        "torch": build.torch,
        "cuda": build.cuda or "",
        "triton": build.triton or "",
        "python": build.python,
        "hardware": cell.hardware,
        "verdict": cell.verdict,
        "stale": _bool(extract.is_stale(cell)),
        "measured_at": utc(cell.measured_at) if cell.measured_at else "",
        "reason": english(cell.reason),
        "control": cell.control or "",
        "attempts": _pairs(cell.attempts),
        "signature_line": cell.line,
        "evidence_url": extract.evidence_address(cell),
        "workarounds": _pairs({id_: finding.verdict for id_, finding in cell.workarounds.items()}),
        "assurance": cell.assurance,
        "runs": str(cell.runs),
        "inferred_from": ground_of(cell.basis) if cell.basis else "",
        "sign": status_of(cell),
    }


def _bool(value: bool) -> str:  # noqa: FBT001 - what is written is the flag
    return "true" if value else "false"


def _pairs(values: Mapping[str, object]) -> str:
    """`match=2;pass=1`: names hold neither character."""
    return ";".join(f"{name}={value}" for name, value in values.items())


def _safe(text: str) -> str:
    """Control characters, which RFC 4180 has no place for, become replacement characters."""
    text = _UNPRINTABLE.sub("\ufffd", text)
    return f"'{text}" if _COMPUTED.match(text) else text
