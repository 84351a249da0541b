"""Queries as JSON: the same queries as texts, whichever way they come, and refusals that name the place."""

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.app.query.evaluate import View, matching
from knowngood.app.query.json_form import from_json, read_json, read_query, to_json
from knowngood.app.query.json_schema import PUBLISHED, query_schema
from knowngood.app.query.parser import EVERYTHING, BadQuery, Query, parse, written
from knowngood.app.serialization.toml_models import schema_text
from tests.make import NOON
from tests.query.given_cells import random_rows
from tests.query.given_queries import random_query

VALIDATOR = jsonschema.Draft202012Validator(query_schema())


def test_the_published_schema_is_that_of_the_code() -> None:
    jsonschema.Draft202012Validator.check_schema(query_schema())
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(query_schema()), (
        "run: python -m knowngood.app.query.json_schema"
    )


def test_text_and_json_agree_on_hundreds_of_random_queries() -> None:
    """They read back as each other, and select the same of random rows."""
    chance = random.Random(2000)  # noqa: S311 - a seeded choice
    for number in range(400):
        query = random_query(chance)
        sent = json.dumps(to_json(query))
        by_json, by_text = read_query(sent), read_query(written(query))
        assert by_json == query == by_text
        assert to_json(by_text) == json.loads(sent)
        assert selected(by_json, number % 8) == selected(by_text, number % 8)
        if number % 20 == 0:
            VALIDATOR.validate(json.loads(sent))


def selected(query: Query, seed: int) -> list[str]:
    issues, rows, builds = random_rows(seed)
    return [one.id for one in matching(query, issues, View(builds, NOON), lambda issue: rows[issue.id])]


def test_random_queries_select_some_and_leave_some() -> None:
    """Else the agreement above would say little."""
    chance = random.Random(1)  # noqa: S311 - a seeded choice
    counts = [len(selected(random_query(chance), 1)) for _ in range(300)]
    assert sum(1 for count in counts if 0 < count < 12) > 30


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, ""),
        ({"and": []}, ""),
        ({"and": [{"text": "bmm"}]}, "bmm"),
        ({"text": "two words"}, '"two words"'),
        ({"status": "affected"}, "status:affected"),
        ({"verdict": ["affected", "flaky", "affected"]}, "status:affected|flaky"),
        ({"build": ">= 2.6, < 2.8"}, "build:>=2.6,<2.8"),
        ({"not": {"silent": "yes"}}, "-silent:yes"),
        ({"all": {"claim": {"status": "not_affected"}}}, "all():not_affected"),
        (
            {"none": {"where": [{"build": "2.8.."}, {"not": {"stale": "yes"}}], "claim": {"cure": "none"}}},
            "none(2.8.. -stale:yes):cure:none",
        ),
        ({"count": {"where": [{"status": "affected"}], "is": 3}}, "count(affected):3"),
        ({"count": {"is": ">=3"}}, "count():>=3"),
        ({"seq": ["affected", ["flaky", "not_affected"]]}, "seq(affected, flaky|not_affected)"),
    ],
)
def test_short_forms_are_read(told: Any, text: str) -> None:
    assert written(from_json(told)) == text
    VALIDATOR.validate(told)


def test_a_text_that_begins_with_a_brace_is_json() -> None:
    assert read_query(' {"text": "{x}"}') == parse('"{x}"')
    assert read_query("{}") == EVERYTHING
    assert read_query("x{}") == parse("x{}")


MISTAKES: list[tuple[str, int, str]] = [
    ("{", 2, "no JSON"),
    ('{"text": "x"', 13, "no JSON"),
    ("{} x", 4, "no JSON"),
    ('{"status": NaN}', 0, "NaN"),
    ('{"text": "x", "text": "y"}', 0, "duplicate"),
    ('{"text": "x", "id": "y"}', 0, "no object with one name"),
    ('{"text": 3}', 0, "text: no text"),
    ('{"text": " "}', 0, "text: an empty text"),
    ('{"text": "x\\u0000"}', 0, "U+0000"),
    ('{"text": "\\ud800"}', 0, "U+D800"),
    ('{"status": ["affected", "broken"]}', 0, 'status: status is never "broken" (did you mean "affected"'),
    ('{"status": []}', 0, "no list with anything in it"),
    ('{"status": {"x": 1}}', 0, "no text"),
    ('{"sttus": "affected"}', 0, 'did you mean "status"'),
    ('{"\\ud800": "affected"}', 0, "U+D800"),
    ('{"and": [{"silent": "maybe"}]}', 0, "and[0].silent"),
    ('{"and": {}}', 0, "no list"),
    ('{"or": []}', 0, "no list with anything in it"),
    ('{"or": [[]]}', 0, "or[0]: no object with one name"),
    ('{"not": []}', 0, "not: no object"),
    ('{"all": {}}', 0, 'an object with "claim"'),
    ('{"all": {"where": {}, "claim": {"status": "flaky"}}}', 0, "all.where: no list"),
    ('{"all": {"claim": {"build": "2.6"}}}', 0, "speaks of columns"),
    ('{"all": {"claim": {"silent": "yes"}}}', 0, "whole issue"),
    ('{"all": {"where": [{"silent": "yes"}], "claim": {"status": "flaky"}}}', 0, "all.where[0].silent"),
    ('{"all": {"where": [{"not": {"not": {"status": "flaky"}}}], "claim": {"status": "flaky"}}}', 0, "no field"),
    ('{"all": {"claim": {"status": "flaky"}, "wher": []}}', 0, "no such object"),
    ('{"count": {"is": -1}}', 0, "count.is"),
    ('{"count": {"is": true}}', 0, "count.is"),
    ('{"count": {"is": "some"}}', 0, "never"),
    ('{"count": {"where": []}}', 0, 'an object with "is"'),
    ('{"seq": ["affected"]}', 0, "1 step"),
    ('{"seq": "affected"}', 0, "no list"),
    ('{"seq": ["affected", "fine"]}', 0, "seq[1]"),
    ('{"not":' * 70 + '{"text":"x"}' + "}" * 70, 0, "nested too deeply"),
    ('{"not":' * 21 + '{"text":"x"}' + "}" * 21, 0, "nested too deeply"),
    ('{"a":' * 3000 + "{}" + "}" * 3000, 10_001, "characters"),
    ("{" + "[" * 9000, 2, "no JSON"),
    ('{"a":' + "[" * 9000, 0, "nested too deeply"),
    ('{"and": [' + ",".join(['{"text": "x"}'] * 201) + "]}", 0, "too many conditions"),
    ('{"text": "' + "x" * 2001 + '"}', 0, "as text: the query has 2,001 characters"),
    ('{"count": {"is": ' + "9" * 5000 + "}}", 0, "too long"),
]


@pytest.mark.parametrize(
    ("text", "column", "said"), [pytest.param(*row, id=f"{len(row[0])} {row[0][:50]}") for row in MISTAKES]
)
def test_a_mistake_is_named(text: str, column: int, said: str) -> None:
    with pytest.raises(BadQuery) as refused:
        read_query(text)
    assert said in str(refused.value)
    assert refused.value.column == column


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["affected", "2.8..", ">=3", "x"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["and", "or", "not", "all", "count", "seq", "where", "claim", "is", "status", "build", "text", "id"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_query_or_is_refused(told: Any) -> None:
    try:
        query = from_json(told)
    except BadQuery:
        return
    assert from_json(to_json(query)) == query == parse(written(query))
    VALIDATOR.validate(told)


@given(st.text(max_size=60))
def test_any_text_with_a_brace_is_a_query_or_is_refused(text: str) -> None:
    try:
        read_json("{" + text)
    except BadQuery as error:
        column = error.column
    else:
        column = 0
    assert column <= len(text) + 2
