"""The environment that this runs in, as `pip freeze` would print it, so that any server can be asked about it."""

from typing import Any

from knowngood.app.domain.builds.build_names import minor_python
from knowngood.app.domain.errors import BadRequest
from knowngood.app.features.environments.installed import state_here
from knowngood.app.features.environments.resolve import Pin


def freeze(python: str = "") -> dict[str, Any]:
    """`environment` and `python` as the API takes them. Raises BadRequest where another Python is stated than runs."""
    stated = state_here()
    if python and minor_python(python) != stated.python:
        raise BadRequest(f"--python {python} was stated, and --here is Python {stated.python}; leave one of them out")
    lines = [_line(pin) for pin in stated.pins]
    return {"environment": {"name": "pip-freeze.txt", "content": "\n".join([*lines, ""])}, "python": stated.python}


def _line(pin: Pin) -> str:
    return f"{pin.name} @ {pin.origin}" if pin.origin else f"{pin.name}=={pin.version}"
