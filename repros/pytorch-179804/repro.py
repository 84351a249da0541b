"""pytorch-179804: the compiled backward of a region that switches autocast off is computed in bfloat16.

A float32 product is taken with autocast off, inside of a region with autocast on. The gradient of its weight is
2 * 257, which bfloat16 cannot hold.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient 514, got 51[26]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class NotApplicable(Exception):
    """This cannot exist here."""


def _suspect(x, weight):
    with torch.amp.autocast("cpu", enabled=False):
        return x.float() @ weight.t()


def _whole(x, weight):
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        with torch.amp.autocast("cpu", enabled=False):
            return x.float() @ weight.t()


def _observe(function, ambient=True):
    x = torch.ones(2, 2, dtype=torch.bfloat16)
    weight = torch.ones(2, 2, requires_grad=True)
    with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=ambient):
        y = function(x, weight)
    (y * 257.0).sum().backward()
    got = weight.grad.tolist()
    if got != [[514.0, 514.0], [514.0, 514.0]]:
        raise WrongResult("expected the gradient 514, got {:g} (tolerance 0)".format(got[0][0]))
    return {"y": y.tolist(), "dtype": str(y.dtype), "gradient": got}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


def backward_off():
    """AOTAutograd is told that the backward runs without autocast."""
    import torch._functorch.config as config

    if not hasattr(config, "backward_pass_autocast"):
        raise NotApplicable("no backward_pass_autocast in this torch")
    with config.patch(backward_pass_autocast="off"):
        return _observe(torch.compile(_suspect, backend="aot_eager"))


def off_outside():
    """Autocast is off already where the compiled function is called."""
    compiled = torch.compile(_suspect, backend="aot_eager")

    def function(x, weight):
        with torch.amp.autocast("cpu", enabled=False):
            return compiled(x, weight)

    return _observe(function)


def whole():
    """Both contexts are inside of what is compiled."""
    return _observe(torch.compile(_whole, backend="aot_eager"), ambient=False)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
