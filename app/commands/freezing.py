"""The environment that this runs in, as `pip freeze` would print it, so that any server can be asked about it."""

from typing import Any

from app.domain.environment import Pin
from app.here import state_here


def freeze() -> dict[str, Any]:
    """`environment` and `python` as the API takes them."""
    stated = state_here()
    lines = [_line(pin) for pin in stated.pins]
    return {"environment": {"name": "pip-freeze.txt", "content": "\n".join([*lines, ""])}, "python": stated.python}


def _line(pin: Pin) -> str:
    return f"{pin.name} @ {pin.origin}" if pin.origin else f"{pin.name}=={pin.version}"
