"""Where wheels are that the public index does not have: PyTorch's own indexes, and other packages' release pages.

None was read: each is a claim of its sources (`repros/wheel-claims.toml`), and shown as one.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache

from knowngood.catalogue_digest import SHIPPED
from knowngood.serialization.by_type import read_value


@dataclass(frozen=True)
class WheelClaim:
    """Of torch: `variants` (`cu128`, oldest first) that its own index has for releases `torch` on `platforms`. Of
    another package: `page` and `command` of its wheels, which sources say there are for the minor releases `torch`.
    """

    package: str
    torch: tuple[str, ...]
    sources: tuple[str, ...]
    read_on: date
    variants: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    page: str = ""
    command: str = ""

    def lists(self, release: str, platform: str) -> bool:
        """Whether it is of torch, and says which variants a release has on a platform."""
        return self.package == "torch" and release in self.torch and platform in self.platforms


@cache
def shipped_claims() -> tuple[WheelClaim, ...]:
    tables = tomllib.loads((SHIPPED / "wheel-claims.toml").read_text(encoding="utf-8"))["claim"]
    return tuple(read_value(WheelClaim, table) for table in tables)


def variants_of(release: str, platform: str, claims: Iterable[WheelClaim]) -> tuple[str, ...]:
    """All variants that sources list for a release of torch on a platform."""
    return tuple(variant for claim in claims if claim.lists(release, platform) for variant in claim.variants)
