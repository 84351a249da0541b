"""Texts on which a signature would be slow, made from its own parts, and the patterns that are slow on them.

A signature is looked for in what strangers wrote. The limits of time keep a slow one from holding anybody up, but what
it does not find in time nobody knows: a repro's author has to know before.
"""

import importlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import regex

from knowngood.catalogue.text_files import FileProblem, read_toml
from knowngood.domain.issue import Issue

_MOST = 50  # times a plain search: 0.6 s where that takes 12 ms, and a search is given up after a second
_SLOW = (
    f'"pattern" takes more than {_MOST} times as long as a plain search on a text of 1 MiB written to be slow; let no '
    "two repetitions match the same text, and none run across the next beginning of a match: [^x]* in place of .*"
)

Hostile = Callable[[int], str]
"""Makes a text of about so many characters."""

_PARSER: Any = importlib.import_module("re._parser")  # Python's own: nothing public takes a pattern apart
_SIZE = 1 << 20  # the longest log that is kept
_FIRST_SIZES = (_SIZE >> 6, _SIZE >> 4)
_LOOKS = 3  # neighbours on a machine make a search slower, and none quicker
_GROWTH = 4, 16  # of the time where a text is four times as long: as the text's length grows, or as its square
_PLAIN, _PLAIN_TEXT = regex.compile(r".*?(?:c|d)"), "ab" * (_SIZE >> 3)
_TELLING = "a 0_,.:'\n\"([{<=-"  # members of a class of characters that are tried first
_MEMBERS = 3
_ENDS = "\0", "\n\0"  # what hardly any part matches: a character that is not in classes, and one that ends a line


def slow_signatures(folders: Iterable[Path], issues: Iterable[Issue]) -> Iterator[FileProblem]:
    """One problem for each of these issues, found in these folders, whose signature can be made slow."""
    files = {place.name: place / "issue.toml" for folder in folders for place in (folder, *folder.iterdir())}
    for issue in issues:
        if issue.signature.pattern and is_slow(issue.signature.pattern):
            yield read_toml(files[issue.id]).problem((("signature", "pattern"), _SLOW))


def is_slow(pattern: str) -> bool:
    """Whether some text of at most 1 MiB takes more than fifty times as long to be looked through as by a plain one."""
    return slowness(pattern) > 1


def slowness(pattern: str) -> float:
    """The share of what it may take that a pattern takes of its worst text, or of the first that takes more than all.

    Seconds differ by machine and load, so a plain search is timed beside. What is more than a third is the best of
    several of both, in turns; what is less may be reckoned from shorter texts.
    """
    compiled, plain_s, most = regex.compile(pattern), min(_plain_s() for _ in range(_LOOKS)), 0.0
    for make in hostile_texts(pattern):
        most = max(most, _slowness_on(compiled, make, plain_s))
        if most > 1:
            break
    return most


def _slowness_on(compiled: "regex.Pattern[str]", make: Hostile, plain_s: float) -> float:
    """By what shorter texts take: a whole one takes long to be tried, and hardly any has to be."""
    little, more = (_took_s(compiled, make(size), plain_s) / plain_s / _MOST for size in _FIRST_SIZES)
    if max(little, more) > 1:
        return max(little, more)
    least, largest = _GROWTH
    reckoned = more * min(max(more / little, least), largest) ** 2
    return reckoned if reckoned < 1 / 3 else share_taken(compiled, make(_SIZE))


def share_taken(compiled: "regex.Pattern[str]", text: str) -> float:
    """Of the time that a signature may take of a text."""
    ours, plain = list[float](), list[float]()
    while len(ours) < _LOOKS:
        plain.append(_plain_s())
        ours.append(_took_s(compiled, text, plain[-1]))
        if min(ours) / min(plain) < _MOST / 3:
            break
    return min(ours) / min(plain) / _MOST


def _plain_s() -> float:
    """Seconds that a plain search of 1 MiB takes here and now."""
    began, took_s, searched = time.thread_time(), 0.0, 0
    while not took_s:  # some clocks tick in milliseconds
        _PLAIN.search(_PLAIN_TEXT)
        took_s, searched = time.thread_time() - began, searched + len(_PLAIN_TEXT)
    return took_s * _SIZE / searched


def _took_s(compiled: "regex.Pattern[str]", text: str, plain_s: float) -> float:
    """Of this thread's time; what is given up has taken more than it may."""
    began = time.thread_time()
    with suppress(TimeoutError):
        compiled.search(text, timeout=_MOST * 1.5 * plain_s, concurrent=True)
    return time.thread_time() - began


def hostile_texts(pattern: str) -> Iterator[Hostile]:
    """Texts that feed each repetition of a pattern, without end or again and again, and texts that begin many matches
    and end none: with what may be left out and without it, and of characters that a class shares with others.
    """
    with warnings.catch_warnings(action="ignore"):  # of what a later Python may read otherwise
        tree = list(_PARSER.parse(pattern))
    classes = {str(class_): class_ for class_ in _classes(tree)}.values()
    characters = dict.fromkeys(
        [*_TELLING, *map(chr, range(33, 127)), *(character for class_ in classes for character in _named(class_))]
    )
    shared = (
        [*(character for character in characters if _is_member(character, class_)), *characters] for class_ in classes
    )
    writers = [_Writer(first, optional) for first in (list(characters), *shared) for optional in (1, 0)]
    made = dict.fromkeys(shape for writer in writers for shape in _shapes(writer, tree))
    return (_repeated(*shape) for shape in made if shape[1])


def _shapes(writer: "_Writer", tree: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    """(what comes first, what is repeated, what comes last). A match at the very end has the library's own search for
    what every match must hold find it: it gives up at once where that is not there.
    """
    whole = writer.sample(tree)
    yield from [("", whole, ""), ("", whole[:-1], "")]
    last = ""
    for before, (unit, *others), after in writer.repetitions(tree):
        end = after[:-1]
        yield from [
            (before, unit, end),
            (before, end, ""),
            (before, unit + end, ""),
            ("", before, unit),
            ("", before, _ENDS[1] + whole),
            ("", before + unit + end, ""),
            ("", f"{before}{unit}\n", ""),
            ("\0" + before, unit, "\0" + whole),
            ("", before.removeprefix(last), _ENDS[1] + whole),
            *((before, each, end + whole) for each in (unit, *others) for end in _ENDS),
        ]
        last = before


def _repeated(before: str, unit: str, after: str) -> Hostile:
    return lambda size: before + unit * (max(0, size - len(before) - len(after)) // len(unit)) + after


def _inner(name: str, given: Any) -> Sequence[Sequence[Any]]:  # noqa: ANN401 - Python's own tree
    match name:
        case "BRANCH":
            return [list(branch) for branch in given[1]]
        case "SUBPATTERN":
            return [list(given[-1])]
        case "ASSERT" | "ASSERT_NOT":
            return [list(given[1])]
        case "ATOMIC_GROUP":
            return [list(given)]
        case _:
            return [list(given[2])] if name.endswith("_REPEAT") else []


def _classes(tree: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for code, given in tree:
        if str(code) == "IN":
            yield given
        for inner in _inner(str(code), given):
            yield from _classes(inner)


def _named(tests: Sequence[Any]) -> Iterator[str]:
    for code, given in tests:
        if str(code) in {"LITERAL", "RANGE"}:
            yield chr(given if isinstance(given, int) else given[0])


@dataclass(frozen=True)
class _Writer:
    """Writes what parts of a pattern match: of `characters` the first that are members of a class, and what may be left
    out so many times.
    """

    characters: Sequence[str]
    optional: int
    _known: dict[int, str] = field(default_factory=dict)  # samples, by parts that live as long as their tree

    def repetitions(self, tree: Sequence[Any]) -> Iterator[tuple[str, Sequence[str], str]]:
        """Of each: a text that leads to it, examples of what it repeats, and what would end the match."""
        for at, (code, given) in enumerate(tree):
            before, after = self.sample(tree[:at]), self.sample(tree[at + 1 :])
            name = str(code)
            if name.endswith("_REPEAT"):
                yield before, self._units(given[2]), after
            for inner in _inner(name, given):
                yield from ((before + lead, units, end + after) for lead, units, end in self.repetitions(inner))

    def sample(self, tree: Sequence[Any]) -> str:
        """A short text that the parts match, but for what they look around for."""
        return "".join(
            [self._known.get(id(part)) or self._known.setdefault(id(part), self._sample_of(part)) for part in tree]
        )

    def _units(self, repeated: Sequence[Any]) -> Sequence[str]:
        """Several where one class of characters is repeated: the next repetition may share one of its members alone."""
        parts = list(repeated)
        if len(parts) == 1 and str(parts[0][0]) in {"IN", "ANY"}:
            return self._members(parts[0])
        return [self.sample(parts) or "a"]

    def _sample_of(self, part: tuple[Any, Any]) -> str:
        name, given = str(part[0]), part[1]
        match name:
            case "LITERAL":
                return chr(int(given))
            case "IN" | "ANY" | "NOT_LITERAL":
                return self._members(part)[0]
            case "BRANCH":
                return next(filter(None, map(self.sample, given[1])), "")
            case "SUBPATTERN":
                return self.sample(given[-1])
            case "ASSERT":
                return self.sample(given[1]) * self.optional
            case "ATOMIC_GROUP":
                return self.sample(given)
            case _:
                return self.sample(given[2]) * max(self.optional, int(given[0])) if name.endswith("_REPEAT") else ""

    def _members(self, part: tuple[Any, Any]) -> Sequence[str]:
        name, given = str(part[0]), part[1]
        tests = given if name == "IN" else [part]
        return list(islice((character for character in self.characters if _is_member(character, tests)), _MEMBERS)) or [
            "a"
        ]


def _is_member(character: str, tests: Sequence[tuple[Any, Any]]) -> bool:
    is_negated = bool(tests) and str(tests[0][0]) == "NEGATE"
    return any(_is_one(character, str(code), given) for code, given in tests) is not is_negated


def _is_one(character: str, name: str, given: Any) -> bool:  # noqa: ANN401 - Python's own tree, one kind after the other
    match name:
        case "LITERAL":
            return ord(character) == int(given)
        case "NOT_LITERAL":
            return ord(character) != int(given)
        case "RANGE":
            return bool(given[0] <= ord(character) <= given[1])
        case "ANY":
            return character != "\n"
        case "CATEGORY":
            kind = str(given).removeprefix("CATEGORY_")
            is_kind = {
                "DIGIT": character.isdigit(),
                "SPACE": character.isspace(),
                "WORD": character.isalnum() or character == "_",
            }[kind.removeprefix("NOT_")]
            return is_kind is not kind.startswith("NOT_")
        case _:
            return False
