"""pytorch-172386: the function that torch.func.vjp returns gives zeros once compiled.

The vector-Jacobian product of a linear layer with ones must be the sum of the rows of its input, and not zero.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient \[4\.0, 8\.0\], got \[0\.0, 0\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_X = [[1.0, 2.0]] * 4


def _layer():
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.zero_()
    return layer, {name: value for name, value in layer.named_parameters()}


def _call(layer):
    x = torch.tensor(_X)
    return lambda parameters: torch.func.functional_call(layer, parameters, x)


def _suspect_of(vjp):
    def _suspect(tangent):
        return vjp(tangent)[0]["weight"] * 1.0

    return _suspect


def _observe(gradient):
    got = gradient(torch.ones(4, 1))[0].tolist()
    if got != [4.0, 8.0]:
        raise WrongResult("expected the gradient [4.0, 8.0], got {}".format(got))
    return {"gradient": got}


def _vjp():
    layer, parameters = _layer()
    return torch.func.vjp(_call(layer), parameters)[1]


def control():
    return _observe(_suspect_of(_vjp()))


def baseline():
    return _observe(torch.compile(_suspect_of(_vjp()), backend="aot_eager"))


def inside():
    """torch.func.vjp and the call of what it returns are compiled together."""
    layer, parameters = _layer()
    x = torch.tensor(_X)

    def gradient(parameters, tangent):
        vjp = torch.func.vjp(lambda p: torch.func.functional_call(layer, p, x), parameters)[1]
        return vjp(tangent)[0]["weight"]

    compiled = torch.compile(gradient, backend="aot_eager")
    return _observe(lambda tangent: compiled(parameters, tangent))


def disabled():
    """Dynamo does not look into the function."""
    return _observe(torch.compile(_suspect_of(torch.compiler.disable(_vjp())), backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
