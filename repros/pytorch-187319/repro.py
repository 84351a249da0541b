"""pytorch-187319: a custom operator that now says what it mutates is given the code compiled for its older self.

The operator is compiled as one that mutates nothing, then defined again under the same name, now adding to its argument
and saying so. The second compilation has to see the addition; a cached graph of the first does not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \S+ from the operator that mutates, got \S+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _define(name, mutating):
    """Register the operator, in the place of an earlier one of that name."""
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        if mutating:
            x.add_(10)
        return y

    operator = torch.library.custom_op("kg187319::" + name, step, mutates_args=("x",) if mutating else ())
    operator.register_fake(torch.empty_like)
    return getattr(torch.ops.kg187319, name)


def _run(how, name, mutating):
    """a is 1 and x is 2: y is 3, and x is 2 or 12 when it is added."""
    operator = _define(name, mutating)

    def function(a):
        x = a * 2
        y = operator(x)
        return y + x

    return float(how(function)(torch.ones(4))[0])


def _observe(how, second_name="step"):
    first = _run(how, "step", False)
    if first != 5.0:
        raise RuntimeError("the first operator alone gives {}".format(first))
    torch._dynamo.reset()
    second = _run(how, second_name, True)
    if second != 15.0:
        raise WrongResult("expected 15.0 from the operator that mutates, got {} (exact, tolerance 0)".format(second))
    return {"first": first, "second": second}


def _compiled(function):
    return torch.compile(function, fullgraph=True)


def control():
    """Not compiled, and defined anew in the same way."""
    return _observe(lambda function: function)


def baseline():
    return _observe(_compiled)


def new_name():
    """The name is a part of the cache's key."""
    return _observe(_compiled, second_name="step_v2")


def caches_off():
    """ENV turns off every compile cache of the process."""
    return _observe(_compiled)


def autograd_cache_off():
    """ENV turns off the cache of AOTAutograd alone: behind it, Inductor's key does hold what is mutated."""
    return _observe(_compiled)


def fx_cache_off():
    """ENV turns off Inductor's cache of FX graphs."""
    return _observe(_compiled)


ENV = {
    "caches_off": {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
    "autograd_cache_off": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
    "fx_cache_off": {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0"},
}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
