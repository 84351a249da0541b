"""Messages in the language of the reader. In HTML what somebody else said in English is marked as that."""

from dataclasses import replace
from functools import lru_cache, partial

from markupsafe import Markup, escape

from knowngood.domain.message import Message, Writer, english, sentence
from knowngood.web.html import i18n
from knowngood.web.html.i18n import Language

_CHINESE = Writer(
    template=partial(i18n.say, language=Language.CHINESE),
    name=escape,
    quote=Markup('<span lang="en">{}</span>').format,
    comma="、",
    semicolon="；",  # noqa: RUF001 - Chinese
)

_CHINESE_TEXT = replace(_CHINESE, name=str, quote=str)


def as_text(message: Message, language: Language) -> str:
    """Without HTML: for JSON, attributes, and Markdown that is still to be rendered."""
    return _CHINESE_TEXT.write(message) if language is Language.CHINESE else english(message)


def in_words(message: Message | None, language: Language, *, begins: bool = False) -> Markup:
    """Nothing where there is no message; as a sentence `begins`."""
    if message is None:
        return Markup()
    if language is Language.CHINESE:
        return in_chinese(message)
    return escape(sentence(message) if begins else english(message))


@lru_cache(maxsize=8192)
def in_chinese(message: Message) -> Markup:
    return Markup(_CHINESE.write(message))  # noqa: S704 - the catalogue's own words, and what stands in them is escaped
