"""Statements of a row's texts about releases, held against what was measured.

Sentences are read by a few fixed forms ("from 2.6 on", "up to 2.8", "2.6 to 2.13 are wrong"), and only where one is
meant without doubt. What the evidence cannot contradict, because nobody measured there, is no finding.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Says(StrEnum):
    """The statement about a release: the answer changes with it (and stays so), after it, or it fails or passes, or
    nobody measured it.
    """

    CHANGES_FROM = "another answer from {} on"
    CHANGES_AT = "another answer with {} than before"
    CHANGES_AFTER = "another answer after {}"
    CHANGES_WITHIN = "another answer between {} and {}"
    FAILS = "fails on {}"
    PASSES = "passes on {}"
    UNMEASURED = "{} is not measured"


Release = tuple[int, ...]
"""(2, 6) for 2.6, which stands for any of its releases; (2, 6, 0) for 2.6.0."""


@dataclass(frozen=True)
class VersionClaim:
    """One form found in a text. `last` is the other end of CHANGES_WITHIN; `words` are the sentence."""

    says: Says
    release: Release
    words: str
    last: Release = ()

    @property
    def reading(self) -> str:
        """The claim as it was understood."""
        return self.says.format(*(".".join(map(str, release)) for release in (self.release, self.last)))


@dataclass(frozen=True)
class MeasuredReleases:
    """The releases that failed and passed on one hardware class, oldest first: `2.6.0`."""

    fails: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()

    @property
    def in_order(self) -> Sequence[tuple[Release, bool]]:
        answers = [
            *((_release(fail), True) for fail in self.fails),
            *((_release(release), False) for release in self.passes),
        ]
        return sorted(answers)

    @property
    def in_words(self) -> str:
        parts = (("fails on", self.fails), ("passes on", self.passes))
        return ", ".join(f"{words} {', '.join(releases)}" for words, releases in parts if releases)


# Another product's version stands in front of these; and what follows these words is no statement about the issue.
_FOREIGN = r"(?<!Triton )(?<!Python )(?<!CUDA )(?<!capability )(?<!numpy )(?<!Wan )(?<!Qwen)(?<!torchao )"
_V = rf"{_FOREIGN}(?<![\w.=<>/-])[12]\.\d{{1,2}}(?:\.\d{{1,2}})?(?![\w%]|\.\d|-)"
_NAMED = r"(?:torch |releases? |the |PyTorch )*"
_LIST = rf"{_V}(?:(?:, | and |, and | or ){_NAMED}{_V})*"
_NO_STATEMENT = re.compile(
    r"exists? |by default|as before|built for|came out|[Rr]ead (?:in|with)|sources of|or thereabouts|or later up"
    r"|said to|[Rr]eported of|report of|on old releases|\bnames?\b|Triton|it makes|\?$"
)
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] ")
_PART = re.compile(r"[;:]\s+")
_CLAUSE = re.compile(r"\s\(|\)|, (?=(?:and |but )?(?:right|wrong|torch|releases?|[12]\.\d))")
_WHO = "Who meets it"

_BAD = re.compile(r"\b(?:fails?|failed|wrong|affected|broken|dies?|refused?|crash(?:es)?)\b")
_GOOD = re.compile(r"\b(?:right|pass(?:es)?|correct|works?|compiles it)\b")
_UNMEASURED = re.compile(r"\b(?:not|never|nobody) (?:been )?(?:measured|tried|run)\b")
_NOT = re.compile(r"\b(?:not|no|neither|never|only|cannot|way|refused by)\b")

_FORMS: tuple[tuple[re.Pattern[str], Says], ...] = (
    (re.compile(rf"\b(?:[Ff]rom|[Ss]ince) {_NAMED}(?P<v>{_V})(?! or later)(?! to\b)"), Says.CHANGES_FROM),
    (re.compile(rf"(?P<v>{_V}) (?:and|or) (?:later|newer)"), Says.CHANGES_FROM),
    (re.compile(rf"\bbefore {_NAMED}(?P<v>{_V})"), Says.CHANGES_AT),
    (re.compile(rf"\b[Ff]ixed in {_NAMED}(?P<v>{_V})"), Says.CHANGES_AT),
    (re.compile(rf"(?P<v>{_V}) to {_NAMED}{_V}"), Says.CHANGES_AT),
    (re.compile(rf"{_V} to {_NAMED}(?P<v>{_V})"), Says.CHANGES_AFTER),
    (re.compile(rf"\b(?:[Uu]p to|[Uu]ntil|[Tt]hrough) {_NAMED}(?P<v>{_V})"), Says.CHANGES_AFTER),
    (re.compile(rf"(?P<v>{_V}) (?:and|or) (?:older|before|earlier)"), Says.CHANGES_AFTER),
)
_BETWEEN = re.compile(rf"\bbetween {_NAMED}(?P<v>{_V}) and {_NAMED}(?P<last>{_V})")
_LISTED = re.compile(_LIST)


def claims_in(text: str) -> Iterator[VersionClaim]:
    """The statements about releases of torch in a text of a row (Markdown)."""
    for paragraph in re.split(r"\n\s*\n", _FENCED.sub(" ", text)):
        for sentence in _SENTENCE.split(paragraph):
            words = " ".join(sentence.split())
            yield from _of_sentence(words, is_of_users=_WHO in paragraph)


def _of_sentence(words: str, *, is_of_users: bool) -> Iterator[VersionClaim]:
    parts = (part for part in _PART.split(_CODE.sub("code", words)) if "variant" not in part)
    for clause in (clause for part in parts for clause in _CLAUSE.split(part)):
        if _NO_STATEMENT.search(clause):
            continue
        if _UNMEASURED.search(clause):
            yield from (VersionClaim(Says.UNMEASURED, _release(version), words) for version in re.findall(_V, clause))
            continue
        edges = [
            VersionClaim(says, _release(match["v"]), words) for form, says in _FORMS for match in form.finditer(clause)
        ]
        edges += [
            VersionClaim(Says.CHANGES_WITHIN, _release(match["v"]), words, _release(match["last"]))
            for match in _BETWEEN.finditer(clause)
        ]
        yield from edges or _listed(clause, words, is_of_users=is_of_users)


def _listed(clause: str, words: str, *, is_of_users: bool) -> Iterator[VersionClaim]:
    is_bad, is_good = bool(_BAD.search(clause)), bool(_GOOD.search(clause))
    if is_bad == is_good and not (
        is_of_users and not is_good and re.search(rf"\bon {_NAMED}{_V}|[Uu]sers of {_NAMED}{_V}", clause)
    ):
        return
    if _NOT.search(clause):
        return
    for match in _LISTED.finditer(clause):
        for version in re.findall(_V, match[0]):
            yield VersionClaim(Says.PASSES if is_good else Says.FAILS, _release(version), words)


def contradiction(claim: VersionClaim, measured: Mapping[str, MeasuredReleases]) -> str | None:
    """The measured answers, where some hardware class contradicts a claim and none bears it out; else None."""
    answered = {hardware: answers for hardware, answers in sorted(measured.items()) if answers.in_order}
    held = {hardware: _holds(claim, answers.in_order) for hardware, answers in answered.items()}
    if True in held.values() or False not in held.values():
        return None
    return "; ".join(f"{hardware} {answered[hardware].in_words}" for hardware, holds in held.items() if holds is False)


def _holds(claim: VersionClaim, answers: Sequence[tuple[Release, bool]]) -> bool | None:
    """Whether the answers bear the claim out; None where nobody measured on the side that would show it."""
    match claim.says:
        case Says.FAILS | Says.PASSES:
            own = [fails for release, fails in answers if _is_of(release, claim.release)]
            return (claim.says is Says.FAILS) in own if own else None
        case Says.UNMEASURED:
            return not any(_is_of(release, claim.release) for release, _ in answers)
        case Says.CHANGES_WITHIN:
            return _changes_within(claim, answers)
        case Says.CHANGES_AT | Says.CHANGES_FROM:
            older = [answer for answer in answers if answer[0] < claim.release]
            newer = [answer for answer in answers if answer[0] >= claim.release]
            stays = claim.says is Says.CHANGES_AT or len({fails for _, fails in newer}) <= 1
            return _is_edge(older, newer[:1]) if stays else False
        case Says.CHANGES_AFTER:
            older = [answer for answer in answers if answer[0][: len(claim.release)] <= claim.release]
            return _is_edge(older, answers[len(older) :][:1])


def _is_edge(older: Sequence[tuple[Release, bool]], newer: Sequence[tuple[Release, bool]]) -> bool | None:
    """Whether the answer changes between the newest of the one and the oldest of the other."""
    return older[-1][1] is not newer[0][1] if older and newer else None


def _changes_within(claim: VersionClaim, answers: Sequence[tuple[Release, bool]]) -> bool:
    """Exactly there: an interval wider than the one that was measured lags behind it."""
    return any(
        was is not is_ and _is_of(before, claim.release) and _is_of(after, claim.last)
        for (before, was), (after, is_) in pairwise(answers)
    )


def _release(text: str) -> Release:
    return tuple(int(part) for part in text.split(".")[:3])


def _is_of(release: Release, named: Release) -> bool:
    return release[: len(named)] == named
