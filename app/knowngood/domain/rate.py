"""A part of a whole, and how far it may be off. Apart from who counts, because a question to the gate imports it."""

from dataclasses import dataclass
from math import sqrt

_Z = 1.959963984540054  # of the normal distribution, for 95 %


@dataclass(frozen=True)
class Rate:
    """`part` of `whole`. Where `whole` is 0 nothing is known, and the interval is everything."""

    part: int
    whole: int

    @property
    def share(self) -> float:
        return self.part / self.whole if self.whole else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval: it keeps its promise for rare events too, where the usual one says "0 to 0"."""
        if not self.whole:
            return (0.0, 1.0)
        n, p, z2 = self.whole, self.share, _Z * _Z
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        return (0.0 if self.part == 0 else centre - half, 1.0 if self.part == n else centre + half)
