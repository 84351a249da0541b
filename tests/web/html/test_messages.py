"""What rules say is Chinese for readers of Chinese, all of it but what somebody else said."""

import random
import re
from collections.abc import Iterable, Iterator

import pytest

from knowngood.domain.message import SENTENCES, Message, Quoted, clauses, quoted
from knowngood.domain.verdicts.inference import own_reason
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell
from knowngood.health.rules import remarks_on
from knowngood.store.knowledge.snapshot import read_shipped
from knowngood.web.html.i18n import Language, in_chinese, in_words
from tests.random_stores import random_patterns, store_of

FAILS = Message("it_affected")
SHIPPED = read_shipped().knowledge.known
THREE_WORDS = re.compile(r"[A-Za-z][a-z'-]+(?:[ ,;]+[A-Za-z][a-z'-]+){2}")
MARKED = re.compile(r'<span lang="en">.*?</span>', re.DOTALL)


def messages_of(known: Known) -> Iterator[Message]:
    for issue in known.issues.values():
        for hardware in known.hardware:
            yield known.history_sentence(issue, hardware)
            for build in known.builds.values():
                yield from _of_cell(known.cell(issue, build, hardware))
        for remark in remarks_on(issue, known):
            yield remark.sentence


def _of_cell(cell: Cell) -> Iterator[Message]:
    yield cell.reason
    yield own_reason(cell)
    yield from (finding.note for finding in cell.workarounds.values() if finding.note)


def half_said(messages: Iterable[Message]) -> set[str]:
    told = {MARKED.sub("", in_chinese(one)) for one in messages}
    return {one for one in told if THREE_WORDS.search(one)}


def test_all_that_the_shipped_results_say_is_chinese() -> None:
    messages = set(messages_of(SHIPPED))
    assert len(messages) > 1000
    assert half_said(messages) == set()


@pytest.mark.parametrize("seed", range(4))
def test_all_that_stores_by_chance_say_is_chinese(seed: int) -> None:
    known = store_of(random_patterns(random.Random(seed), density=0.8))  # noqa: S311 - no secret
    assert half_said(set(messages_of(known))) == set()


def test_english_in_a_sentence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two tests above can fail."""
    monkeypatch.setitem(SENTENCES, "dark", "one very dark night")
    assert half_said([Message("dark")]) == {"one very dark night"}


TOLD = {
    "尚未运行": Message("not_run"),
    "直到 2.7.1 都失败（更早的未知）": Message(  # noqa: RUF001 - Chinese
        "aside", said=Message("fails_up_to", last="2.7.1", does=FAILS), aside=(Message("older_unknown"),)
    ),
    "变体 a、b：尚未运行": Message("with", names=("a", "b"), said=Message("not_run")),  # noqa: RUF001 - Chinese
    "对变体 a 有效；尚未运行": clauses([Message("helps_with", names=("a",)), Message("not_run")]),  # noqa: RUF001 - Chinese
    "2.5.0、2.5.1、2.6.0 及另外 4 个": Message("and_more", names=("2.5.0", "2.5.1", "2.6.0"), n=4),
    '以别的方式失败：<span lang="en">no &lt;b&gt; {at} all</span>': Message(  # noqa: RUF001 - Chinese
        "failed_otherwise", text=Quoted("no <b> {at} all")
    ),
    "自 &lt;2.7.0&gt; 起失败": Message("fails_since", by="<2.7.0>", does=FAILS),
}


@pytest.mark.parametrize("words", TOLD)
def test_a_message_in_chinese(words: str) -> None:
    assert str(in_words(TOLD[words], Language.CHINESE)) == words


def test_in_english_a_message_is_escaped_and_may_begin_a_sentence() -> None:
    message = Message("fails_since", by="<2.7.0>", does=FAILS)
    assert str(in_words(message, Language.ENGLISH)) == "fails since &lt;2.7.0&gt;"
    assert str(in_words(message, Language.ENGLISH, begins=True)) == "Fails since &lt;2.7.0&gt;"
    assert str(in_words(quoted("x"), Language.ENGLISH)) == "x"
    assert str(in_words(None, Language.CHINESE)) == ""
