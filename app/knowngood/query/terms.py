"""Single conditions of a query, as somebody adds and removes them without writing: `component:"=Dynamo"`.

Only what stands at the top of a query is such a term; what is inside parentheses or an `or` is left as it is.
"""

from collections.abc import Sequence

from knowngood.query.evaluate import classes_left
from knowngood.query.fields import FIELDS
from knowngood.query.parser import And, Atom, Query, atoms_of, fit_value


def term(field: str, value: str) -> Atom:
    return Atom(field, (fit_value(FIELDS[field], value),))


def parts_of(query: Query) -> tuple[Query, ...]:
    return query.queries if isinstance(query, And) else (query,)


def without(query: Query, field: str) -> Query:
    """The query without its conditions on a field, also those that deny."""
    return _all_of([part for part in parts_of(query) if not _is_about(part, field)])


def with_term(query: Query, atom: Atom) -> Query:
    """The query with this condition on its field, and no other."""
    return _all_of([*parts_of(without(query, atom.field)), atom])


def _all_of(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else And(tuple(queries))


def has_term(query: Query, atom: Atom) -> bool:
    return atom in parts_of(query)


def class_asked(query: Query, classes: Sequence[str], wanted: str) -> str:
    """The hardware class to show: the one `wanted`, unless the query's own conditions on hardware leave only others."""
    left = classes_left(query, classes)
    return left[0] if left and wanted not in left else wanted


def _is_about(query: Query, field: str) -> bool:
    fields = {atom.field for atom in atoms_of(query)}
    return fields == {field}
