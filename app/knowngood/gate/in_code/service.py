"""The questions of programs about the environment that they run in. `knowngood` exports what is public here.

Every answer is worked out once in a process: packages and GPUs do not change under it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

from knowngood.domain.errors import BadRequest
from knowngood.environments.installed import hardware_here
from knowngood.gate.in_code.finding import (
    Finding,
    NotKnownGood,
    NotKnownGoodWarning,
    UnknownWorkaround,
    worst_of,
)
from knowngood.gate.in_code.from_gate import ask_gate, workarounds_of

Action = Literal["raise", "warn", "pass"]


def affected(issue: str, *, hardware: str | None = None) -> bool | None:
    """Whether the issue fails in the running environment: True, False, or None where nobody knows.

    Raises UnknownIssue, a LookupError, which names the nearest ids. `hardware` is a class (`cuda-sm_90`,
    `cpu-x86_64`); without it each class of this machine counts, and the worst answer wins, as in the gate (every
    measured class where there is an NVIDIA driver, and no `nvidia-ml-py` to ask it).
    """
    return finding(issue, hardware=hardware).affected


def finding(issue: str, *, hardware: str | None = None) -> Finding:
    """The answer of `affected`, with what it rests on. A Finding is neither true nor false: `bool()` of it raises
    TypeError.
    """
    return _find(str(issue), hardware)


def workaround_needed(issue: str, workaround: str | None = None, *, hardware: str | None = None) -> bool | None:
    """True where the issue fails here, and `workaround`, where one is named, was measured to help on this very build.
    False where the issue does not fail here. None where nobody knows: whether it fails, or that this workaround helps.

    Raises UnknownIssue, and UnknownWorkaround, which names those of the issue; both are LookupErrors.
    """
    status = finding(issue, hardware=hardware)
    is_told = workaround is None or _helps(status, workaround) or not status.affected
    return status.affected if is_told else None


@contextmanager
def guard(
    issue: str,
    *,
    workaround: str | None = None,
    action: Action = "raise",
    unknown: Action = "pass",
    hardware: str | None = None,
) -> Iterator[Finding]:
    """Code that must not run where the issue fails: a context manager and a decorator.

    Where it fails here NotKnownGood is raised, or with `action="warn"` a NotKnownGoodWarning given. `workaround` says
    that the code has this one in place: it runs where that was measured to help on this very build. `unknown` says what
    to do where nobody knows.
    """
    status = finding(issue, hardware=hardware)
    helps = workaround is not None and _helps(status, workaround)
    for name, value in (("action", action), ("unknown", unknown)):
        if value not in _ACTIONS:
            raise BadRequest(f'{name}="{value}" is none of {", ".join(_ACTIONS)}')
    if status.affected is None:
        _do(unknown, f"not known whether {status}", status)
    elif status.affected and not helps:
        _do(action, f"{status}{_about(status, workaround)}", status)
    yield status


_ACTIONS = ("raise", "warn", "pass")
_WARNED_AT = 4  # the line with the `with`, or the call: above this are _do, guard, and contextlib


def _do(action: Action, problem: str, status: Finding) -> None:
    if action == "raise":
        raise NotKnownGood(problem, status)
    if action == "warn":
        warnings.warn(problem, NotKnownGoodWarning, stacklevel=_WARNED_AT)


def _about(status: Finding, workaround: str | None) -> str:
    helping = ", ".join(id_ for id_, verdict in status.workarounds.items() if verdict == "effective")
    remedy = f"; measured to help here: {helping}" if helping else "; no workaround was measured to help here"
    if workaround is None:
        return remedy
    return f"; the workaround {workaround} is {status.workarounds.get(workaround, 'unverified')} here{remedy}"


def _helps(status: Finding, workaround: str) -> bool:
    """Raises UnknownWorkaround."""
    if workaround not in status.workarounds and workaround not in (names := workarounds_of(status.issue)):
        known = ", ".join(names) or "none"
        raise UnknownWorkaround(f'no workaround of {status.issue} is called "{workaround:.60}"; known: {known}')
    return status.workarounds.get(workaround) == "effective"


@cache
def _find(issue: str, hardware: str | None) -> Finding:
    return worst_of(ask_gate(issue, (hardware,) if hardware else hardware_here()))
