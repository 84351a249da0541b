"""Which issues a query selects, and which columns it leaves: the meaning of `parser.py` here.

An issue is looked at with the cells of all columns that are shown. Rules that are not obvious:

- Conditions on cells that stand side by side speak of one and the same cell.
- Conditions on columns narrow what all that stands beside them speaks of; at the top they narrow what is shown.
- The Pythons of one build are one cell while their answers agree.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import TypeVar

from knowngood.domain.builds.build import Build
from knowngood.domain.grouping import grouped
from knowngood.domain.identity_key import IdentityKey, IdentityKeys
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.inference import tells_most
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Cell, Verdict
from knowngood.query.fields import FIELDS, Kind, about_build, about_cell, about_class, about_issue
from knowngood.query.parser import (
    And,
    Atom,
    BadQuery,
    Not,
    Or,
    Query,
    Text,
    atoms_of,
    fit_value,
    written,
)

Lines = Sequence[Sequence[Cell]]  # per hardware class, a cell for each build
Scope = tuple[int, ...]  # places of builds
_Test = Callable[[Issue, Lines], bool]
_CellTest = Callable[[int, Cell], bool]  # of the cell at a place

_T = TypeVar("_T")
_NEVER = datetime.min.replace(tzinfo=UTC)
_verdict = attrgetter("verdict")


@dataclass(frozen=True)
class View:
    """The part of the matrix that is looked at: `builds` in release order, each for itself, and the time by which ages
    are counted.
    """

    builds: tuple[Build, ...]
    now: datetime


def matching(query: Query, issues: Iterable[Issue], view: View, lines_of: Callable[[Issue], Lines]) -> list[Issue]:
    """The issues that the query selects, in their order. `lines_of` gives a cell per build of the view, by class."""
    of_time = any(atom.field in {"age", "stale"} for atom in atoms_of(query))
    test = _whole_test(query, view if of_time else View(view.builds, _NEVER))
    return [issue for issue in issues if _holds(test, IdentityKey(issue), tuple(map(IdentityKeys, lines_of(issue))))]


@lru_cache(maxsize=256)
def _whole_test(query: Query, view: View) -> _Test:
    return _test(query, tuple(range(len(view.builds))), view)


@lru_cache(maxsize=8192)  # a page asks its rows a dozen questions, and between two pages few rows change
def _holds(test: _Test, issue: IdentityKey[Issue], lines: tuple[IdentityKeys[Cell], ...]) -> bool:
    return test(issue.it, [line.them for line in lines])


def needs_cells(query: Query) -> bool:
    """Whether it asks for more than issues say of themselves."""
    match query:
        case Text():
            return False
        case Atom():
            return query.kind is not Kind.ISSUE
        case Not(inner):
            return needs_cells(inner)
        case And(queries) | Or(queries):
            return any(needs_cells(part) for part in queries)


def conditions_on_cells(query: Query) -> int:
    """How often each cell may be asked, at most."""
    return sum(len(atom.values) for atom in atoms_of(query) if atom.kind is Kind.CELL)


def of_issues(query: Query) -> Callable[[Issue], bool]:
    """The conditions on an issue whatever its cells: true of every issue that `matching` can select."""
    tests = [_combined(part, about_issue) for part in parts_of(query) if not needs_cells(part)]
    return lambda issue: all(test(issue) for test in tests)


def columns_left(query: Query, builds: Sequence[Build]) -> tuple[Build, ...]:
    """The builds that the query's own conditions on columns leave to be shown.

    Raises BadQuery where they leave none of some: a name that is no build's, a range that nothing is in.
    """
    places = [part for part in parts_of(query) if _is_place(part)]
    tests = [_combined(place, about_build) for place in places]
    left = tuple(build for build in builds if all(test(build) for test in tests))
    if builds and not left:
        raise _no_columns(next(atoms_of(places[0])), builds)
    return left


def classes_left(query: Query, classes: Iterable[str]) -> tuple[str, ...]:
    """The hardware classes that the query's own conditions on hardware leave; every one where it has none."""
    parts = (part for part in parts_of(query) if _is_about(part, "hardware") and _is_plain(part))
    tests = [_combined(part, about_class) for part in parts]
    return tuple(class_ for class_ in classes if all(test(class_) for test in tests))


def _is_plain(query: Query) -> bool:
    """Whether it is made of conditions, their denials and alternatives alone."""
    match query:
        case Atom():
            return True
        case Not(inner):
            return _is_plain(inner)
        case And(queries) | Or(queries):
            return all(_is_plain(part) for part in queries)
        case _:
            return False


def _no_columns(atom: Atom, builds: Sequence[Build]) -> BadQuery:
    column, length = atom.at
    in_order = sorted(builds, key=lambda build: build.build_id)
    known = f"from {in_order[0].build_id.release} to {in_order[-1].build_id.release}"
    expected = f"some of the builds here (torch {known})"
    return BadQuery(f"no column is left by {written(atom)}", expected, column=column, length=length)


# -- what is of which kind ---------------------------------------------------------------------------------------------


def _is_place(query: Query) -> bool:
    match query:
        case Atom():
            return query.kind is Kind.PLACE
        case Not(inner):
            return _is_place(inner)
        case And(queries) | Or(queries):
            return bool(queries) and all(_is_place(part) for part in queries)
        case _:
            return False


def _is_of_a_cell(query: Query) -> bool:
    """Whether it is a condition that one cell meets or does not; a denial is not: it speaks of all of them."""
    match query:
        case Atom():
            return query.kind is not Kind.ISSUE
        case Or(queries):
            return all(_is_place(part) or _is_of_a_cell(part) for part in queries)
        case _:
            return False


def _combined(query: Query, about: Callable[[str, str], Callable[[_T], bool]]) -> Callable[[_T], bool]:
    """The test of a query that needs no cells; `about` makes that of one field's value."""
    match query:
        case Text(words):
            return about("text", words)
        case Atom(field, values):
            return _any_of([about(field, value) for value in values])
        case Not(inner):
            test = _combined(inner, about)
            return lambda subject: not test(subject)
        case And(queries):
            tests = [_combined(part, about) for part in queries]
            return lambda subject: all(test(subject) for test in tests)
        case Or(queries):
            return _any_of([_combined(part, about) for part in queries])
        case _:
            raise AssertionError(query)


def _any_of(tests: Sequence[Callable[[_T], bool]]) -> Callable[[_T], bool]:
    return tests[0] if len(tests) == 1 else lambda subject: any(test(subject) for test in tests)


# -- an issue with its cells -------------------------------------------------------------------------------------------


def _test(query: Query, scope: Scope, view: View) -> _Test:
    if not needs_cells(query):
        of_issue = _combined(query, about_issue)
        return lambda issue, _: of_issue(issue)
    match query:
        case Atom() | And():
            return _conjunction(parts_of(query), scope, view)
        case Or(queries):
            tests = [_test(part, scope, view) for part in queries]
            return lambda issue, lines: any(test(issue, lines) for test in tests)
        case Not(inner) if _is_place(inner):
            return _conjunction((query,), scope, view)
        case Not(inner):
            test = _test(inner, scope, view)
            return lambda issue, lines: not test(issue, lines)
        case _:
            raise AssertionError(query)


def _conjunction(queries: Sequence[Query], scope: Scope, view: View) -> _Test:
    """Columns first, then issues, which are quick to ask, then one cell for all that is asked of a cell."""
    places = [_combined(query, about_build) for query in queries if _is_place(query)]
    scope = tuple(at for at in scope if all(test(view.builds[at]) for test in places))
    if places and not scope:
        return lambda _issue, _lines: False
    rest = [part for part in queries if not _is_place(part)]
    of_cells = [part for part in rest if _is_of_a_cell(part)]
    others = [part for part in rest if not _is_of_a_cell(part)]
    tests = [_test(other, scope, view) for other in sorted(others, key=needs_cells)]
    if of_cells:
        range_ = _range(scope, of_cells, view)
        tests.append(lambda _, lines: any(True for line in lines for _ in range_.cells(line)))
    return lambda issue, lines: all(test(issue, lines) for test in tests)


def _picker(scope: Scope, view: View) -> Callable[[Sequence[Cell]], Sequence[Cell]]:
    """A function that takes the cells at these places out of a line."""
    if len(scope) == len(view.builds):
        return lambda line: line
    if not scope:
        return lambda _: ()
    if len(scope) == 1:
        (only,) = scope
        return lambda line: (line[only],)
    return itemgetter(*scope)


def _cell_test(query: Query, view: View) -> _CellTest:
    """The test of a condition that one cell meets or does not."""
    if _is_place(query):
        test = _combined(query, about_build)
        holds = [test(build) for build in view.builds]
        return lambda at, _: holds[at]
    match query:
        case Atom("status"):
            verdicts = _verdicts(query)
            return lambda _, cell: cell.verdict in verdicts
        case Atom(field, values):
            tests = [about_cell(field, value, view.builds, view.now) for value in values]
            return tests[0] if len(tests) == 1 else lambda at, cell: any(test(at, cell) for test in tests)
        case Or(queries):
            tests = [_cell_test(part, view) for part in queries]
            return lambda at, cell: any(test(at, cell) for test in tests)
        case _:
            raise AssertionError(query)


def _verdicts(atom: Atom) -> frozenset[Verdict]:
    return frozenset(Verdict(value) for value in atom.values)


@dataclass(frozen=True)
class _Range:
    """The cells that are spoken of: at these places, of these verdicts, if all of `tests` say yes.

    `families` are the places by what builds have in common but Python; `pick` takes the cells there out of a line.
    """

    places: Scope
    families: tuple[Scope, ...]
    verdicts: frozenset[Verdict]
    tests: tuple[_CellTest, ...]
    pick: Callable[[Sequence[Cell]], Sequence[Cell]]

    def cells(self, line: Sequence[Cell]) -> Iterator[tuple[int, Cell]]:
        verdicts, tests = self.verdicts, self.tests
        for at, cell in self._standing(line):
            if cell.verdict not in verdicts:
                continue
            for test in tests:
                if not test(at, cell):
                    break
            else:
                yield at, cell

    def _standing(self, line: Sequence[Cell]) -> Iterable[tuple[int, Cell]]:
        if len(self.families) == len(self.places):
            return zip(self.places, self.pick(line), strict=True)
        return (pair for family in self.families for pair in _standing(family, line))


def _standing(family: Scope, line: Sequence[Cell]) -> Iterable[tuple[int, Cell]]:
    """The Pythons of one build: the one that says most for all, or each that answers where two of them disagree."""
    if len(family) == 1:
        (only,) = family
        return ((only, line[only]),)
    cells = [(at, line[at]) for at in family]
    answers = [(at, cell) for at, cell in cells if cell.verdict in CONCLUSIVE]
    if len({cell.verdict for _, cell in answers}) > 1:
        return answers
    most = tells_most([cell for _, cell in cells])
    return (next((at, cell) for at, cell in cells if cell is most),)


def _range(scope: Scope, of_cells: Iterable[Query], view: View) -> _Range:
    verdicts = frozenset(Verdict)
    for of_cell in of_cells:
        if isinstance(of_cell, Atom) and of_cell.field == "status":
            verdicts &= _verdicts(of_cell)
    others = (part for part in of_cells if not (isinstance(part, Atom) and part.field == "status"))
    # Conditions on a time or a place are asked before those that look through workarounds and sentences.
    in_turn = sorted(others, key=lambda part: any(atom.field in {"cure", "reason"} for atom in atoms_of(part)))
    tests = tuple(_cell_test(other, view) for other in in_turn)
    families = tuple(map(tuple, grouped(scope, lambda at: view.builds[at].build_id.apart_from_python).values()))
    return _Range(scope, families, verdicts, tests, _picker(scope, view))


# -- single conditions -------------------------------------------------------------------------------------------------

# As somebody adds and removes them without writing: `component:"=Dynamo"`. Only what stands at the top of a query is
# such a term; what is inside parentheses or an `or` is left as it is.


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
    return {atom.field for atom in atoms_of(query)} == {field}
