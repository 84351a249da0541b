"""Whether what an arm observed is what the control observed.

Values are kept as text: numbers, lists, what tensors print as, words. How each is compared stands in the issue.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from knowngood.domain.issue import Comparison, Issue, Observed
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
