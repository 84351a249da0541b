"""pytorch-191136: compiled torch.view_copy of an expanded tensor is refused, though a copy needs no view.

A row that is expanded to a matrix is copied into a flat tensor, in eager mode and compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"Cannot view a tensor with shape torch\.Size\(\[[^]C\n]*\]\) and strides \([^)C\n]*\b0[,)]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _view_copy(t):
    return torch.view_copy(t, [8])


def _contiguous(t):
    return torch.view_copy(t.contiguous(), [8])


def _reshape(t):
    return t.reshape(8)


def _flatten(t):
    return torch.flatten(t).clone()


def _observe(function, expanded=True):
    row = torch.arange(2, dtype=torch.float32)
    t = row.expand(4, 2) if expanded else row.repeat(4, 1)
    got = function(t)
    if got.tolist() != [0.0, 1.0] * 4:
        raise WrongResult("expected 0, 1 four times, got {}".format(got.tolist()))
    return {"elements": got.numel(), "strides_in": str(t.stride())}


def control(expanded=True):
    return _observe(_view_copy, expanded)


def baseline(expanded=True):
    return _observe(torch.compile(_view_copy, fullgraph=True), expanded)


def contiguous_first(expanded=True):
    """The input is a plain matrix by the time it is viewed."""
    return _observe(torch.compile(_contiguous, fullgraph=True), expanded)


def reshape(expanded=True):
    """A reshape copies where it cannot view."""
    return _observe(torch.compile(_reshape, fullgraph=True), expanded)


def aot_eager(expanded=True):
    """view_copy stays one operator."""
    return _observe(torch.compile(_view_copy, backend="aot_eager", fullgraph=True), expanded)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
