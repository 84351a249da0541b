"""pytorch-176679: what __torch_function__ of a tensor's subclass does is done twice in compiled code.

A subclass doubles what torch.add gives, and nothing else.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 8 and 12, got \d+\.0 and \d+\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Scaled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raw = super().__torch_function__(func, types, args, kwargs or {})
        return raw * 2.0 if func is torch.add and isinstance(raw, torch.Tensor) else raw


def _suspect(a, b):
    return torch.add(a, b)


def _plainly(a, b):
    return torch.add(a, b) * 2.0


def _observe(function, kind=_Scaled):
    a, b = torch.tensor([1.0, 2.0]).as_subclass(kind), torch.tensor([3.0, 4.0]).as_subclass(kind)
    result = function(a, b).tolist()
    if result != [8.0, 12.0]:
        raise WrongResult("expected 8 and 12, got {} and {}".format(*result))
    return {"result": result}


def _compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def plain():
    """Plain tensors are handed over, and the function does what the subclass would."""
    return _observe(_compiled(_plainly), torch.Tensor)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
