"""The interface's words in Chinese (a gettext catalogue, by the English words of pages), and words for times and sizes.

Only the interface: what an issue says comes from its own `*_zh` fields, evidence stays as it was measured. The source
is locale/zh/LC_MESSAGES/knowngood.po; `make words` gathers what pages say and compiles it (knowngood.mo, which is kept
beside it so that nobody needs a build step; a test compares the two).
"""

import gettext
import re
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache, partial
from pathlib import Path

from markupsafe import Markup, escape

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.message import Message, Writer, english, sentence
from knowngood.domain.verdicts.workaround_cost import MedianCost

DOMAIN = "knowngood"
CATALOGUES = Path(__file__).parents[1] / "locale"
CHINESE: gettext.NullTranslations = gettext.translation(DOMAIN, CATALOGUES, languages=["zh"])

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_ABSURD_S, _ABSURD_BYTES = 1e10, 1e16  # three hundred years, ten thousand terabytes


class Language(StrEnum):
    ENGLISH = "en"
    CHINESE = "zh"


def accepted(header: str) -> Language:
    """The language that a browser would rather have (Accept-Language, RFC 9110), of those that there are."""
    best, chosen = 0.0, Language.ENGLISH
    for part in header[:_LONGEST_HEADER].split(","):
        name, _, weight = part.partition(";")
        language = _NAMED.get(name.strip().lower().partition("-")[0])
        wanted = _weight(weight)
        if language is not None and wanted > best:
            best, chosen = wanted, language
    return chosen


_NAMED = {"en": Language.ENGLISH, "zh": Language.CHINESE, "*": Language.ENGLISH}
_LONGEST_HEADER = 1000


def _weight(text: str) -> float:
    """Read the weight of `q=0.8`; 1 where nothing is said, 0 where it is no number from 0 to 1."""
    name, _, value = text.strip().partition("=")
    if not name:
        return 1.0
    match = _QUALITY.fullmatch(value.strip())
    return float(match[0]) if match and name.strip().lower() == "q" else 0.0


_QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def say(words: str, language: Language, **values: object) -> str:
    """`words` in the reader's language, with `{name}` filled in. Words without a translation stay English."""
    chosen = CHINESE.gettext(words) if words and language is Language.CHINESE else words  # "" would give its header
    return chosen.format(**values) if values else chosen


def ago(then: datetime, now: datetime, language: Language) -> str:
    """How long ago, in the largest whole unit; a time in the future (clocks differ) counts as now."""
    seconds = max(0, int((now - then).total_seconds()))
    if seconds < _MINUTE:
        return say("just now", language)
    if seconds < _HOUR:
        return say("{n} min ago", language, n=seconds // _MINUTE)
    if seconds < 2 * _DAY:
        return say("{n} h ago", language, n=seconds // _HOUR)
    return say("{n} days ago", language, n=seconds // _DAY)


def exact(then: datetime) -> str:
    return f"{then:%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`: two figures that matter. Of what no clock can have said, `?`."""
    if not 0 <= seconds < _ABSURD_S:
        return "?"
    if seconds < 10:  # noqa: PLR2004 - below ten seconds the tenth matters
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    if whole < 2 * _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def short_duration(seconds: float) -> str:
    """`duration`, with `< 0.1 s` for what is hardly measurable."""
    return duration(seconds) if seconds >= 0.05 else "< 0.1 s"  # noqa: PLR2004 - what rounds to a tenth


def spent(cost: MedianCost) -> str:
    """`3.1 s, 499 MB`; the time alone where the memory was not recorded."""
    return ", ".join([short_duration(cost.seconds), *([size(cost.peak_bytes)] if cost.peak_bytes else [])])


def size(count: int) -> str:
    """Bytes in the unit a person reads: `512 B`, `3.4 kB`, `1.2 GB` (decimal units). Of what no machine has, `?`."""
    if not 0 <= count < _ABSURD_BYTES:
        return "?"
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 - decimal units
            return f"{amount:.0f} {unit}" if amount >= 100 or unit == "B" else f"{amount:.1f} {unit}"  # noqa: PLR2004
        amount /= 1000
    return f"{amount:.1f} GB"


_CHINESE = Writer(
    template=partial(say, language=Language.CHINESE),
    name=lambda name: escape(plain_name(name)),
    quote=Markup('<span lang="en">{}</span>').format,
    comma="、",
    semicolon="；",  # noqa: RUF001 - Chinese
)

_CHINESE_TEXT = replace(_CHINESE, name=plain_name, quote=str)


def as_text(message: Message, language: Language) -> str:
    """The message without HTML: for JSON, attributes, and Markdown that is still to be rendered."""
    return _CHINESE_TEXT.write(message) if language is Language.CHINESE else english(message)


def in_words(message: Message | None, language: Language, *, begins: bool = False) -> Markup:
    """The message as HTML, as a sentence `begins`; empty where there is no message."""
    if message is None:
        return Markup()
    if language is Language.CHINESE:
        return in_chinese(message)
    return escape(sentence(message) if begins else english(message))


@lru_cache(maxsize=8192)
def in_chinese(message: Message) -> Markup:
    return Markup(_CHINESE.write(message))  # noqa: S704 - the catalogue's own words, and what stands in them is escaped
