"""Issues found by words: titles before summaries, rare words before common ones, misspelt words by those nearest. Pure.

The weight of a word is the inverse document frequency of BM25 (see `explain/bm25.py`); a word counts once for an
issue, with the best field that has it, so that a long summary weighs no more than a title.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from knowngood.ask.explain.bm25 import rarity
from knowngood.domain.issue import Issue
from knowngood.domain.naming.edit_distance import edits

_NAME = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_SHORTEST, _LONGEST, _MOST_WORDS = 2, 60, 24
_TITLE, _NAMED, _TOLD = 3.0, 2.0, 1.0
_EXACT, _BEGUN, _PARTLY, _MISSPELT = 1.0, 0.8, 0.8, 0.7
_SHORTEST_BEGINNING = 3
_FEWEST_FOR_ONE, _FEWEST_FOR_TWO = 4, 8  # letters of a word that may differ by so many
_PHRASE_IN_TITLE, _PHRASE = 4.0, 2.0

_SAID_OTHERWISE: Mapping[str, str] = {
    "oom": "memory",
    "recompile": "anew",
    "recompiles": "anew",
    "recompilation": "anew",
    "cudagraph": "graphs",
    "cudagraphs": "graphs",
    "aotinductor": "aoti",
    "attention": "sdpa",
    "gradient": "grad",
    "segfault": "dies",
    "crash": "dies",
    "wrong": "silent",
}


@dataclass(frozen=True)
class Found:
    """`matched` is the share of the words that the issue has; `corrected` are those that were read as another word."""

    issue: str
    score: float
    matched: float
    is_exact: bool
    corrected: Mapping[str, str]


@dataclass(frozen=True)
class _Meant:
    """The words of the index that one word of a question may be, with how well each is that."""

    words: Mapping[str, float]
    corrected: str = ""


def terms_of(text: str) -> Iterator[str]:
    """Names in small letters, with their parts; Chinese by pairs of signs."""
    for name in _NAME.findall(text):
        yield name.lower()
        parts = _PART.findall(name)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)
    for run in _CHINESE.findall(text):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))


class WordIndex:
    """Made once for a catalogue, read by many."""

    def __init__(self, issues: Iterable[Issue]) -> None:
        self._postings: dict[str, dict[str, float]] = defaultdict(dict)
        self._texts: dict[str, tuple[str, str]] = {}
        self._by_length: dict[int, list[str]] = defaultdict(list)
        for issue in issues:
            self._add(issue)
        for word in self._postings:
            self._by_length[len(word)].append(word)
        self._count = max(1, len(self._texts))

    def _add(self, issue: Issue) -> None:
        links = " ".join(f"{link.title} {link.name}" for link in issue.links)
        told = (
            issue.summary,
            issue.summary_zh,
            re.sub(r"\\.|[^\w\s.]", " ", issue.signature.pattern),
            links,
            " ".join(f"{one.id} {one.title} {one.title_zh}" for one in issue.workarounds),
            " ".join(claim.text for claim in issue.claims),
            "silent" if issue.silent else "",
        )
        title = f"{issue.title} {issue.title_zh}"
        fields = ((title, _TITLE), (f"{issue.id} {issue.component} {issue.requires.package}", _NAMED))
        for text, weight in (*fields, *((text, _TOLD) for text in told)):
            for word in terms_of(text):
                if _SHORTEST <= len(word) <= _LONGEST:
                    known = self._postings[word]
                    known[issue.id] = max(weight, known.get(issue.id, 0.0))
        self._texts[issue.id] = title.casefold(), " ".join(told).casefold()

    def find(self, words: Iterable[str]) -> tuple[Found, ...]:
        """The issues that have any of the words, the best first; those that have all of them before all others."""
        asked = [name for word in words for name in _asked_of(word)][:_MOST_WORDS]
        asked = list(dict.fromkeys(asked))
        meant = {word: self._meant(word) for word in asked}
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        for word, one in meant.items():
            for known, quality in one.words.items():
                having = self._postings[known]
                for issue, weight in having.items():
                    score = quality * weight * rarity(len(having), self._count)
                    scores[issue][word] = max(score, scores[issue].get(word, 0.0))
        phrase = " ".join(asked)
        found = [self._found(issue, by_word, meant, phrase) for issue, by_word in scores.items()]
        return tuple(sorted(found, key=lambda one: (-one.matched, -one.score, one.issue)))

    def _found(self, issue: str, by_word: Mapping[str, float], meant: Mapping[str, _Meant], phrase: str) -> Found:
        title, told = self._texts[issue]
        bonus = _PHRASE_IN_TITLE if phrase in title else _PHRASE if phrase in told else 0.0
        corrected = {word: meant[word].corrected for word in by_word if meant[word].corrected}
        return Found(
            issue=issue,
            score=sum(by_word.values()) + bonus,
            matched=round(len(by_word) / len(meant), 3),
            is_exact=len(by_word) == len(meant) and not corrected,
            corrected=corrected,
        )

    def _meant(self, word: str) -> _Meant:
        if word in self._postings:
            also = _SAID_OTHERWISE.get(word, "")
            return _Meant({word: _EXACT} | ({also: _MISSPELT} if also in self._postings else {}))
        if (also := _SAID_OTHERWISE.get(word, "")) in self._postings:
            return _Meant({also: _EXACT})
        begun = (
            [known for known in self._postings if known.startswith(word)] if len(word) >= _SHORTEST_BEGINNING else []
        )
        if begun:
            return _Meant(dict.fromkeys(begun, _BEGUN))
        if near := self._near(word):
            return _Meant(dict.fromkeys(near, _MISSPELT), corrected=near[0])
        parts = [part.lower() for part in _PART.findall(word)] if "_" in word else []
        had = [part for part in parts if part in self._postings and len(part) >= _SHORTEST_BEGINNING]
        return _Meant(dict.fromkeys(had, _PARTLY))

    def _near(self, word: str) -> list[str]:
        """The known words with the fewest letters changed, of as many as a word of this length may have."""
        most = (len(word) >= _FEWEST_FOR_ONE) + (len(word) >= _FEWEST_FOR_TWO)
        letters = set(word)
        nearest: list[tuple[int, int, str]] = []
        for length in range(len(word) - most, len(word) + most + 1) if most else ():
            for known in self._by_length.get(length, ()):
                if len(letters.symmetric_difference(known)) <= 2 * most:
                    distance = edits(word, known, most)
                    if distance <= most:
                        nearest.append((distance, -len(self._postings[known]), known))
        least = min(nearest, default=(0, 0, ""))[0]
        return [known for distance, _, known in sorted(nearest) if distance == least]


def _asked_of(word: str) -> Iterator[str]:
    yield from (name.lower() for name in _NAME.findall(word) if len(name) >= _SHORTEST)
    for run in _CHINESE.findall(word):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
