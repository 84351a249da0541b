"""The place of an installation's store, whether there is one, and the place of what comes with it.

Known without what reads settings: a question that what is shipped answers need not wait for its import.
"""

import os
from pathlib import Path

STORE = "knowngood.sqlite3"

# They say whom to ask, and where a store would be. Any other setting may name one, or change what is known.
_SAYS_NOTHING = frozenset({"KNOWNGOOD_SERVER", "KNOWNGOOD_TOKEN", "KNOWNGOOD_DATA_DIR"})


def default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")) / "knowngood"  # noqa: PTH111 - a user without a home is no error yet


def shipped_folder(name: str) -> Path:
    """The folder `repros` or `migrations`: of a wheel inside of the package, of a checkout at its root."""
    package = Path(__file__).resolve().parent
    inside = package / name
    return inside if inside.is_dir() else package.parents[1] / name


def is_bare() -> bool:
    """Whether nothing is set, and no store of our own is there (one that cannot be reached is none)."""
    if any(name.startswith("KNOWNGOOD_") and name not in _SAYS_NOTHING for name in os.environ):
        return False
    named = os.environ.get("KNOWNGOOD_DATA_DIR", "")
    folder = os.path.expanduser(named) if named else default_data_dir()  # noqa: PTH111 - as above
    return not os.path.exists(os.path.join(folder, STORE))  # noqa: PTH110, PTH118 - False where it must not be looked at
