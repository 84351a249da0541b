"""A query of the matrix as JSON, for programs that make one: the same queries as the text of app/query/parser.py.

    {"and": [{"component": "inductor"}, {"status": ["affected", "flaky"]}, {"not": {"text": "bmm"}},
             {"all": {"where": [{"build": "2.8.."}], "claim": {"status": "not_affected"}}},
             {"count": {"where": [{"status": "affected"}], "is": ">=3"}}, {"seq": ["affected", "not_affected"]}]}

Every object holds one name; the JSON Schema is made in json_schema.py.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from knowngood.app.query.fields import ALIASES, FIELDS, Kind, nearest_word
from knowngood.app.query.parser import (
    DEEPEST,
    EVERYTHING,
    MOST,
    And,
    Atom,
    BadQuery,
    Claimed,
    Counted,
    InOrder,
    Not,
    Or,
    Quantifier,
    Query,
    Term,
    Text,
    fit_number,
    fit_steps,
    fit_value,
    parse,
    refuse_unprintable,
    written,
)

LONGEST = 10_000  # characters
_NAMES = (*FIELDS, "and", "or", "not", "text", "all", "none", "exists", "count", "seq")
_DEEPEST = 3 * DEEPEST  # a text may hold alternatives of conjunctions of denials in each parenthesis

Json = Any  # what json.loads gives


def read_query(text: str) -> Query:
    """A query in either form: JSON where it begins with a brace. Raises BadQuery."""
    return read_json(text) if text.lstrip().startswith("{") else parse(text)


def read_json(text: str) -> Query:
    """Raises BadQuery; where the text is no JSON it points at the place."""
    if len(text) > LONGEST:
        raise BadQuery(f"the query has {len(text):,} characters", f"at most {LONGEST:,}", column=LONGEST + 1, length=1)
    try:
        told = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadQuery(f"no JSON: {error.msg.lower()}", "", column=error.pos + 1, length=1) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # an integer longer than Python reads
        raise BadQuery("a number that is too long", "") from None
    return from_json(told)


def _once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise BadQuery("a duplicate name in one object", "one name in each object")
    return told


def _no_constant(word: str) -> NoReturn:
    raise BadQuery(f"{word}, which is no JSON", "")


# -- both ways ---------------------------------------------------------------------------------------------------------


def to_json(query: Query) -> Json:
    match query:
        case Text(words):
            return {"text": words}
        case Atom(field, values):
            return {field: _short(values)}
        case Not(inner):
            return {"not": to_json(inner)}
        case And(queries):
            return {"and": [to_json(one) for one in queries]}
        case Or(queries):
            return {"or": [to_json(one) for one in queries]}
        case Claimed(quantifier, where, claim):
            return {quantifier.value: {"where": [to_json(one) for one in where], "claim": to_json(claim)}}
        case Counted(where, number):
            return {"count": {"where": [to_json(one) for one in where], "is": number}}
        case InOrder(steps):
            return {"seq": [_short(step) for step in steps]}


def _short(values: Sequence[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def from_json(told: Json) -> Query:
    """Raises BadQuery, which names the place as a path: `and[2].status`. What is too much for a text is so here."""
    if told in ({}, {"and": []}):
        return EVERYTHING
    query = _JsonParser().query(told, "")
    try:
        parse(written(query))
    except BadQuery as error:
        raise BadQuery(f"as text: {error.found}", error.expected) from None
    return query


class _JsonParser:
    def __init__(self) -> None:
        self._count = 0

    def query(self, told: Json, place: str, depth: int = 0) -> Query:
        if depth > _DEEPEST:
            raise _too_deep()
        name, value = _only_pair(told, place)
        place = f"{place}.{name}".removeprefix(".")
        match name:
            case "and" | "or":
                parts = [self.query(one, f"{place}[{at}]", depth + 1) for at, one in enumerate(_several(value, place))]
                if len(parts) == 1:
                    return parts[0]
                return And(tuple(parts)) if name == "and" else Or(tuple(parts))
            case "not":
                return Not(self.query(value, place, depth + 1))
            case _:
                self._count_one()
                return self._condition(name, value, place)

    def _condition(self, name: str, value: Json, place: str) -> Query:
        match name:
            case "text":
                words = _text(value, place)
                return Text(words) if words.strip() else _fail(place, "an empty text", "words to search for")
            case "all" | "none" | "exists":
                parts = _parts(value, place, ("where", "claim"))
                where = self._where(parts.get("where", []), f"{place}.where")
                return Claimed(Quantifier(name), where, _claim(parts.get("claim"), f"{place}.claim"))
            case "count":
                parts = _parts(value, place, ("where", "is"))
                where = self._where(parts.get("where", []), f"{place}.where")
                return Counted(where, _number(parts.get("is"), f"{place}.is"))
            case "seq":
                return _in_order(value, place)
            case _:
                return _atom(name, value, place)

    def _where(self, told: Json, place: str) -> tuple[Term, ...]:
        if not isinstance(told, list):
            _fail(place, "no list", "a list of conditions on columns or cells")
        return tuple(self._term(one, f"{place}[{at}]") for at, one in enumerate(told))

    def _term(self, told: Json, place: str) -> Term:
        self._count_one()
        name, value = _only_pair(told, place)
        if name == "not":
            return Not(_of_columns_or_cells(value, f"{place}.not"))
        return _of_columns_or_cells(told, place)

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MOST:
            raise BadQuery("there are too many conditions", f"at most {MOST}")


def _of_columns_or_cells(told: Json, place: str) -> Atom:
    name, value = _only_pair(told, place)
    atom = _atom(name, value, f"{place}.{name}")
    if atom.kind is Kind.ISSUE:
        _fail(f"{place}.{name}", "a condition on the whole issue", "one on columns or cells here; write it outside")
    return atom


def _claim(told: Json, place: str) -> Atom:
    atom = _of_columns_or_cells(told, place)
    if atom.kind is not Kind.CELL:
        _fail(place, "a claim that speaks of columns", 'a condition on a cell, such as {"status": "not_affected"}')
    return atom


def _atom(name: str, value: Json, place: str) -> Atom:
    field = FIELDS.get(ALIASES.get(name, name))
    if field is None:
        _fail(place, f'there is no field "{name[:40]}"', "a field", nearest_word(name, _NAMES))
    values = [_text(one, place) for one in (_several(value, place) if isinstance(value, list) else [value])]
    with_place = [_checked(fit_value, field, one, place) for one in values]
    return Atom(field.name, tuple(dict.fromkeys(with_place)))


def _checked(fit: Any, *given: Any) -> Any:  # noqa: ANN401 - whatever `fit` takes and gives
    *arguments, place = given
    try:
        return fit(*arguments)
    except BadQuery as error:
        _fail(place, error.found, error.expected, error.nearest)


def _number(value: Json, place: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:  # noqa: PLR2004 - six digits
        value = str(value)
    number: str = _checked(fit_number, _text(value, place), place)
    return number


def _in_order(value: Json, place: str) -> InOrder:
    steps = [_atom("status", one, f"{place}[{at}]").values for at, one in enumerate(_several(value, place))]
    fitted: tuple[tuple[str, ...], ...] = _checked(fit_steps, steps, place)
    return InOrder(fitted)


def _only_pair(told: Json, place: str) -> tuple[str, Json]:
    if not isinstance(told, dict) or len(told) != 1:
        _fail(place, "no object with one name", 'an object such as {"status": "affected"}')
    name, value = next(iter(told.items()))
    return _text(name, place), value


def _parts(told: Json, place: str, names: tuple[str, str]) -> Mapping[str, Json]:
    if not isinstance(told, dict) or set(told) - set(names) or names[1] not in told:
        _fail(place, "no such object", f'an object with "{names[1]}" and perhaps "{names[0]}"')
    return told


def _several(told: Json, place: str) -> list[Json]:
    if not isinstance(told, list) or not told:
        _fail(place, "no list with anything in it", "a list of at least one")
    return told


def _text(told: Json, place: str) -> str:
    if not isinstance(told, str):
        _fail(place, "no text", "a text")
    try:
        refuse_unprintable(told)
    except BadQuery as error:
        _fail(place, error.found, error.expected)
    return told


def _fail(place: str, found: str, expected: str, nearest: str = "") -> NoReturn:
    raise BadQuery(f"{place[:120]}: {found}" if place else found, expected, nearest=nearest)


def _too_deep() -> BadQuery:
    return BadQuery("it is nested too deeply", f"at most {_DEEPEST} levels")
