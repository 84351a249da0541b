"""Random queries of every shape, as values: what texts are held to."""

from collections.abc import Callable
from random import Random

from knowngood.query.fields import FIELDS
from knowngood.query.parser import And, Atom, Not, Or, Query, Text

TEXTS = (
    "bmm",
    "wrong numbers",
    "or",
    "not",
    "-x",
    "a:b",
    "C++",
    'say "x"',
    "back\\slash",
    "结果",
    "a|b",
    "a,b",
    "(x)",
    "::x",
    "all(",
    "{x}",
)
VERSIONS = (
    "2",
    "2.6",
    "2.7.1",
    "2.7.1+cu126",
    "2.6..2.8",
    "2.8..",
    "..2.6",
    ">=2.6",
    ">=2.6,<2.8",
    "!=2.7.*",
    "~=2.7.0",
    "2.8.0.dev20250401",
)
OTHER_VERSIONS = ("none", "12.4", ">=3.2", "3.11", "3.2..3.4", "..12.6")
AGES = ("<90d", ">=2w", "<=12h", ">1d")

_OPEN: dict[str, tuple[str, ...]] = {
    "build": (*VERSIONS, "torch-2.7.1+cu126", "torch-2.6.0+cu124~py312"),
    "cuda": OTHER_VERSIONS,
    "triton": OTHER_VERSIONS,
    "python": OTHER_VERSIONS[1:],
    "age": AGES,
    "exercises": ("inductor_cpp", "operator", "operator:aten::bmm"),
    "severity": ("low", "high", ">=medium", "<critical"),
}


def random_query(chance: Random, depth: int = 3) -> Query:
    shape = chance.random()
    if depth and shape < 0.4:
        parts = tuple(random_query(chance, depth - 1) for _ in range(chance.randint(2, 4)))
        return And(parts) if shape < 0.25 else Or(parts)
    if depth and shape < 0.5:
        return Not(random_query(chance, depth - 1))
    return chance.choice(_LEAVES)(chance)


def _text(chance: Random) -> Query:
    return Text(chance.choice(TEXTS))


def _atom(chance: Random) -> Atom:
    field = chance.choice(list(FIELDS.values()))
    known = _OPEN.get(field.name) or field.words or (*TEXTS, "=Inductor C++")
    values = chance.sample(known, chance.choice([1, 1, 1, min(2, len(known))]))
    return Atom(field.name, tuple(values))


_LEAVES: tuple[Callable[[Random], Query], ...] = (_text, _atom, _atom)
