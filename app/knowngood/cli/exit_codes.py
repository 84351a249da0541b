"""The exit codes of `knowngood`, and which of our errors ends in which."""

from enum import IntEnum

from knowngood.domain.errors import (
    BadBundle,
    BadPack,
    BadSnapshot,
    FleetUnusable,
    IndexUnusable,
    KnownGoodError,
    NotInstalled,
    NotTested,
    PortTaken,
    ServerUnusable,
    StoreUnusable,
    Unreadable,
)


class Exit(IntEnum):
    """`gate` ends in FINDING where it blocks, and in INSUFFICIENT where too little is known to say."""

    OK = 0
    FINDING = 1
    USAGE = 2
    INSUFFICIENT = 3
    UNUSABLE = 4


_UNUSABLE = (
    StoreUnusable,
    Unreadable,
    BadBundle,
    BadPack,
    BadSnapshot,
    ServerUnusable,
    NotInstalled,
    PortTaken,
    FleetUnusable,
    IndexUnusable,
)


def exit_of(error: KnownGoodError) -> Exit:
    """The question is wrong, nothing known answers it, or what was to answer it cannot be used."""
    if isinstance(error, NotTested):
        return Exit.INSUFFICIENT
    return Exit.UNUSABLE if isinstance(error, _UNUSABLE) else Exit.USAGE
