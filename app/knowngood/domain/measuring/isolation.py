"""How far a repro was shut off from its host. Evidence names the means; the level is derived from them here."""

from collections.abc import Collection
from enum import StrEnum

NO_NETWORK = "no-network"
NAMESPACES = "namespaces"
FILTERS = ("seccomp", "landlock")


class Isolation(StrEnum):
    """In rising order; each level holds what those before it hold. docs/threat-model.md says what each one stops.

    `none`: nothing was recorded. `process`: limits, and a supervisor that leaves no process behind. `network`: a
    loopback of its own and nothing else. `namespaces`: a host of its own, of which it sees its environment and its
    scratch folder. `filtered`: the kernel refuses it besides what no repro needs.
    """

    NONE = "none"
    PROCESS = "process"
    NETWORK = "network"
    NAMESPACES = "namespaces"
    FILTERED = "filtered"

    @property
    def rank(self) -> int:
        return list(Isolation).index(self)


def isolation_of(sandbox: Collection[str]) -> Isolation:
    """The level that the recorded means come to. A filter beside open doors is worth no level of its own."""
    if "process" not in sandbox:
        return Isolation.NONE
    if NO_NETWORK not in sandbox:
        return Isolation.PROCESS
    if NAMESPACES not in sandbox:
        return Isolation.NETWORK
    return Isolation.FILTERED if set(FILTERS) & set(sandbox) else Isolation.NAMESPACES


def too_little(reached: Isolation, wanted: Isolation, why_not: str) -> str:
    """Why a worker that must isolate at `wanted` measures nothing, in a sentence; empty where it may measure."""
    if reached.rank >= wanted.rank:
        return ""
    reason = f" ({why_not})" if why_not else ""
    return (
        f"this worker isolates repros at the level '{reached}'{reason}, and KNOWNGOOD_MIN_ISOLATION asks for "
        f"'{wanted}': nothing was run. Mend the host, lower the setting, or measure on another one; "
        "`knowngood doctor` says what each level lacks here"
    )
