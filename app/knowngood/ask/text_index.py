"""Texts by the words that they share with a question: the issues that a pasted failure is like, and those that a few
words are about. Pure.

`nearest` is BM25 with k1 = 1.2 and b = 0.75: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), formula 3.13, with the inverse document frequency that never falls below zero, as Lucene has it. `find`
weighs words by the same frequency, titles before summaries, and reads a misspelt word as those nearest to it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

import regex
from packaging.utils import canonicalize_name

from knowngood.ask.reading import ELSEWHERE, SAID_EVERYWHERE, SAID_OTHERWISE
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import Issue
from knowngood.domain.threads import edits

Part = tuple[str, float]
"""A part of a text, and what its words weigh in `find`."""

Meant = tuple[Mapping[str, float], str]
"""The words of an index that a term may be, with how well each is that; and the one that it is guessed to be."""

NO_MEANING: Meant = ({}, "")

_K1, _B = 1.2, 0.75
_WORD = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]{1,63}")
_WORD_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")
_SHORTEST_WORD = 3
_MOST_WORDS = 64  # of a question: the rarest ones

_NAME = re.compile(r"[A-Za-z0-9_]+")
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_SHORTEST_TERM, _LONGEST_TERM, _MOST_TERMS = 2, 60, 24
_TITLE, _NAMED, _TEXT = 3.0, 2.0, 1.0
_EXACT, _BEGUN, _PARTLY, _MISSPELT = 1.0, 0.8, 0.8, 0.7
_SHORTEST_BEGINNING = 3
_FEWEST_FOR_ONE, _FEWEST_FOR_TWO = 4, 8  # letters of a word that may differ by so many
_PHRASE = {_TITLE: 4.0, _TEXT: 2.0}
_ENOUGH = 0.5  # of the words
_TELLING = 0.75  # of what the most telling word says
_UNHEARD = 3  # a word that no text has tells as much as one that so many have
_FEW = 0.1  # of the texts: a word that more of them have is no guess at what alone is asked for


def words_of(text: str) -> list[str]:
    """Words and names in small letters; `flex_attention` and `FlexAttention` also by their parts. Without those that
    tell no two failures apart.
    """
    words: list[str] = []
    for name in _WORD.findall(text):
        words.append(name.lower())
        parts = _WORD_PART.findall(name)
        if len(parts) > 1:
            words += [part.lower() for part in parts]
    return [word for word in words if len(word) >= _SHORTEST_WORD and word not in SAID_EVERYWHERE]


def terms_of(text: str) -> list[str]:
    """Names and numbers in small letters, with their parts; Chinese by pairs of signs."""
    terms = [*_chinese_pairs(text), *(term for name in _NAME.findall(text) for term in _terms_of_name(name))]
    return [term for term in terms if _SHORTEST_TERM <= len(term) <= _LONGEST_TERM]


@lru_cache(maxsize=1 << 15)  # the texts of a catalogue have a tenth as many names as words
def _terms_of_name(name: str) -> tuple[str, ...]:
    parts = _NAME_PART.findall(name)
    return (name.lower(), *(part.lower() for part in parts if len(parts) > 1))


def _chinese_pairs(text: str) -> list[str]:
    return [run[at : at + 2] for run in _CHINESE.findall(text) for at in range(max(1, len(run) - 1))]


def parts_of(issue: Issue) -> Iterable[Part]:
    """The texts by which an issue is found."""
    texts = (
        issue.summary,
        issue.summary_zh,
        re.sub(r"\\.|[^\w\s.]", " ", issue.signature.pattern),
        " ".join(f"{link.title} {link.name}" for link in issue.links),
        " ".join(f"{workaround.id} {workaround.title} {workaround.title_zh}" for workaround in issue.workarounds),
        " ".join(claim.text for claim in issue.claims),
        "silent" if issue.silent else "",
    )
    title, named = f"{issue.title} {issue.title_zh}", f"{issue.id} {issue.component} {issue.requires.package}"
    return [(title, _TITLE), (named, _NAMED), *((text, _TEXT) for text in texts)]


@dataclass(frozen=True)
class Likeness:
    """`score` is the BM25 of the text over the greatest that the question's words can come to: between 0 and 1.

    `words` are the shared ones, the most telling first.
    """

    name: str
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """The texts that a few words are about, best first. `known` are the words that any text has as they are written:
    only these may narrow what somebody asks for. `guesses` are those of the best text that were read as another word,
    and `is_exact` says that it has all words as they are written.
    """

    names: tuple[str, ...]
    known: tuple[str, ...]
    guesses: Mapping[str, str]
    is_exact: bool


class TextIndex:
    """Texts by name, each in parts. Made once, read by many."""

    def __init__(self, texts: Mapping[str, Iterable[Part]], words_of: Callable[[str], Iterable[str]]) -> None:
        """A word counts once for each part that has it, so that a long log weighs no more than a title. Parts of no
        weight are compared, and never found.
        """
        self._postings: dict[str, dict[str, tuple[int, float]]] = {}
        self._lengths = dict.fromkeys(texts, 0)
        self._parts: dict[str, list[Part]] = defaultdict(list)
        for name, parts in texts.items():
            postings: dict[str, tuple[int, float]] = {}
            for text, weight in parts:
                for word in set(words_of(text)):
                    times, heaviest = postings.get(word, (0, 0.0))
                    postings[word] = times + 1, max(heaviest, weight)
                self._parts[name] += [(text.casefold(), weight)] if weight else []
            self._lengths[name] = sum(times for times, _ in postings.values())
            for word, posting in postings.items():
                self._postings.setdefault(word, {})[name] = posting
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        self._by_length = grouped(self._postings, len)

    def _rarity(self, n: int) -> float:
        """The inverse document frequency of a word that `n` of the texts have."""
        return log(1 + (len(self._lengths) - n + 0.5) / (n + 0.5))

    # how alike

    def nearest(self, question: Iterable[str], among: Iterable[str] | None = None) -> list[Likeness]:
        """Every text that shares a word with the question, the most alike first."""
        rarities = {word: self._rarity(len(self._postings.get(word, ()))) for word in question}
        rarest = sorted(rarities, key=lambda word: (-rarities[word], word))[:_MOST_WORDS]
        whole = sum(rarities[word] for word in rarest) * (_K1 + 1)
        weights: dict[str, dict[str, float]] = defaultdict(dict)
        for word in rarest:
            for name, (times, _) in self._postings.get(word, {}).items():
                size = 1 - _B + _B * self._lengths[name] / self._mean
                weights[name][word] = rarities[word] * times * (_K1 + 1) / (times + _K1 * size)
        likenesses = [
            Likeness(
                name, sum(by_word.values()) / whole, tuple(sorted(by_word, key=lambda term: (-by_word[term], term)))
            )
            for name, by_word in weights.items()
            if among is None or name in among
        ]
        return sorted(likenesses, key=lambda likeness: (-likeness.score, likeness.name))

    # what is meant

    def find(self, words: Sequence[str], packages: Collection[str] = ()) -> Findings:
        """The texts that these words are about. Words that name one of `packages` are read as they are written.

        A text has half of the words at least, and nearly as many as the best; what is guessed of a word counts
        neither way. Where no text has any of the words that say most, none is about them.
        """
        terms = {word: _split_terms(word) for word in words}
        wanted = list(dict.fromkeys(term for each in terms.values() for term in each))[:_MOST_TERMS]
        named = [terms[word] for word in words if canonicalize_name(word) in packages]
        unheard = ELSEWHERE.union(*(each for each in named if each and not self._having_all(each)))
        meant = {term: NO_MEANING if term in unheard else self._meant(term) for term in wanted}
        counting = {term for term in wanted if not meant[term][1]}
        if not counting:
            counting, meant = set(wanted), {term: self._rare(meaning) for term, meaning in meant.items()}
        scores = self._scores(meant)
        says = {term: self._rarity(len(self._having(meant[term][0])) or _UNHEARD) for term in wanted}
        shares = {name: round(len(counting & scores[name].keys()) / len(counting), 3) for name in scores}
        least = max(_ENOUGH, max(shares.values(), default=0.0) - _ENOUGH / 2)
        is_about = any(meant[term][0] for term in wanted if says[term] >= _TELLING * max(says.values()))
        names = [name for name in scores if shares[name] >= least] if is_about else []
        phrase = " ".join(wanted)
        names.sort(key=lambda name: (-shares[name], -sum(scores[name].values()) - self._bonus(name, phrase), name))
        guesses = {term: meant[term][1] for term in (scores[names[0]] if names else ()) if meant[term][1]}
        is_known = {term: bool(meaning) and not guess for term, (meaning, guess) in meant.items()}
        known = tuple(word for word in words if all(is_known.get(term, True) for term in terms[word]))
        is_exact = bool(names) and not guesses and len(scores[names[0]]) == len(wanted)
        return Findings(tuple(names), known, guesses, is_exact)

    def _having(self, words: Iterable[str]) -> Collection[str]:
        """The texts that have any of the words."""
        return {name for word in words for name in self._postings[word]}

    def _having_all(self, terms: Sequence[str]) -> Collection[str]:
        """The texts that have all of the terms as they are written."""
        return set.intersection(*({*self._postings.get(term, ())} for term in terms))

    def _rare(self, meant: Meant) -> Meant:
        """A guess that says something; nothing for any other."""
        few = max(_UNHEARD, _FEW * len(self._lengths))
        return meant if len(self._having(meant[0])) <= few else NO_MEANING

    def _scores(self, meant: Mapping[str, Meant]) -> Mapping[str, Mapping[str, float]]:
        """The score that each term of a question adds to a text, by text."""
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        for term, (known, _) in meant.items():
            for word, quality in known.items():
                rarity = self._rarity(len(self._postings[word]))
                for name, (_, weight) in self._postings[word].items():
                    scores[name][term] = max(quality * weight * rarity, scores[name].get(term, 0.0))
        return scores

    def _bonus(self, name: str, phrase: str) -> float:
        """The bonus of a text that has the whole question in one part."""
        return max((_PHRASE.get(weight, 0.0) for text, weight in self._parts[name] if phrase in text), default=0.0)

    def _meant(self, term: str) -> Meant:
        also = SAID_OTHERWISE.get(term, "")
        if term in self._postings:
            return {term: _EXACT} | ({also: _MISSPELT} if also in self._postings else {}), ""
        if also in self._postings:
            return {also: _EXACT}, ""
        begun = (
            [posting for posting in self._postings if posting.startswith(term)]
            if len(term) >= _SHORTEST_BEGINNING
            else []
        )
        if begun:
            return dict.fromkeys(begun, _BEGUN), ""
        if near := self._near(term):
            return dict.fromkeys(near, _MISSPELT), near[0]
        parts = [part.lower() for part in _NAME_PART.findall(term)] if "_" in term else []
        return {part: _PARTLY for part in parts if part in self._postings and len(part) >= _SHORTEST_BEGINNING}, ""

    def _near(self, term: str) -> list[str]:
        """The known words with the fewest letters changed, of as many as a word of this length may have."""
        most = (len(term) >= _FEWEST_FOR_ONE) + (len(term) >= _FEWEST_FOR_TWO)
        letters = set(term)
        nearest: list[tuple[int, int, str]] = []
        for length in range(len(term) - most, len(term) + most + 1) if most else ():
            for known in self._by_length.get(length, ()):
                if len(letters.symmetric_difference(known)) <= 2 * most:
                    distance = edits(term, known, most)
                    if distance <= most:
                        nearest.append((distance, -len(self._postings[known]), known))
        least = min(nearest, default=(0, 0, ""))[0]
        return [known for distance, _, known in sorted(nearest) if distance == least]


def _split_terms(word: str) -> list[str]:
    return [*(name.lower() for name in _NAME.findall(word) if len(name) >= _SHORTEST_TERM), *_chinese_pairs(word)]


# -- The search for signatures in a text of a stranger, which takes no longer than it may ------------------------------


class SearchBudget:
    """How long all signatures together may be looked for, and one of them at most. Seconds of `clock`.

    The clock is looked at now and then: a pattern that was to end after 0.2 s ended after one second. With the shipped
    signatures a megabyte written to be slow takes 0.8 s, a log of that size 0.12 s (one shared core, 2026-11-21).
    """

    def __init__(self, clock: Callable[[], float], whole_s: float = 2.0, each_s: float = 0.5) -> None:
        self._clock = clock
        self._until = clock() + whole_s
        self._each_s = each_s

    def search(self, pattern: str, text: str, start: int = 0, end: int | None = None) -> "regex.Match[str] | None":
        """Search as `re.search` does. Raises TimeoutError."""
        left = min(self._each_s, self._until - self._clock())
        if left <= 0:
            raise TimeoutError
        return regex.search(pattern, text, pos=start, endpos=end, timeout=left, concurrent=True)
