"""The table of what people write, held against the catalogue and the results that come with a release."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from knowngood.ask.search.service import SearchIndex, make_search_index, search
from knowngood.domain.issue import Signature, SignatureKind
from knowngood.domain.verdicts.known import Known
from knowngood.store.knowledge.shipped import read_shipped
from tests.make import make_issue

TABLE = tomllib.loads((Path(__file__).parent / "notations.toml").read_text(encoding="utf-8"))
TYPING_ERRORS = TABLE.pop("typing_errors")
NOTATIONS = [case for cases in TABLE.values() for case in cases]


@pytest.fixture(scope="module")
def known() -> Known:
    return read_shipped().knowledge.known


@pytest.fixture(scope="module")
def index(known: Known) -> SearchIndex:
    return make_search_index(known.issues)


def first(text: str, known: Known, index: SearchIndex) -> tuple[str, str]:
    found = search(text, known, index)
    return (found.hits[0].kind.value, found.hits[0].name) if found.hits else ("nothing", "")


def test_the_table_is_as_long_as_was_asked_for() -> None:
    assert len(NOTATIONS) >= 120
    assert len({text for text, _, _ in NOTATIONS}) == len(NOTATIONS)
    assert len(TYPING_ERRORS) >= 30


@pytest.mark.parametrize(("text", "kind", "name"), NOTATIONS)
def test_the_first_answer_is_the_one_expected(
    text: str, kind: str, name: str, known: Known, index: SearchIndex
) -> None:
    assert first(text, known, index) == (kind, name)


def test_a_signature_that_is_too_slow_for_a_line_is_told_and_others_are_found(known: Known) -> None:
    slow = make_issue("toy-slow", signature=Signature(SignatureKind.MESSAGE, r"(a|a)+$"))
    quick = make_issue("toy-quick", signature=Signature(SignatureKind.MESSAGE, "it says: a{9}"))
    issues = {one.id: one for one in (slow, quick)}
    found = search(f"it says: {'a' * 200} c", replace(known, issues=issues), make_search_index(issues))
    assert str(found.note) == "These signatures took too long to look for: toy-slow."
    assert [hit.name for hit in found.hits if hit.told] == ["toy-quick"]
    assert not found.is_sure


def test_nine_of_ten_typing_errors_find_what_was_meant(known: Known, index: SearchIndex) -> None:
    missed = {text: found for text, *meant in TYPING_ERRORS if (found := first(text, known, index)) != tuple(meant)}
    assert len(missed) <= len(TYPING_ERRORS) // 10, missed
