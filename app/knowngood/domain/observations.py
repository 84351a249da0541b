"""Whether what an arm observed is what the control observed.

Values are kept as text: numbers, lists, what tensors print as, words. How each is compared stands in the issue.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from knowngood.domain.issue import Comparison, Issue, Observed, SignatureKind
from knowngood.domain.message import Message, Quoted

# A number that stands alone: the 8 of `bf16x8` and the 3 of `v3` are parts of words. A complex one ends in j.
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:nan|inf(?:inity)?|(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?)(?![^\Wj])", re.IGNORECASE
)
_SHOWN = 200  # characters of a value


@dataclass(frozen=True)
class DifferentValue:
    """A value of an arm that is not the control's; None where the arm reports none under this name."""

    key: str
    value: str | None
    control: str

    @property
    def in_words(self) -> Message:
        """`sum is 36.0, the control's 1.0`."""
        if self.value is None:
            return Message("value_missing", name=self.key, control=Quoted(self.control))
        return Message("value_differs", name=self.key, value=Quoted(self.value), control=Quoted(self.control))


@dataclass(frozen=True)
class Amount:
    """An amount that an arm reports beside the control's, with one variant: a count, or bytes where it `is_size`. More
    than `most` is what the issue is about.
    """

    arm: str
    variant: str
    key: str
    value: int
    control: int
    most: int
    is_size: bool = False

    def said(self, amount: int) -> str:
        return size_in_words(amount) if self.is_size else str(amount)

    @property
    def is_above(self) -> bool:
        return self.value > self.most

    def in_words(self, kind: SignatureKind) -> Message:
        """`takes 11.2 GB (peak_bytes), where 1.5 GB are enough`; `recompiles: 9, where 2 are enough`."""
        return Message(f"is_{kind}", name=self.key, value=self.said(self.value), control=self.said(self.control))


def amounts_of(
    issue: Issue, arm: str, variant: str, observed: Mapping[str, str], controls: Sequence[Mapping[str, str]]
) -> tuple[Amount, ...]:
    """Each amount of `arm` beside the largest of the `controls`; what is no number on either side is left to
    `different_values`.
    """
    found = []
    for key, rule in issue.observed.items():
        largest = max((int(control[key]) for control in controls if control.get(key, "").isdecimal()), default=None)
        if rule.compare is Comparison.AT_MOST and largest is not None and observed.get(key, "").isdecimal():
            most = largest + max(int(rule.atol), int(rule.rtol * largest))
            is_size = issue.signature.kind is SignatureKind.BIGGER
            found.append(Amount(arm, variant, key, int(observed[key]), largest, most, is_size))
    return tuple(found)


def size_in_words(size: int) -> str:
    """`11.2 GB`, `536.9 MB`, in powers of ten."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if size >= scale), (1, "bytes"))
    return f"{size / scale:.1f} {unit}" if scale > 1 else f"{size} {unit}"


_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def different_values(
    issue: Issue, arm: str, observed: Mapping[str, str], controls: Sequence[Mapping[str, str]]
) -> tuple[DifferentValue, ...]:
    """The values that `arm` observed otherwise than every one of the `controls`, compared with the nearest one.

    Nothing where one of them agrees. An arm may report more than the control does, and not less.
    """
    differences = [
        tuple(
            DifferentValue(key, None if (own := observed.get(key)) is None else own[:_SHOWN], value[:_SHOWN])
            for key, value in control.items()
            if not is_alike(issue.comparison(key, arm), observed.get(key), value)
        )
        for control in controls
    ]
    return min(differences, key=len, default=())


def is_alike(rule: Observed, value: str | None, control: str) -> bool:
    """Whether a value is the control's by this rule; None is one that is not reported."""
    if rule.compare is Comparison.IGNORE or value == control:
        return True
    if rule.compare is Comparison.EQUAL or value is None:
        return False
    if rule.compare is Comparison.AT_MOST:
        return value.isdecimal() and control.isdecimal()
    words, numbers = _parsed(value)
    control_words, control_numbers = _parsed(control)
    if words != control_words or len(numbers) != len(control_numbers):
        return False
    return all(_is_near(rule, *pair) for pair in zip(numbers, control_numbers, strict=True))


def _is_near(rule: Observed, number: str, control: str) -> bool:
    """Whole numbers count something, and only `atol` makes room for them; nan is nan, and infinity itself."""
    value, expected = float(number), float(control)
    if value == expected or (math.isnan(value) and math.isnan(expected)):
        return True
    room = rule.atol if _is_whole(number) and _is_whole(control) else rule.atol + rule.rtol * abs(expected)
    return math.isfinite(expected) and abs(value - expected) <= room


def _is_whole(number: str) -> bool:
    return number.lstrip("+-").isdecimal()


@lru_cache(maxsize=4096)  # the same few values come back in thousands of attempts
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """The words, without the white space that moves with the numbers' widths, and the numbers as they are written."""
    return "".join(_NUMBER.sub("\0", text).split()), tuple(_NUMBER.findall(text))
