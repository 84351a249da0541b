"""Whether a text is a question, an environment, or an error that somebody pasted. Pure."""

import re

from knowngood.ask.search.notation import LONGEST, HitKind

_FAILED = re.compile(
    r"Traceback \(most recent call last\)|^\W{0,40}[\w.]{0,80}(?:Error|Exception|Unsupported|Interrupt)\b|"
    r"\berror:|\bSegmentation fault\b|\bcore dumped\b|\bFatal Python error\b|\bterminate called\b",
    re.MULTILINE,
)
_COLLECTED = re.compile(r"^PyTorch version:|^Collecting environment information|^[|] NVIDIA-SMI \d", re.MULTILINE)
_LISTED = re.compile(
    r"^\[\[packages?\]\]|^[ \t]*Package[ \t]+Version\b|^[# \t]*Name[ \t]+Version[ \t]+Build\b", re.MULTILINE
)
_PIN = re.compile(
    r"[A-Za-z0-9][\w.-]{0,80}(?:\[[\w, -]{0,80}\])?\s*(?:[=~<>!]=?=?\s*[\dv]|@\s*\S)|#|--?\w|"
    r"[A-Za-z0-9][\w.-]{0,80}\s{1,60}v?\d+\.[\w.+!-]{1,60}(?:\s{1,40}\S{1,60}){0,3}$"
)
_TORCH = re.compile(r"(?<![\w-])(?:py)?torch(?![\w-])", re.IGNORECASE)
_MOST_PINS = 0.6
_SHORT_LINES, _SHORT = 3, 60
_LOOKED_AT = 200_000  # characters: what a text is shows early


def pasted(text: str) -> HitKind | None:
    """ERROR, ENVIRONMENT, or None for a question: a line, or a few short ones."""
    shown = text[:_LOOKED_AT]
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    if len(lines) <= 1 and len(text) <= LONGEST:
        return None
    if _FAILED.search(shown):
        return HitKind.ERROR
    if _COLLECTED.search(shown) or (_LISTED.search(shown) and _TORCH.search(shown)):
        return HitKind.ENVIRONMENT
    pins = sum(1 for line in lines if _PIN.match(line))
    if _TORCH.search(shown) and pins >= _MOST_PINS * len(lines):
        return HitKind.ENVIRONMENT
    is_question = len(lines) <= _SHORT_LINES and all(len(line) <= _SHORT for line in lines)
    return None if is_question else HitKind.ERROR
