"""The bundles of results that come with this release: beside the issues in a checkout, else installed by themselves."""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from knowngood.app.catalogue_digest import SHIPPED

DISTRIBUTION = "knowngood-evidence"
_BUNDLE = ".jsonl.gz"


def shipped_evidence() -> list[Path]:
    """In the order of their names; none where they are not installed."""
    beside = list((SHIPPED / "evidence").glob(f"*{_BUNDLE}"))
    return sorted(beside or _installed())


def _installed() -> list[Path]:
    try:
        found = files(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in found if file.name.endswith(_BUNDLE)]
