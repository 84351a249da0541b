"""pytorch-197887: code compiled with Inductor computes gradients from an input that was changed after the forward pass.

An input of a matrix product is overwritten between forward and backward. Autograd has to refuse that, as it does
without compiling; a gradient of what was not computed must not come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected autograd to refuse the changed input, got the gradient \d+\.0 instead of 2\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, w):
    return (x @ w).relu()


def _observe(function, copy=lambda x: x):
    x, w = torch.ones(2, 3), torch.ones(3, 3, requires_grad=True)
    out = function(copy(x), w)
    x.fill_(5.0)  # as a loop does that reads the next batch into the same buffer
    forward = out.detach().sum().item()
    try:
        out.sum().backward()
    except RuntimeError as refusal:
        if "modified by an inplace operation" not in str(refusal):
            raise
        return {"forward": forward, "backward": "refused"}
    gradient = w.grad[0, 0].item()
    if gradient != 2.0:
        raise WrongResult("expected autograd to refuse the changed input, got the gradient {} instead of 2.0"
                          .format(gradient))
    return {"forward": forward, "backward": gradient}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def copied():
    """What backward needs is a copy that nobody writes to."""
    return _observe(torch.compile(_suspect, fullgraph=True), torch.clone)


def aot_eager():
    """The saved tensor is the input itself, and autograd sees that it was written to."""
    return _observe(torch.compile(_suspect, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
