"""Which recorded failures pasted ones are held against."""

from knowngood.ask.explain.store import find_failures, load_failures
from knowngood.store.engine import Engine, reading
from tests.web.given import LINE, LOG, fill


def test_the_failures_of_each_issue_are_found_with_their_texts(engine: Engine) -> None:
    fill(engine)
    with reading(engine) as s:
        found = find_failures(s)
        texts = load_failures(s, found)
    assert set(found) == set(texts) == {"pytorch-151290", "pytorch-154771", "pytorch-151589"}
    assert all(len(ids) <= 4 for ids in found.values())
    assert all(LOG in text and LINE in text for text in texts["pytorch-151290"])
    assert all("expected 1.0, got 3.8" in text for text in texts["pytorch-154771"])


def test_an_empty_store_has_none(engine: Engine) -> None:
    with reading(engine) as s:
        assert load_failures(s, find_failures(s)) == {}
