"""The matrix as CSV: what is read back is what was written, and no spreadsheet computes any of it."""

import csv
import json
from io import StringIO

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.verdict import Cell, VariantFinding, Verdict
from knowngood.share.exports.csv import COLUMNS, table
from knowngood.share.exports.extract import Extract
from tests.make import make_issue
from tests.share.exports.given import HOSTILE, V27, V27_PY312, cell, every_verdict, extract, hostile, inferred

COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def written(given: Extract) -> str:
    return b"".join(table(given)).decode()


def read(text: str) -> list[dict[str, str]]:
    """As any reader would, and with the apostrophe taken away again."""
    rows = csv.DictReader(StringIO(text, newline=""), strict=True)
    return [{name: value.removeprefix("'") for name, value in row.items()} for row in rows]


def back(row: dict[str, str]) -> tuple[str, str, str, str, str, str, str, dict[str, int], dict[str, str]]:
    pairs = ([one.rpartition("=") for one in row[name].split(";") if one] for name in ("attempts", "workarounds"))
    attempts, workarounds = ({name: value for name, _, value in found} for found in pairs)
    counted = {name: int(value) for name, value in attempts.items()}
    names = ("issue", "build", "hardware", "verdict", "reason", "signature_line", "control")
    issue, build, hardware, verdict, reason, line, control = (row[name] for name in names)
    return issue, build, hardware, verdict, reason, line, control, counted, workarounds


def as_told(one: Cell) -> tuple[str, str, str, str, str, str, str, dict[str, int], dict[str, str]]:
    workarounds = {id_: finding.verdict.value for id_, finding in one.workarounds.items()}
    control = one.control.value if one.control else ""
    place = (one.issue, one.build, one.hardware, one.verdict.value)
    return (*place, english(one.reason), one.line, control, dict(one.attempts), workarounds)


def test_reading_it_back_gives_the_same_cells() -> None:
    given = every_verdict()
    rows = read(written(given))
    assert [back(row) for row in rows] == [as_told(one) for one in given.cells]
    assert [row["stale"] for row in rows] == [json.dumps(given.is_stale(one)) for one in given.cells]
    assert [row["evidence_url"] for row in rows] == [given.evidence_address(one) for one in given.cells]


def test_how_a_cell_is_known_stands_behind_all_older_columns() -> None:
    once = cell(Verdict.AFFECTED, variants=(VariantFinding("default", Verdict.AFFECTED, quoted(""), 1, 1),))
    rows = read(written(extract(once, inferred(Verdict.NOT_AFFECTED), cell(Verdict.NOT_RUN), builds=(V27, V27_PY312))))
    assert COLUMNS[-5:] == ("workarounds", "assurance", "runs", "inferred_from", "sign")
    assert [[row[name] for name in COLUMNS[-4:]] for row in rows] == [
        ["measured", "1", "", "fails"],
        ["inferred", "0", V27.id, "passes"],
        ["not_known", "0", "", "notrun"],
    ]


@given_any(st.text(), st.text())
def test_any_text_comes_back_but_for_control_characters(reason: str, line: str) -> None:
    replaced = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127], "\ufffd")
    (row,) = read(written(extract(cell(Verdict.AFFECTED, reason=reason, line=line))))
    assert row["reason"] == reason.translate(replaced)
    assert row["signature_line"] == line.translate(replaced)


@given_any(st.text())
def test_no_field_begins_as_a_formula_does(text: str) -> None:
    told = written(extract(cell(Verdict.AFFECTED, reason=text), issues=(make_issue(title=text),)))
    for row in csv.reader(StringIO(told, newline=""), strict=True):
        assert not any(field.startswith(COMPUTED) or field.lstrip().startswith(COMPUTED) for field in row)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\uff1d1", "'=1", "'", "-"]
)
def test_what_a_spreadsheet_would_compute_gets_an_apostrophe_that_comes_off_again(text: str) -> None:
    told = written(extract(cell(Verdict.AFFECTED, reason=text)))
    (row,) = csv.DictReader(StringIO(told, newline=""))
    assert row["reason"] == f"'{text}"
    assert read(told)[0]["reason"] == text


def test_a_plain_text_stays_as_it_is() -> None:
    (row,) = csv.DictReader(StringIO(written(extract(cell(Verdict.AFFECTED, reason="1 of 1, it's = so"))), newline=""))
    assert row["reason"] == "1 of 1, it's = so"


def test_lines_end_and_quotes_stand_as_rfc_4180_has_it() -> None:
    raw = b"".join(table(extract(cell(Verdict.AFFECTED, reason='say "so", twice'))))
    assert raw.startswith(",".join(COLUMNS).encode() + b"\r\n")
    assert raw.endswith(b"\r\n")
    assert b'"say ""so"", twice"' in raw
    assert raw.count(b"\n") == raw.count(b"\r\n") == 2


def test_hostile_texts_stay_in_their_field() -> None:
    (row,) = read(written(hostile()))
    assert list(row) == list(COLUMNS)
    assert row["title"] == HOSTILE.translate({0: "\ufffd", 7: "\ufffd", 27: "\ufffd"})


def test_a_large_matrix_comes_in_pieces() -> None:
    pieces = list(table(extract(*[cell(Verdict.NOT_RUN)] * 1201)))
    assert len(pieces) == 4
    assert len(read(b"".join(pieces).decode())) == 1201


def test_an_empty_selection_is_a_head() -> None:
    assert written(extract()) == ",".join(COLUMNS) + "\r\n"


def test_a_build_is_told_by_its_parts() -> None:
    (row,) = read(written(extract(cell(Verdict.NOT_RUN))))
    assert (row["torch"], row["cuda"], row["triton"], row["python"]) == (V27.torch, "12.4", "3.7.0", "3.11")
