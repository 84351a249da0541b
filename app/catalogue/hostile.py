"""Texts on which a signature would be slow, made from its own parts, and the patterns that are slow on them.

A signature is looked for in what strangers wrote. The limits of time keep a slow one from holding anybody up, but what
it does not find in time nobody knows: a repro's author has to know before.
"""

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import regex

from app.catalogue.problems import CatalogueProblems
from app.catalogue.texts import read_toml
from app.domain.issue import Issue

_MOST_S = 0.5
_SLOW = (
    f'"pattern" takes more than {_MOST_S:g} s on a text of 1 MiB written to be slow; let no two repetitions match the '
    "same text, and none run across the next beginning of a match: [^x]* in place of .*"
)

Hostile = Callable[[int], str]
"""Makes a text of about so many characters."""

_PARSER: Any = importlib.import_module("re._parser")  # Python's own: nothing public takes a pattern apart
_SIZE = 1 << 20  # the longest log that is kept
_FIRST_SIZES = (_SIZE >> 6, _SIZE >> 4)
_LINEAR = 8  # four times the text takes four times as long, or sixteen times where time grows as its square
_TRIED = "a 0_,.:'\n\"([{<=-"  # members of a class of characters, the telling ones first
_MEMBERS = 3


def refuse_slow_signatures(folders: Iterable[Path], issues: Iterable[Issue]) -> None:
    """Raise CatalogueProblems where the signature of one of these issues, found in these folders, can be made slow."""
    files = {place.name: place / "issue.toml" for folder in folders for place in folder.iterdir()}
    slow = [files[one.id] for one in issues if one.signature.pattern and is_slow(one.signature.pattern)]
    if slow:
        raise CatalogueProblems(read_toml(file).problem((("signature", "pattern"), _SLOW)) for file in slow)


def is_slow(pattern: str) -> bool:
    """Whether some text of 1 MiB takes more than half a second of a processor to be looked through."""
    compiled = regex.compile(pattern)
    return any(
        _may_be_slow(compiled, make) and _took_s(compiled, make(_SIZE)) > _MOST_S for make in hostile_texts(pattern)
    )


def _may_be_slow(compiled: "regex.Pattern[str]", make: Hostile) -> bool:
    """By what shorter texts take: a whole one takes long to be tried, and hardly any has to be."""
    little, more = (_took_s(compiled, make(size)) for size in _FIRST_SIZES)
    times = _SIZE // _FIRST_SIZES[1]
    return more * times**2 > _MOST_S and (more > _LINEAR * little or more * times > _MOST_S)


def _took_s(compiled: "regex.Pattern[str]", text: str) -> float:
    """Of this thread's time, which a busy machine does not stretch."""
    began = time.thread_time()
    with suppress(TimeoutError):
        compiled.search(text, timeout=_MOST_S * 2, concurrent=True)
    return time.thread_time() - began


def hostile_texts(pattern: str) -> Iterator[Hostile]:
    """What each repetition of a pattern can be fed with, without end or again and again, and what begins many matches
    and ends none.
    """
    tree = list(_PARSER.parse(pattern))
    whole = _sample(tree)
    made = dict.fromkeys([("", whole, ""), ("", whole[:-1], "")])
    for before, (unit, *others), after in _repetitions(tree):
        end = after[:-1]
        shapes = [
            (before, unit, end),
            (before, end, ""),
            (before, unit + end, ""),
            ("", before, unit),
            ("", before + unit + end, ""),
            ("", f"{before}{unit}\n", ""),
            *((before, each, f"\0{whole}") for each in (unit, *others)),
        ]
        made |= dict.fromkeys(shapes)
    return (_repeated(*shape) for shape in made if shape[1])


def _repeated(before: str, unit: str, after: str) -> Hostile:
    return lambda size: before + unit * (max(0, size - len(before) - len(after)) // len(unit)) + after


def _repetitions(tree: Sequence[Any]) -> Iterator[tuple[str, Sequence[str], str]]:
    """Of each repetition: a text that leads to it, examples of what it repeats, and what would end the match."""
    for at, (code, given) in enumerate(tree):
        before, after = _sample(tree[:at]), _sample(tree[at + 1 :])
        name = str(code)
        if name.endswith("_REPEAT"):
            yield before, _units(given[2]), after
        for inner in _inner(name, given):
            yield from ((before + lead, units, end + after) for lead, units, end in _repetitions(inner))


def _inner(name: str, given: Any) -> Sequence[Sequence[Any]]:  # noqa: ANN401 - Python's own tree
    if name == "BRANCH":
        return [list(branch) for branch in given[1]]
    if name == "SUBPATTERN":
        return [list(given[-1])]
    if name.endswith("_REPEAT"):
        return [list(given[2])]
    return [list(given)] if name == "ATOMIC_GROUP" else []


def _units(repeated: Sequence[Any]) -> Sequence[str]:
    """Several where one class of characters is repeated: the next repetition may share one of its members alone."""
    parts = list(repeated)
    if len(parts) == 1 and str(parts[0][0]) in {"IN", "ANY"}:
        return _members(parts[0])
    return [_sample(parts) or "a"]


def _sample(tree: Sequence[Any]) -> str:
    """A short text that the parts match, but for what they look around for."""
    return "".join(_sample_of(part) for part in tree)


def _sample_of(part: tuple[Any, Any]) -> str:
    name, given = str(part[0]), part[1]
    if name == "LITERAL":
        return chr(int(given))
    if name in {"IN", "ANY", "NOT_LITERAL"}:
        return _members(part)[0]
    if name == "BRANCH":
        return _sample(given[1][0])
    if name.endswith("_REPEAT"):
        return _sample(given[2]) * max(1, int(given[0]))
    if name == "SUBPATTERN":
        return _sample(given[-1])
    return _sample(given) if name == "ATOMIC_GROUP" else ""


def _members(part: tuple[Any, Any]) -> Sequence[str]:
    name, given = str(part[0]), part[1]
    tests = given if name == "IN" else [part]
    found = (sign for sign in (*_TRIED, *map(chr, range(33, 0x2100))) if _is_member(sign, tests))
    return list(islice(found, _MEMBERS)) or ["a"]


def _is_member(sign: str, tests: Sequence[tuple[Any, Any]]) -> bool:
    is_negated = bool(tests) and str(tests[0][0]) == "NEGATE"
    return any(_is_one(sign, str(code), given) for code, given in tests) is not is_negated


def _is_one(sign: str, name: str, given: Any) -> bool:  # noqa: ANN401 - Python's own tree, one kind after the other
    match name:
        case "LITERAL":
            return ord(sign) == int(given)
        case "NOT_LITERAL":
            return ord(sign) != int(given)
        case "RANGE":
            return bool(given[0] <= ord(sign) <= given[1])
        case "ANY":
            return sign != "\n"
        case "CATEGORY":
            kind = str(given).removeprefix("CATEGORY_")
            is_kind = {
                "DIGIT": sign.isdigit(),
                "SPACE": sign.isspace(),
                "WORD": sign.isalnum() or sign == "_",
            }[kind.removeprefix("NOT_")]
            return is_kind is not kind.startswith("NOT_")
        case _:
            return False
