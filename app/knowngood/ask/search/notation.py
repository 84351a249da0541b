"""Names in a short text: a thread, builds, hardware, conditions, and the words that are left. Pure.

Names are looked for from the left, the longest first, so that `RTX 4090` is no issue 4090 and `torch 2.7.1 cuda 11.8`
is one build.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum

from knowngood.domain.hardware_names import NamedHardware, hardware_meant, hardware_named
from knowngood.domain.naming.threads import Projects, Thread, thread_named

LONGEST = 2000  # characters that are read as one line


class HitKind(StrEnum):
    """`thread` is an issue upstream that the catalogue has not; `error` and `environment` are what was pasted."""

    ISSUE = "issue"
    THREAD = "thread"
    BUILD = "build"
    HARDWARE = "hardware"
    QUERY = "query"
    COMPARE = "compare"
    UPGRADE = "upgrade"
    ERROR = "error"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class ParsedText:
    """`builds` as `build_names` reads them; `triton`, `python` and `cuda` are versions that stand beside no torch.
    `conditions` are of the query language, `phrases` the words that they were written with. `purpose` is the interest
    that somebody has in the builds they name: to compare them, or to upgrade (None: none is told).
    """

    text: str
    thread: Thread | None = None
    builds: tuple[str, ...] = ()
    hardware: NamedHardware | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    purpose: HitKind | None = None
    words: tuple[str, ...] = ()


_CONDITIONS: Mapping[str, str] = {
    "silent": "silent:yes",
    "silently": "silent:yes",
    "wrong numbers": "silent:yes",
    "wrong results": "silent:yes",
    "wrong result": "silent:yes",
    "静默": "silent:yes",
    "crash": "signature:signal",
    "crashes": "signature:signal",
    "segfault": "signature:signal",
    "segmentation fault": "signature:signal",
    "hang": "signature:hang",
    "hangs": "signature:hang",
    "deadlock": "signature:hang",
    "fail": "status:affected",
    "fails": "status:affected",
    "failing": "status:affected",
    "broken": "status:affected",
    "breaks": "status:affected",
    "broke": "status:affected",
    "affected": "status:affected",
    "pass": "status:not_affected",
    "passes": "status:not_affected",
    "works": "status:not_affected",
    "flaky": "status:flaky",
    "no workaround": "cure:none",
    "without workaround": "cure:none",
    "without a workaround": "cure:none",
    "with a workaround": "cure:effective",
    "has a workaround": "cure:effective",
    "severe": "severity:>=high",
    "high severity": "severity:>=high",
}
_PURPOSES: Mapping[str, HitKind] = {
    "vs": HitKind.COMPARE,
    "versus": HitKind.COMPARE,
    "compare": HitKind.COMPARE,
    "compared": HitKind.COMPARE,
    "->": HitKind.COMPARE,
    "→": HitKind.COMPARE,
    "diff": HitKind.COMPARE,
    "changed": HitKind.COMPARE,
    "upgrade": HitKind.UPGRADE,
    "upgrading": HitKind.UPGRADE,
    "update": HitKind.UPGRADE,
    "best": HitKind.UPGRADE,
    "升级": HitKind.UPGRADE,
}
_SAYS_NOTHING = """
a about an and any are at be bug can do does for from i in install installed is issue issues it me my of on or pip
please problem show than the there to torch pytorch use using version what when where which why with
"""
_EMPTY = frozenset(_SAYS_NOTHING.split())
_BARE = re.compile(r"\d{4,9}")
_VERSION = r"\d{1,3}\.\d{1,4}(?:\.\d{1,6})?(?:(?:a|b|rc|\.?dev|\.?post)\d{1,10})?(?:\+[a-z0-9.]{1,40})?"
_BUILD = re.compile(
    rf"(?:(?P<torch>[a-z]{{4,8}}) ?(?:(?:version|release) ?)?[=-]{{0,3}} ?)?v?(?P<version>{_VERSION})"
    r"(?P<parts>(?:~[\w.+-]{1,40})*)",
    re.IGNORECASE,
)
_COMMAS = re.compile(r"(\d{1,2}),(\d{1,2})(?:,(\d{1,2}))?")
_LOCAL = re.compile(r"\+?(cu\d{2,3}|rocm\d(?:\.\d)*)", re.IGNORECASE)
_PART = re.compile(r"py(?:thon)?[ -]?(\d)\.?(\d{1,2})(?:\.\d{1,2})?", re.IGNORECASE)
_BESIDE = re.compile(rf"(cuda|triton)(?: ?(?:version|toolkit) ?)? ?[=-]{{0,2}} ?v?({_VERSION})", re.IGNORECASE)
_CHINESE_AROUND = "\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u201c\u201d\u2018\u2019\u300c\u300d"
_AROUND = "\"'`<>()[]{}.,;:!?" + _CHINESE_AROUND
_MOST_TOKENS = 5
_ALIKE = 0.8


def plain(text: str) -> str:
    """One line as it is read: full-width characters narrow, blanks single, quotes around it gone."""
    return one_line(unicodedata.normalize("NFKC", text)).strip(_AROUND).strip()


def one_line(text: str) -> str:
    """Blanks single, and without what cannot be printed."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text[: 2 * LONGEST])
    return " ".join(shown.split())[:LONGEST]


def read(text: str, projects: Projects) -> ParsedText:
    tokens = _COMMAS_APART.sub(" ", plain(text)).split()
    if len(tokens) == 1 and (version := _COMMAS.fullmatch(tokens[0])):
        tokens = [".".join(part for part in version.groups() if part)]
    asked = ParsedText(plain(text))
    at = 0
    while at < len(tokens):
        for length in range(min(_MOST_TOKENS, len(tokens) - at), 0, -1):
            piece = " ".join(tokens[at : at + length])
            found = next((found for take in _TAKERS if (found := take(asked, piece, projects))), None)
            if found is not None:
                asked, at = found, at + length
                break
        else:
            asked, at = _with_word(asked, tokens[at]), at + 1
    return _settled(asked)


_COMMAS_APART = re.compile(r",(?=\s)|(?<=[^\d\s]),|,(?=\D)|;")


def _with_word(asked: ParsedText, token: str) -> ParsedText:
    word = token.strip(_AROUND)
    if word.casefold() in _PURPOSES:
        return replace(asked, purpose=asked.purpose or _PURPOSES[word.casefold()])
    return replace(asked, words=(*asked.words, word)) if word else asked


def _settled(asked: ParsedText) -> ParsedText:
    """Names that only the whole text tells: a number that stands alone is a thread, a misspelt name hardware,
    and words that say nothing are left out.
    """
    words = tuple(word for word in asked.words if word.casefold() not in _EMPTY)
    asked = replace(asked, words=words)
    numbers = [word for word in words if _BARE.fullmatch(word)]
    if asked.thread is None and len(words) == len(numbers) == 1:
        return replace(asked, thread=Thread("", numbers[0]), words=())
    if asked.hardware is None and len(words) == 1 and (near := hardware_meant(words[0])):
        return replace(asked, hardware=near, words=())
    return _completed(asked) if asked.builds else asked


def _completed(asked: ParsedText) -> ParsedText:
    """Versions that stand beside a torch say which of its builds is meant."""
    versions = dict(asked.versions)
    cuda, python, local = versions.pop("cuda", ""), versions.pop("python", ""), versions.pop("local", "")
    local = local or (f"cu{''.join(cuda.split('.')[:2])}" if cuda else "")
    ends = (f"+{local}" if local else ""), (f"~py{python.replace('.', '')}" if python else "")
    builds = tuple(
        f"{text}{ends[0] if '+' not in text else ''}{ends[1] if '~py' not in text else ''}" for text in asked.builds
    )
    return replace(asked, builds=builds, versions=versions)


# -- what a piece of text may be ---------------------------------------------------------------------------------------


def _phrase(asked: ParsedText, piece: str, _: Projects) -> ParsedText | None:
    condition = _CONDITIONS.get(piece.casefold().strip(_AROUND))
    if condition is None:
        return None
    return replace(asked, conditions=(*asked.conditions, condition), phrases=(*asked.phrases, piece))


def _hardware(asked: ParsedText, piece: str, _: Projects) -> ParsedText | None:
    """The first that is named; of its class another name says nothing more."""
    found = hardware_named(piece.strip(_AROUND))
    if found is None or (asked.hardware and asked.hardware.hardware != found.hardware):
        return None
    return replace(asked, hardware=asked.hardware or found)


def _thread(asked: ParsedText, piece: str, projects: Projects) -> ParsedText | None:
    found = thread_named(piece, projects) if asked.thread is None else None
    return replace(asked, thread=found) if found else None


def _build(asked: ParsedText, piece: str, _: Projects) -> ParsedText | None:
    found = _BUILD.fullmatch(piece.strip("\"'`<>()[]{},;:!?"))
    if found is None:
        return None
    said = (found["torch"] or "").casefold()
    if said and not get_close_matches(said, ("torch", "pytorch"), 1, _ALIKE):
        return None
    return replace(asked, builds=(*asked.builds, f"{found['version']}{found['parts']}".casefold()))


def _beside(asked: ParsedText, piece: str, _: Projects) -> ParsedText | None:
    piece = piece.strip(_AROUND)
    if found := _PART.fullmatch(piece):
        told = {"python": f"{found[1]}.{found[2]}"}
    elif found := _LOCAL.fullmatch(piece):
        told = {"local": found[1].casefold()}
    elif found := _BESIDE.fullmatch(piece):
        told = {found[1].casefold(): found[2]}
    else:
        return None
    return replace(asked, versions={**asked.versions, **told})


_TAKERS: tuple[Callable[[ParsedText, str, Projects], ParsedText | None], ...] = (
    _phrase,
    _hardware,
    _beside,
    _thread,
    _build,
)
