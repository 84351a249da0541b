"""Times and sizes as a person says them."""

from datetime import timedelta

import pytest

from knowngood.web.html.i18n import Language, ago, duration, exact, say, size
from tests.make import NOON


@pytest.mark.parametrize(
    ("passed", "english", "chinese"),
    [
        (timedelta(seconds=-5), "just now", "刚刚"),
        (timedelta(seconds=59), "just now", "刚刚"),
        (timedelta(minutes=1), "1 min ago", "1 分钟前"),
        (timedelta(minutes=59), "59 min ago", "59 分钟前"),
        (timedelta(hours=1), "1 h ago", "1 小时前"),
        (timedelta(hours=47), "47 h ago", "47 小时前"),
        (timedelta(days=2), "2 days ago", "2 天前"),
        (timedelta(days=400), "400 days ago", "400 天前"),
    ],
)
def test_how_long_ago_in_the_largest_whole_unit(passed: timedelta, english: str, chinese: str) -> None:
    assert ago(NOON, NOON + passed, Language.ENGLISH) == english
    assert ago(NOON, NOON + passed, Language.CHINESE) == chinese


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.6, "60 s"), (125, "2 min 5 s"), (7199, "119 min 59 s"), (7260, "2 h 1 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (512_000_000, "512 MB"), (3_100_000_000, "3.1 GB")],
)
def test_sizes(count: int, words: str) -> None:
    assert size(count) == words


def test_words_without_a_twin_stay_english() -> None:
    assert say("no such words {n}", Language.CHINESE, n=1) == "no such words 1"


def test_the_exact_time_is_utc() -> None:
    assert exact(NOON) == "2026-11-21 12:00:00 UTC"
