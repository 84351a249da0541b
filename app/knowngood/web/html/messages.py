"""Messages of rules as HTML in the language of the reader: what somebody else said in English is marked as that."""

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
