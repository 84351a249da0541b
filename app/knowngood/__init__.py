"""Which PyTorch build is known good for the bugs you care about: asked from Python of the environment that runs.

    import knowngood

    if knowngood.affected("pytorch-151290"):
        ...

Signatures, examples and promises: docs/library.md. Importing this imports nothing else.
"""

from importlib import import_module

TYPE_CHECKING = False  # as typing's, which takes longer to import than all of this
if TYPE_CHECKING:
    from knowngood.domain.errors import BadRequest, KnownGoodError, UnknownIssue
    from knowngood.gate.in_code.finding import (
        Finding,
        NotKnownGood,
        NotKnownGoodWarning,
        UnknownWorkaround,
    )
    from knowngood.gate.in_code.service import affected, finding, guard, workaround_needed

__all__ = [
    "BadRequest",
    "Finding",
    "KnownGoodError",
    "NotKnownGood",
    "NotKnownGoodWarning",
    "UnknownIssue",
    "UnknownWorkaround",
    "affected",
    "finding",
    "guard",
    "workaround_needed",
]

_ERRORS, _FINDING, _SERVICE = "domain.errors", "gate.in_code.finding", "gate.in_code.service"
_MODULES = {
    "BadRequest": _ERRORS,
    "KnownGoodError": _ERRORS,
    "UnknownIssue": _ERRORS,
    "Finding": _FINDING,
    "NotKnownGood": _FINDING,
    "NotKnownGoodWarning": _FINDING,
    "UnknownWorkaround": _FINDING,
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES.get(name, _SERVICE)}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
