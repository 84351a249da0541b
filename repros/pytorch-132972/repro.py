"""pytorch-132972: custom_op(mutates_args="unknown") is read as the letters of a list of argument names.

An operator that adds y to x in place is registered and used in a compiled function, whose result must be 4 everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"in mutates_args were not found in the custom op's signature"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _bump(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)


def _use(bump, compiler):
    """What a function computes that calls `bump`: (1 + 1) * 2."""
    def function(x):
        x = x.clone()
        bump(x, torch.ones_like(x))
        return x * 2

    result = compiler(function)(torch.ones(2)).tolist()
    if result != [4.0, 4.0]:
        raise WrongResult("expected [4.0, 4.0], got {} (tolerance 0)".format(result))
    return {"result": result}


def _compile(function):
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def control():
    return _use(_bump, lambda function: function)


def baseline():
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args="unknown"), _compile)


def named():
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=("x",)), _compile)


def every_tensor():
    """All tensor arguments by name: what "unknown" stands for."""
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=("x", "y")), _compile)


def written_schema():
    torch.library.define("knowngood_132972::bump", "(Tensor(a!) x, Tensor y) -> ()")
    torch.library.impl("knowngood_132972::bump", "cpu", _bump)
    return _use(torch.ops.knowngood_132972.bump, _compile)


def empty():
    """Told that nothing is mutated, the compiler has no reason to run what returns nothing."""
    bump = torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=())
    bump.register_fake(lambda x, y: None)
    return _use(bump, _compile)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
