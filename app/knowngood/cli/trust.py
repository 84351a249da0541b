"""Who must have signed a snapshot: the keys that are named, or nobody, where that is said."""

from collections.abc import Sequence
from pathlib import Path

from knowngood.domain.errors import BadRequest

UNSIGNED = "unsigned"
"""In the place of keys: a snapshot is taken whoever signed it."""


def trusted_keys(named: Sequence[str]) -> list[str]:
    """Public keys, some of them named by files that hold one; none where UNSIGNED is said. Raises BadRequest."""
    named = [name.strip() for name in named if name.strip()]  # a job's variable may be empty
    if not named:
        raise BadRequest(
            "say who must have signed the snapshot: --public-key (public-key of the Action) with the key that "
            "`knowngood snapshot` printed. --unsigned (unsigned: true) takes it whoever signed it, such as your own"
        )
    return [] if UNSIGNED in named else [_key_of(name) for name in named]


def _key_of(name: str) -> str:
    if name.startswith("ed25519:"):
        return name
    try:
        return Path(name).read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError:
        raise BadRequest(f"{name} is no text in UTF-8") from None
    except (OSError, ValueError) as error:
        raise BadRequest(f"{name} cannot be read: {getattr(error, 'strerror', error)}") from None
