"""Random queries of every shape, as values: what texts and JSON are held to."""

from collections.abc import Callable
from random import Random

from knowngood.app.query.fields import FIELDS, VERDICTS, Kind
from knowngood.app.query.parser import And, Atom, Claimed, Counted, InOrder, Not, Or, Quantifier, Query, Term, Text

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
NUMBERS = ("0", "3", ">=3", "<2", "!=1", "2..4", "..2", "1..", "<=5", ">4")

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


def _atom(chance: Random, *kinds: Kind) -> Atom:
    field = chance.choice([one for one in FIELDS.values() if not kinds or one.kind in kinds])
    known = _OPEN.get(field.name) or field.words or (*TEXTS, "=Inductor C++")
    values = chance.sample(known, chance.choice([1, 1, 1, min(2, len(known))]))
    return Atom(field.name, tuple(values))


def _where(chance: Random) -> tuple[Term, ...]:
    atoms = [_atom(chance, Kind.PLACE, Kind.CELL) for _ in range(chance.randint(0, 3))]
    return tuple(Not(atom) if chance.random() < 0.2 else atom for atom in atoms)


def _claimed(chance: Random) -> Query:
    return Claimed(chance.choice(list(Quantifier)), _where(chance), _atom(chance, Kind.CELL))


def _counted(chance: Random) -> Query:
    return Counted(_where(chance), chance.choice(NUMBERS))


def _in_order(chance: Random) -> Query:
    steps = [tuple(chance.sample(VERDICTS, chance.randint(1, 2))) for _ in range(chance.randint(2, 4))]
    return InOrder(tuple(steps))


_LEAVES: tuple[Callable[[Random], Query], ...] = (_text, _atom, _atom, _claimed, _counted, _in_order)
