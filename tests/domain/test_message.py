"""A message is no text: it is compared by what it says, and put in words at the edge alone."""

import re

import pytest

from knowngood.domain.message import SENTENCES, Message, Quoted, clauses, either, english, joined, quoted, sentence

NOT_RUN = Message("not_run")


IN_A_TEXT = {
    "str": lambda: str(NOT_RUN),
    "an f-string": lambda: f"{NOT_RUN}",
    "a width": lambda: f"{NOT_RUN:>20}",
    "format": lambda: "{}".format(NOT_RUN),  # noqa: UP032
    "a percent sign": lambda: "%s" % NOT_RUN,  # noqa: UP031
}


@pytest.mark.parametrize("written", IN_A_TEXT)
def test_a_message_in_a_text_fails_loudly(written: str) -> None:
    with pytest.raises(TypeError):
        IN_A_TEXT[written]()


def test_a_message_is_no_sentence() -> None:
    """The type checker refuses the comparison: without its remark it would call the comment needless."""
    assert not NOT_RUN == "not run yet"  # type: ignore[comparison-overlap]  # noqa: SIM201
    assert english(NOT_RUN) == "not run yet"


def test_messages_are_equal_by_key_and_values() -> None:
    one, other = (Message("with", names=("a",), said=quoted("x")) for _ in range(2))
    assert (one, hash(one)) == (other, hash(other))
    assert len({one, Message("with", names=("b",), said=quoted("x")), NOT_RUN}) == 3


SAID = {
    "1 of 1 attempt ended with the issue's own signature": Message("all_matched", k=1, n=1),
    "3 of 3 attempts passed; path proven (eager 1x)": Message(
        "all_passed", n=3, said=Message("passed_proven", proof=("eager 1x",))
    ),
    "with a, b: failed otherwise: {name} %s": Message(
        "with", names=("a", "b"), said=Message("failed_otherwise", text=Quoted("{name} %s"))
    ),
    "passes as reported; not covered: x; y; not run yet": Message(
        "not_covered", quote=(Quoted("x"), Quoted("y")), said=NOT_RUN
    ),
    "helps with a; not run yet": clauses([Message("helps_with", names=("a",)), NOT_RUN]),
    "not run yet": clauses([NOT_RUN]),
    "x, y, z": joined("then", map(quoted, "xyz")),
    "a, b or c": either(("a", "b", "c")),
    "a": either(("a",)),
    "": None,
}


@pytest.mark.parametrize("words", SAID)
def test_a_message_in_english(words: str) -> None:
    assert english(SAID[words]) == words


def test_a_sentence_begins_with_a_capital_but_for_a_class() -> None:
    assert sentence(NOT_RUN) == "Not run yet"
    assert sentence(Message("on_class", hardware="cpu-x86_64", said=NOT_RUN)) == "CPU: not run yet"


def test_a_plural_is_that_of_n() -> None:
    for words in SENTENCES.values():
        assert "(s)" not in words or "{n}" in words, words
        assert not re.search(r"\([a-z]{2}\)", words), words
