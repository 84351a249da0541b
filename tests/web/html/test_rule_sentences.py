"""What rules say is Chinese for readers of Chinese, all of it but what a process said."""

import random
import re
from collections.abc import Iterable, Iterator

import pytest

from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, WorkaroundVerdict
from knowngood.health.coverage.hygiene import remarks_on
from knowngood.store.knowledge.shipped import read_shipped
from knowngood.web.html.i18n import Language
from knowngood.web.html.rule_sentences import FORM_WORDS, in_chinese, rule_sentence
from tests.random_stores import random_patterns, store_of

SHIPPED = read_shipped().knowledge.known
THREE_WORDS = re.compile(r"[A-Za-z][a-z'-]+(?:[ ,;]+[A-Za-z][a-z'-]+){2}")
MARKED = re.compile(r'<span lang="en">.*?</span>', re.DOTALL)

# What a repro says of itself when it cannot be tried, and notes that repeat a line of a log.
_OF_THE_SCRIPT = {
    "this Triton has no constexpr_function",
    "this release refuses values wider than queries, compiled or not",
}
_OF_RULES = {WorkaroundVerdict.PARTIAL, WorkaroundVerdict.UNVERIFIED, WorkaroundVerdict.HARMFUL}


def sentences_of(known: Known) -> Iterator[str]:
    for issue in known.issues.values():
        for hardware in known.hardware:
            yield known.told(issue, hardware)
            yield known.history(issue.id, hardware).sentence
            for build in known.builds.values():
                yield from _of_cell(known.cell(issue, build, hardware))
        for remark in remarks_on(issue, known):
            yield remark.sentence


def _of_cell(cell: Cell) -> Iterator[str]:
    yield cell.reason
    yield own_reason(cell)
    for finding in cell.workarounds.values():
        if finding.verdict in _OF_RULES:
            yield finding.note


def _as_judged(text: str) -> str:
    """Attempts of stores by chance end `because pass`, which no judgement says."""
    return text.replace("because pass", "passed; path proven (eager 1x)").replace("because ", "failed otherwise: ")


def unsaid(texts: Iterable[str]) -> set[str]:
    return {text for text in texts if text and in_chinese(text) is None}


def half_said(texts: Iterable[str]) -> set[str]:
    told = (in_chinese(text) for text in texts if text)
    return {one for one in (MARKED.sub("", str(one)) for one in told if one is not None) if THREE_WORDS.search(one)}


def test_every_sentence_about_the_shipped_results_has_chinese() -> None:
    texts = set(sentences_of(SHIPPED))
    assert len(texts) > 1000
    assert unsaid(texts) <= _OF_THE_SCRIPT
    assert half_said(texts) == set()


@pytest.mark.parametrize("seed", range(4))
def test_every_sentence_about_stores_by_chance_has_chinese(seed: int) -> None:
    known = store_of(random_patterns(random.Random(seed), density=0.8))  # noqa: S311 - no secret
    texts = {_as_judged(text) for text in sentences_of(known)}
    assert unsaid(texts) == set()
    assert half_said(texts) == set()


def test_a_sentence_that_no_form_knows_is_found() -> None:
    """The two tests above can fail."""
    planted = ["it was a dark night", "fails in a galaxy far away", "passes on every second release"]
    assert unsaid(planted) == set(planted)


TOLD = {
    "not run yet": "尚未运行",
    "fails up to 2.7.1 (older not known)": "直到 2.7.1 都失败（更早的未知）",  # noqa: RUF001 - Chinese
    "fails in 2.7.0, fixed in (2.7.0, 2.8.0]": "在 2.7.0 上失败，在 (2.7.0, 2.8.0] 中修复",  # noqa: RUF001 - Chinese
    "Fails in 2.7.0, fixed in (2.7.0, 2.8.0]": "在 2.7.0 上失败，在 (2.7.0, 2.8.0] 中修复",  # noqa: RUF001 - Chinese
    "with a, b: not run yet": "变体 a、b：尚未运行",  # noqa: RUF001 - Chinese
    "passes on all 3 measured · 1 workaround helps": "在测量过的 3 个版本上全部通过 · 1 个解法有效",
    "cured 2.5.0, 2.5.1, 2.6.0 and 4 more": "在 2.5.0、2.5.1、2.6.0 及另外 4 个 上有效",
    "failed otherwise: no <b> at all": '以别的方式失败：<span lang="en">no &lt;b&gt; at all</span>',  # noqa: RUF001 - Chinese
}


@pytest.mark.parametrize("text", TOLD)
def test_a_sentence_is_told_by_its_forms(text: str) -> None:
    assert str(rule_sentence(text, Language.CHINESE)) == TOLD[text]


def test_in_english_a_sentence_stays_as_the_rule_said_it() -> None:
    assert str(rule_sentence("fails in <2.7.0>", Language.ENGLISH)) == "fails in &lt;2.7.0&gt;"


def test_what_no_form_knows_is_marked_as_the_english_it_is() -> None:
    assert str(rule_sentence("a word & two more", Language.CHINESE)) == '<span lang="en">a word &amp; two more</span>'


def test_no_form_is_kept_twice() -> None:
    assert len(FORM_WORDS) == len(set(FORM_WORDS))
