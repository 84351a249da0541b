"""BM25 by hand, and what it is used for."""

from math import isclose, log

from knowngood.ask.text_index import TextIndex, words_of


def index_of(**texts: str) -> TextIndex:
    return TextIndex({name: [(text, 1.0)] for name, text in texts.items()}, words_of)


def test_names_are_words_and_their_parts_too() -> None:
    assert words_of("FlexAttention of flex_attention") == [
        "flexattention", "flex", "attention", "flex_attention", "flex", "attention",
    ]  # fmt: skip
    assert words_of("the File line 0x7f 12345 return") == []


def test_the_score_is_the_formula() -> None:
    texts = index_of(a="alpha beta", b="alpha gamma delta epsilon")
    rarity = log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    weight = rarity * 1 * 2.2 / (1 + 1.2 * (1 - 0.75 + 0.75 * 2 / 3))
    (found,) = texts.nearest(["beta"])
    assert found.name == "a"
    assert isclose(found.score, weight / (rarity * 2.2))


def test_rare_words_weigh_more_and_words_that_nobody_has_weigh_against() -> None:
    texts = index_of(a="donated buffer", b="buffer overrun", c="buffer unused")
    assert [one.name for one in texts.nearest(["donated", "buffer"])] == ["a", "b", "c"]
    alone, diluted = (texts.nearest(words)[0].score for words in (["donated"], ["donated", "unheard", "unseen"]))
    assert diluted < alone / 2


def test_a_long_log_weighs_no_more_than_a_title() -> None:
    once, often = index_of(a="mask", b="other"), index_of(a="mask " * 10_000, b="other")
    assert once.nearest(["mask"]) == often.nearest(["mask"])


def test_without_texts_or_words_nothing_is_alike() -> None:
    assert index_of().nearest(["mask"]) == []
    assert index_of(a="mask").nearest([]) == []
