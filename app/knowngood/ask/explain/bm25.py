"""How alike a text is to a few hundred others, by the words they share.

The method is BM25 with k1 = 1.2 and b = 0.75: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), formula 3.13, with the inverse document frequency that never falls below zero, as Lucene has it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

_K1, _B = 1.2, 0.75
_WORD = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]{1,63}")
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")
_SHORTEST = 3
_MOST_WORDS = 64  # of a question: the rarest ones

# Words of the language itself, and of every traceback: they tell no two failures apart.
_SAID_EVERYWHERE = """
the and for with from that this was were are not but have has had you your can could would should what when where
which there here they them then than its into out our all any one two get got use used using also only just does did
how why will been because about after before some more most other such very like same each please thanks help hello
file line most recent call last traceback self args kwargs return none true false def class import lib site packages
python python3 conda miniconda3 train main script usr home root opt env venv conda user raise error exception torch
module
"""
_EMPTY = frozenset(_SAID_EVERYWHERE.split())


@dataclass(frozen=True)
class Likeness:
    """`score` is the BM25 of the text over the greatest that the question's words can come to: between 0 and 1.

    `words` are the shared ones, the most telling first.
    """

    name: str
    score: float
    words: tuple[str, ...]


def words_of(text: str) -> list[str]:
    """Words and names in small letters; `flex_attention` and `FlexAttention` also by their parts."""
    words: list[str] = []
    for name in _WORD.findall(text):
        words.append(name.lower())
        parts = _PART.findall(name)
        if len(parts) > 1:
            words += [part.lower() for part in parts]
    return [word for word in words if len(word) >= _SHORTEST and word not in _EMPTY]


def rarity(n: int, whole: int) -> float:
    """The inverse document frequency of a word that `n` of the `whole` texts have."""
    return log(1 + (whole - n + 0.5) / (n + 0.5))


class Texts:
    """Texts by name, ready to be compared with a question. Made once, read by many."""

    def __init__(self, texts: Mapping[str, Iterable[str]]) -> None:
        """Each text is told in parts; a word counts once for each part that has it, so that a long log weighs no more
        than a title.
        """
        self._bags = {
            name: Counter(word for part in parts for word in set(words_of(part))) for name, parts in texts.items()
        }
        self._lengths = {name: sum(bag.values()) for name, bag in self._bags.items()}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        self._seen = Counter(word for bag in self._bags.values() for word in bag)

    def nearest(self, question: Sequence[str], among: Iterable[str] | None = None) -> list[Likeness]:
        """Every text that shares a word with the question, the most alike first."""
        asked = sorted(set(question), key=lambda word: (-self._rarity(word), word))[:_MOST_WORDS]
        whole = sum(self._rarity(word) for word in asked) * (_K1 + 1)
        names = self._bags if among is None else [name for name in among if name in self._bags]
        found = [self._likeness(name, asked, whole) for name in names]
        return sorted((one for one in found if one.words), key=lambda one: (-one.score, one.name))

    def _likeness(self, name: str, asked: Sequence[str], whole: float) -> Likeness:
        weights = {word: self._weight(name, word) for word in asked if word in self._bags[name]}
        words = sorted(weights, key=lambda word: (-weights[word], word))
        return Likeness(name, sum(weights.values()) / whole if whole else 0.0, tuple(words))

    def _weight(self, name: str, word: str) -> float:
        times = self._bags[name][word]
        size = 1 - _B + _B * self._lengths[name] / self._mean
        return self._rarity(word) * times * (_K1 + 1) / (times + _K1 * size)

    def _rarity(self, word: str) -> float:
        return rarity(self._seen[word], len(self._bags))
