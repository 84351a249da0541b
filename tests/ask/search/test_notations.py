"""The table of what people write, held against the catalogue and the results that come with a release."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from knowngood.ask.lookup.text import query_of
from knowngood.ask.reading import HitKind
from knowngood.ask.search.service import SearchIndex, search
from knowngood.cli.choice import select
from knowngood.domain.issue import Signature, SignatureKind
from knowngood.domain.message import english
from knowngood.domain.verdicts.known import Known
from knowngood.query.cli import QueryOption
from knowngood.query.parser import parse
from knowngood.store.knowledge.snapshot import read_shipped
from tests.make import make_issue

TABLE = tomllib.loads((Path(__file__).parent / "notations.toml").read_text(encoding="utf-8"))
TYPING_ERRORS = TABLE.pop("typing_errors")
NOTATIONS = [case for cases in TABLE.values() for case in cases]
SENTENCES = tomllib.loads((Path(__file__).parent / "sentences.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def known() -> Known:
    return read_shipped().knowledge.known


@pytest.fixture(scope="module")
def index(known: Known) -> SearchIndex:
    return SearchIndex(known.issues)


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
    found = search(f"it says: {'a' * 200} c", replace(known, issues=issues), SearchIndex(issues))
    assert english(found.note) == "These signatures took too long to look for: toy-slow."
    assert [hit.name for hit in found.hits if hit.told] == ["toy-quick"]
    assert not found.sure


def test_nine_of_ten_typing_errors_find_what_was_meant(known: Known, index: SearchIndex) -> None:
    missed = {text: found for text, *meant in TYPING_ERRORS if (found := first(text, known, index)) != tuple(meant)}
    assert len(missed) <= len(TYPING_ERRORS) // 10, missed


@pytest.mark.parametrize(("text", "address"), [case for cases in SENTENCES.values() for case in cases])
def test_a_sentence_leads_to_the_page_that_it_asks_for(
    text: str, address: str, known: Known, index: SearchIndex
) -> None:
    found = search(text, known, index)
    first = found.hits[0].url if found.hits else ""
    assert first.startswith(address) if address.endswith("=") else first == address


def test_what_is_guessed_of_a_word_leaves_no_issue_out(known: Known, index: SearchIndex) -> None:
    guessed = index.words.find(["safe", "softmax"])
    assert {*index.words.find(["softmax"]).names} <= {*guessed.names}
    assert (guessed.known, guessed.guesses) == (("softmax",), {"safe": "same"})


@pytest.mark.parametrize("text", [text for text, kind, _ in NOTATIONS if kind == "query"])
def test_a_part_of_the_matrix_that_is_offered_first_has_rows(text: str, known: Known, index: SearchIndex) -> None:
    found = search(text, known, index)
    query = QueryOption("", parse(query_of(found.hits[0])))
    classes = (found.hardware,) if found.hardware else known.hardware
    assert select(known, query, tuple(known.issues.values()), (), classes, known.as_of).issues


def test_an_issue_is_found_beside_a_driver_that_says_nothing_of_it(known: Known, index: SearchIndex) -> None:
    found = search("151290 driver 550", known, index)
    assert [hit.name for hit in found.hits] == ["pytorch-151290"]
    assert english(found.note) == "No answer here depends on the driver (550): it decides which wheels run."
    assert not found.sure


def test_what_has_no_row_is_said(known: Known, index: SearchIndex) -> None:
    found = search("flaky on 2.11", known, index)
    assert english(found.note) == "No issue is known here for build:2.11 status:flaky."
    assert [hit.kind for hit in found.hits] == [HitKind.UPGRADE, HitKind.BUILD]
    assert english(search("xformers 2.7.1", known, index).note) == "Nothing here is about xformers."


def test_an_upgrade_is_asked_for_a_gpu_that_nobody_measured(known: Known, index: SearchIndex) -> None:
    for gpu, hardware in (("RTX 4090", "&hardware=cuda-sm_89"), ("MI300X", "")):
        urls = [hit.url for hit in search(f"upgrade from 2.7.1 on {gpu}", known, index).hits]
        assert f"/upgrade?from=2.7.1%2Bcu126{hardware}" in urls
