"""Names of packages as they are compared. packaging.utils has the same, and takes 20 ms to import."""

import re


def canonical_package(name: str) -> str:
    """PEP 503: `torch-xla` for `Torch_XLA`."""
    return re.sub(r"[-_.]+", "-", name.strip()).casefold()
