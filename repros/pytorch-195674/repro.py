"""pytorch-195674: code compiled with Inductor evaluates `1 - mask` of a bool mask, which plain torch refuses.

The same function is called with a mask of integers, which is fine, and with a bool one, which has to be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 1 - mask to be refused for a bool mask, got a tensor of torch\.\w+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(mask):
    return 1 - mask


def _complement(mask):
    return torch.logical_not(mask).to(torch.int64)


def _observe(function, refuses=True):
    mask = torch.tensor([0, 1, 0, 1])
    good = function(mask).tolist()  # a function that refuses everything has shown nothing
    if good != [1, 0, 1, 0]:
        raise RuntimeError("the mask of integers gives {}".format(good))
    try:
        result = function(mask.bool())
    except Exception as refusal:  # its class depends on the release and the backend
        if "bool tensor is not supported" not in str(refusal):
            raise
        return {"integers": good, "bool": "refused"}
    if refuses:
        raise WrongResult("expected 1 - mask to be refused for a bool mask, got a tensor of {}".format(result.dtype))
    return {"integers": good, "bool": result.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect, fullgraph=True))


def logical_not():
    """The complement, which is there for both kinds of masks."""
    return _observe(torch.compile(_complement, fullgraph=True), refuses=False)


def aot_eager():
    """Without Inductor and its decompositions."""
    return _observe(torch.compile(_suspect, fullgraph=True, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
