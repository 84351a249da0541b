"""Chinese and English: every text that pages say has a Chinese twin that fits, and none is kept that nobody says."""

import gettext
import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from knowngood.domain.issue import Workaround
from knowngood.store.engine import Engine
from knowngood.web.html import i18n
from knowngood.web.html.i18n import CATALOGUES, DOMAIN, Language, say
from knowngood.web.urls import MATRIX
from tests.make import make_issue
from tests.web import given
from tests.web.given import BUILDS
from tests.web.notebooks import addresses_of
from tools.words import COMPILED, SOURCE, brought_up_to_date, compiled, read, texts_said, written

NOT_YET = say("(not in Chinese yet)", Language.CHINESE)
PLACES = re.compile(r"{(\w*)[^}]*}")


def test_every_text_that_pages_say_has_a_chinese_twin() -> None:
    known = read()
    wanting = {
        text: places for text, places in texts_said().items() if (twin := known.get(text)) is None or not twin.string
    }
    assert wanting == {}, "run `make words` and write the Chinese beside them in knowngood.po"


def test_a_twin_fills_the_same_places() -> None:
    for message in read():
        assert sorted(PLACES.findall(str(message.id))) == sorted(PLACES.findall(str(message.string))), message.id
        assert not message.fuzzy, message.id


def test_the_catalogue_is_as_make_words_writes_it_and_compiled() -> None:
    assert SOURCE.read_bytes() == written(brought_up_to_date(read())), "run `make words`"
    assert COMPILED.read_bytes() == compiled(read()), "run `make words`"


def test_gettext_itself_reads_it() -> None:
    told = gettext.translation(DOMAIN, CATALOGUES, languages=["zh"])
    assert told.gettext("passes") == "通过"
    assert "charset=utf-8" in told.gettext("").lower()


def test_nothing_to_say_stays_nothing() -> None:
    """gettext answers the empty text with its header."""
    assert say("", Language.CHINESE) == ""


class _Listening:
    """The catalogue, which writes down what it was asked for and does not have."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()

    def gettext(self, text: str) -> str:
        told = CHINESE.gettext(text)
        if told == text and text not in SAME_IN_BOTH:
            self.unknown.add(text)
        return told


CHINESE = i18n.CHINESE
SAME_IN_BOTH = {str(message.id) for message in read() if message.id == message.string}


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> _Listening:
    heard = _Listening()
    monkeypatch.setattr(i18n, "CHINESE", heard)
    return heard


def test_no_page_says_a_text_that_the_catalogue_does_not_know(client: TestClient, listening: _Listening) -> None:
    """Texts that reach a page by ways the gathering does not see."""
    client.cookies.set("lang", "zh")
    for path, address in addresses_of(client).items():
        listening.unknown.clear()
        client.get(address)
        assert listening.unknown == set(), path
    client.cookies.clear()


def test_a_row_without_chinese_text_says_so(own: TestClient, own_engine: Engine) -> None:
    told = make_issue("pytorch-1", title="No twin", summary="Of one line.")
    twin = make_issue("pytorch-2", title="A twin", title_zh="有中文")
    given.save(own_engine, [told, twin], BUILDS)
    text = own.get(f"{MATRIX}?lang=zh").text
    assert f"No twin {NOT_YET}" in text
    assert "有中文</a>" in text
    assert NOT_YET not in own.get(f"{MATRIX}?lang=en").text
    assert f"Of one line. {NOT_YET}" in own.get("/issues/pytorch-1?lang=zh").text


def test_code_alone_wants_no_chinese(own: TestClient, own_engine: Engine) -> None:
    code, told = "```python\nmask = make()\n```", "Call it:\n\n```python\nmask = make()\n```"
    for snippet, wanting in ((code, 0), (told, 1)):
        workaround = Workaround("eager", "Eager", snippet, "slower", "不编译", "", "慢")
        issue = replace(
            make_issue("pytorch-1", title_zh="有", summary_zh="有", workarounds=("eager",)), workarounds=(workaround,)
        )
        given.save(own_engine, [issue], BUILDS)
        assert own.get("/issues/pytorch-1?lang=zh").text.count(NOT_YET) == wanting, snippet
