"""The query language of the matrix: what may be asked, how it is written, and where a text goes wrong.

`docs/query.md` says what it means to a reader, `fields.py` here what each field is asked, and `evaluate.py` which
issues a query selects. Every query has one way of writing it (`written`), which reads back as the same query.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from knowngood.domain.errors import BadRequest
from knowngood.query.fields import ALIASES, FIELDS, LONGEST_VALUE, Field, Kind, UnfitValue, nearest_word

LONGEST = 2000  # characters
DEEPEST = 20  # parentheses and denials within each other
MOST = 200  # conditions; each value of a field is one
MOST_OF_CELLS = 40  # each is asked of every cell


class BadQuery(BadRequest):
    """A query that cannot be read. `column` counts characters from 1 (0: it is not a place in a text), `length` is
    that of what is wrong there; `nearest` is a word that may have been meant, or empty.
    """

    def __init__(self, fault: str, expected: str, *, column: int = 0, length: int = 0, nearest: str = "") -> None:
        meant = f' (did you mean "{nearest}"?)' if nearest else ""
        place = f"column {column}: " if column else ""
        super().__init__(f"{place}{fault}{meant}" + (f"; expected {expected}" if expected else ""))
        self.fault = fault
        self.expected = expected
        self.column = column
        self.length = length
        self.nearest = nearest


@dataclass(frozen=True)
class Text:
    """Words that stand in an issue's id, title or component."""

    words: str


@dataclass(frozen=True)
class Atom:
    """One field and what it may be: any of `values`. `at` is (column, length) in the text it was read from."""

    field: str
    values: tuple[str, ...]
    at: tuple[int, int] = dataclasses.field(default=(0, 0), compare=False, repr=False)

    @property
    def kind(self) -> Kind:
        return FIELDS[self.field].kind


@dataclass(frozen=True)
class Not:
    query: "Query"


@dataclass(frozen=True)
class And:
    """All of these; none at all is everything."""

    queries: tuple["Query", ...]


@dataclass(frozen=True)
class Or:
    queries: tuple["Query", ...]


Query = Text | Atom | Not | And | Or

EVERYTHING = And(())


def parse(text: str) -> Query:
    """Read a query. Raises BadQuery, which points at the place."""
    if (start := len(text) - len(text.lstrip())) < len(text) and text[start] == "{":
        words = "queries as JSON are gone"
        raise BadQuery(words, 'a query as text; to search for a "{", put it in quotes', column=start + 1, length=1)
    refuse_unprintable(text)
    if len(text) > LONGEST:
        raise BadQuery(
            f"the query has {len(text):,} characters",
            f"at most {LONGEST:,}",
            column=LONGEST + 1,
            length=len(text) - LONGEST,
        )
    return _TextParser(text).read()


def refuse_unprintable(text: str) -> None:
    """Raises BadQuery at the first character that no text has: control characters, and halves of a surrogate pair."""
    for at, sign in enumerate(text):
        if unicodedata.category(sign) in {"Cc", "Cs"} and not sign.isspace():
            raise BadQuery(f"the character U+{ord(sign):04X}", "text that can be printed", column=at + 1, length=1)


# -- reading -----------------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?!:)")
_GONE = re.compile(r"(all|none|exists|count|seq)\(", re.IGNORECASE)
_CELLS_ELSEWHERE = (
    "conditions on one cell; /api/v1/matrix and `knowngood matrix --json` give every cell to count or compare"
)
_INSTEAD = {
    "exists": "its conditions side by side in parentheses: (build:2.7 status:flaky)",
    "none": "a denial, which holds where nothing was measured too: -(build:2.8.. status:affected)",
}
_CONNECTIVES = ("and", "or", "not")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SHOWN = 40


class _TextParser:
    """Reads by recursive descent; `DEEPEST` bounds the recursion. `_at` is the place that is read next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._count = 0
        self._count_of_cells = 0

    def read(self) -> Query:
        self._skip_blanks()
        if self._is_over():
            return EVERYTHING
        query = self._alternatives()
        if not self._is_over():  # only a parenthesis ends a list of alternatives early
            self._fail(self._at, 1, 'a ")" that closes nothing', "")
        return query

    # alternatives and conjunctions

    def _alternatives(self) -> Query:
        parts = [self._conjunction()]
        while self._take_word("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Query:
        parts = [self._operand()]
        while True:
            self._skip_blanks()
            if self._is_over() or self._sign == ")" or self._sees_word("or"):
                break
            self._take_word("and")
            parts.append(self._operand())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _operand(self) -> Query:
        self._skip_blanks()
        if self._is_over():
            self._fail(self._at, 0, "the query ends here", "a condition")
        if self._sign == ")" or self._sees_word("or") or self._sees_word("and"):
            word = ")" if self._sign == ")" else re.split(r'[\s()"]', self._text[self._at :], maxsplit=1)[0]
            self._fail(self._at, len(word), f'"{word}" where nothing stands before it', "a condition")
        start = self._at
        if self._sign == "-" or self._sees_word("not"):
            self._at += 1 if self._sign == "-" else 3
            with self._nested(start):
                return Not(self._operand())
        if self._sign == "(":
            return self._parenthesis()
        return self._condition()

    def _parenthesis(self) -> Query:
        start = self._at
        self._at += 1
        with self._nested(start):
            self._skip_blanks()
            if not self._is_over() and self._sign == ")":
                self._fail(start, self._at - start + 1, "an empty pair of parentheses", "a condition")
            query = self._alternatives()
            self._skip_blanks()
            self._close(start)
            return query

    @contextmanager
    def _nested(self, start: int) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(start, 1, "it is nested too deeply", f"at most {DEEPEST} parentheses and denials in each other")
        yield
        self._depth -= 1

    def _close(self, opened: int) -> None:
        if self._is_over() or self._sign != ")":
            self._fail(opened, 1, 'a "(" that is never closed', 'a ")"')
        self._at += 1

    # conditions

    def _condition(self) -> Query:
        self._count_one()
        if gone := _GONE.match(self._text, self._at):
            word = gone[1].casefold()
            self._fail(self._at, len(word), f'the quantifier "{word}" is gone', _INSTEAD.get(word, _CELLS_ELSEWHERE))
        if named := _FIELD.match(self._text, self._at):
            return self._atom(named)
        ((start, words),) = self._split_word("")
        if not words.strip():
            self._fail(start, self._at - start, "an empty text", "words to search for")
        return Text(words)

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MOST:
            self._fail(self._at, 1, "there are too many conditions", f"at most {MOST}, where each value counts")

    def _count_values(self, of: Field, values: Sequence[str], start: int) -> None:
        self._count += len(values) - 1
        if of.kind is Kind.CELL:
            self._count_of_cells += 1 if of.name == "status" else len(values)
        for count, most, what in ((self._count, MOST, ""), (self._count_of_cells, MOST_OF_CELLS, " on cells")):
            if count > most:
                words = f"there are too many conditions{what}"
                self._fail(start, self._at - start, words, f"at most {most}, where each value counts")

    def _atom(self, named: "re.Match[str]") -> Atom:
        start = self._at
        name = named[1].casefold()
        field = FIELDS.get(ALIASES.get(name, name))
        if field is None:
            self._fail(
                start,
                len(named[1]),
                f'there is no field "{_short(named[1])}"',
                "a field; to search for it as text, put it in quotes",
                nearest_word(name, (*FIELDS, *ALIASES)),
            )
        self._at = named.end()
        if self._is_over() or self._sign.isspace() or self._sign == ")":
            self._fail(start, self._at - start, f'"{named[0]}" says nothing', describe_values(field))
        return self._values(field, start)

    def _values(self, of: Field, start: int) -> Atom:
        values = [self._value(of, text, at) for at, text in self._split_word("|," if of.words else "|")]
        self._count_values(of, values, start)
        return Atom(of.name, tuple(dict.fromkeys(values)), (start + 1, self._at - start))

    def _value(self, of: Field, text: str, at: int) -> str:
        length = max(self._at - at, 1) if not text else min(len(text), self._at - at)
        try:
            return fit_value(of, text)
        except BadQuery as error:
            self._fail(at, length, error.fault, error.expected, error.nearest)

    # words

    def _split_word(self, separators: str) -> list[tuple[int, str]]:
        """The word here, in its parts between `separators`, each with its place; quotes hold whatever they enclose."""
        parts = [(self._at, "")]
        while not self._is_over() and not self._sign.isspace() and self._sign not in "()":
            start, text = parts[-1]
            if self._sign == '"':
                parts[-1] = (start, text + self._quoted())
                continue
            self._at += 1
            if self._text[self._at - 1] in separators:
                parts.append((self._at, ""))
            else:
                parts[-1] = (start, text + self._text[self._at - 1])
        if not self._is_over() and self._sign == "(":
            self._fail(self._at, 1, 'a "(" in the middle of a word', "a blank before it, or quotes around all of it")
        return parts

    def _quoted(self) -> str:
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            self._fail(self._at, 1, "a quotation mark that is never closed", 'a second "')
        self._at = match.end()
        return re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)

    def _sees_word(self, word: str) -> bool:
        here = self._text[self._at : self._at + len(word)]
        after = self._text[self._at + len(word) : self._at + len(word) + 1]
        return here.casefold() == word and (not after or after.isspace() or after in "()")

    def _take_word(self, word: str) -> bool:
        self._skip_blanks()
        if not self._sees_word(word):
            return False
        self._at += len(word)
        return True

    def _skip_blanks(self) -> None:
        while not self._is_over() and self._sign.isspace():
            self._at += 1

    def _is_over(self) -> bool:
        return self._at >= len(self._text)

    @property
    def _sign(self) -> str:
        return self._text[self._at]

    def _fail(self, at: int, length: int, fault: str, expected: str, nearest: str = "") -> NoReturn:
        raise BadQuery(fault, expected, column=at + 1, length=length, nearest=nearest)


# -- what any form of a query is held to -------------------------------------------------------------------------------


def fit_value(of: Field, text: str) -> str:
    """A field's value in its one way of writing. Raises BadQuery, which points nowhere."""
    if len(text) > LONGEST_VALUE:
        raise BadQuery(f"a value of {len(text):,} characters", f"at most {LONGEST_VALUE}")
    if not text.strip():
        raise BadQuery("an empty value", describe_values(of))
    try:
        return of.read(text)
    except UnfitValue as error:
        raise BadQuery(f'{of.name} is never "{_short(text)}"', error.expected, nearest=error.nearest) from None


def describe_values(of: Field) -> str:
    """The values that a field takes, in words."""
    return f"one of {', '.join(of.words)}" if of.words else of.about


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# -- writing -----------------------------------------------------------------------------------------------------------


def written(query: Query) -> str:
    """The query as text; reading it gives the same query."""
    match query:
        case And(queries):
            return " ".join(_inside(part) for part in queries)
        case Or(queries):
            return " or ".join(_alternative(part) for part in queries)
        case Not(inner):
            return f"-{_inside(inner)}"
        case Text(words):
            return _text_written(words)
        case Atom(name, values):
            return f"{name}:{_values_written(name, values)}"


def _inside(query: Query) -> str:
    return f"({written(query)})" if isinstance(query, And | Or) else written(query)


def _alternative(query: Query) -> str:
    """A conjunction needs no parentheses among alternatives: blanks bind more closely than `or`."""
    return written(query) if isinstance(query, And) else _inside(query)


def _values_written(name: str, values: Iterable[str]) -> str:
    separators = "|," if FIELDS[name].words else "|"
    return "|".join(_quoted_where_needed(value, separators) for value in values)


def _text_written(words: str) -> str:
    means_more = words.startswith(("-", "{")) or words.casefold() in _CONNECTIVES or _FIELD.match(words)
    return _quoted(words) if means_more else _quoted_where_needed(words, "")


def _quoted_where_needed(text: str, separators: str) -> str:
    is_plain = (
        text and text[0] != ":" and not any(sign.isspace() or sign in '()"\\' or sign in separators for sign in text)
    )
    return text if is_plain else _quoted(text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def atoms_of(query: Query) -> Iterator[Atom]:
    """Every atom that stands in it, in order."""
    match query:
        case Atom():
            yield query
        case Not(inner):
            yield from atoms_of(inner)
        case And(queries) | Or(queries):
            for part in queries:
                yield from atoms_of(part)
        case Text():
            return
