"""A query of the matrix as JSON, for programs that make one: the same queries as the text of app/query/parser.py.

    {"and": [{"component": "inductor"}, {"status": ["affected", "flaky"]}, {"not": {"text": "bmm"}},
             {"all": {"where": [{"build": "2.8.."}], "claim": {"status": "not_affected"}}},
             {"count": {"where": [{"status": "affected"}], "is": ">=3"}}, {"seq": ["affected", "not_affected"]}]}

Every object holds one name. `python -m knowngood.app.query.json_form` writes the JSON Schema (query.schema.json).
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from knowngood.app.query.fields import ALIASES, FIELDS, LONGEST_VALUE, Kind, nearest_word
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
from knowngood.app.serialization.toml_models import schema_text

PUBLISHED = Path(__file__).with_name("query.schema.json")
LONGEST = 10_000  # characters
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


# -- the schema --------------------------------------------------------------------------------------------------------

_NAMES = (*FIELDS, "and", "or", "not", "text", "all", "none", "exists", "count", "seq")


def query_schema() -> dict[str, Any]:
    """The JSON Schema of a query. What versions and numbers may be, it says in words only."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A query of the Known Good matrix",
        "anyOf": [{"type": "object", "maxProperties": 0}, {"$ref": "#/$defs/nothing"}, {"$ref": "#/$defs/query"}],
        "$defs": {
            "nothing": _object("and", {"type": "array", "maxItems": 0}),
            "query": {
                "oneOf": [
                    {"$ref": f"#/$defs/{name}"}
                    for name in ("joined", "condition", *(f"of_{one.value}" for one in Kind))
                ]
            },
            "joined": {
                "oneOf": [
                    _object("and", _list_of("query")),
                    _object("or", _list_of("query")),
                    _object("not", {"$ref": "#/$defs/query"}),
                ]
            },
            "condition": {"oneOf": [_object("text", {"type": "string", "pattern": "\\S"}), *_quantifiers()]},
            "term": {
                "oneOf": [
                    {"$ref": "#/$defs/of_place"},
                    {"$ref": "#/$defs/of_cell"},
                    _object("not", {"oneOf": [{"$ref": "#/$defs/of_place"}, {"$ref": "#/$defs/of_cell"}]}),
                ]
            },
            **{f"of_{kind.value}": {"oneOf": _fields(kind)} for kind in Kind},
        },
    }


def _quantifiers() -> list[dict[str, Any]]:
    claim = {"$ref": "#/$defs/of_cell"}
    where = {"type": "array", "items": {"$ref": "#/$defs/term"}}
    number = {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 999_999}]}
    step = _one_or_more(_value_schema("status"))
    return [
        *(_object(one.value, _record({"where": where, "claim": claim}, "claim")) for one in Quantifier),
        _object("count", _record({"where": where, "is": number}, "is")),
        _object("seq", {"type": "array", "minItems": 2, "maxItems": 10, "items": step}),
    ]


def _fields(kind: Kind) -> list[dict[str, Any]]:
    named = {**{name: name for name in FIELDS}, **ALIASES}
    return [
        {**_object(name, _one_or_more(_value_schema(real))), "description": FIELDS[real].about}
        for name, real in named.items()
        if FIELDS[real].kind is kind
    ]


def _value_schema(name: str) -> dict[str, Any]:
    field = FIELDS[name]
    if field.words and name != "severity":
        return {"enum": list(field.words)}
    return {"type": "string", "minLength": 1, "maxLength": LONGEST_VALUE}


def _one_or_more(value: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, {"type": "array", "minItems": 1, "items": value}]}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": {"$ref": f"#/$defs/{name}"}}


def _object(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return _record({name: value}, name)


def _record(properties: dict[str, Any], required: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [required], "properties": properties}


def write_schema(file: Path = PUBLISHED) -> Path:
    file.write_text(schema_text(query_schema()), encoding="utf-8")
    return file


if __name__ == "__main__":
    sys.stdout.write(f"wrote {write_schema().name}\n")
