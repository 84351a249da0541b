"""The bundles of results that come with this release, beside its issues."""

from pathlib import Path

from knowngood.catalogue_digest import SHIPPED


def shipped_evidence() -> list[Path]:
    """In the order of their names."""
    return sorted((SHIPPED / "evidence").glob("*.jsonl.gz"))
