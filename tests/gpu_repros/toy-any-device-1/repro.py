"""toy-any-device-1: A sum that names no device

No issue at all: on a GPU's class a run counts only if a CUDA tensor entered the suspect, whether it passes or fails.

It runs with the toy torch and with a real one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"the sum is wrong"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(values):
    return values[0] + values[0]


def _broken(graph, inputs):
    raise RuntimeError("this backend compiles nothing")


def _compiled(x, backend="eager"):
    return torch.compile(_suspect, backend=backend)([x])


def _given_up(x):
    try:
        return _compiled(x, _broken)
    except Exception:
        raise WrongResult("the sum is wrong: there is none")


def control():
    """The same sum without a compiler."""
    x = torch.tensor(1.0)
    return {"total": float(torch.add(x, x))}


def baseline(way="honours", fails=False):
    """The sum of two ones on torch's default device, on the CPU whatever that is, or of a frame that is never compiled."""
    x = torch.tensor(1.0, device="cpu") if way == "ignores" else torch.tensor(1.0)
    total = float(_given_up(x) if way == "given_up" else _compiled(x))
    if fails:
        raise WrongResult("the sum is wrong: {}".format(total))
    return {"total": total}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
