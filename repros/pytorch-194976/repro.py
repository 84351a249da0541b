"""pytorch-194976: a changing Python float is replaced by an earlier value in a compiled, differentiated clamp.

A clamped gate is called with four limits, one after the other, and differentiated; output and gradient are compared
with plain torch. From the second limit on Dynamo makes the float dynamic, and from then on the compile caches may
answer.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the values of limit \S+, got others"

ENV = {"no_autograd_cache": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}}

_LIMITS = (7.0, 1.5, 0.5, 7.0)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _gate(x, limit):
    gate, up = torch.chunk(x, 2, dim=-1)
    return F.silu(gate).clamp(max=limit) * up.clamp(min=-limit, max=limit)


def _run(function, x, limit, train):
    x = x.clone().requires_grad_(train)
    result = function(x, limit)
    if not train:
        return result, torch.zeros(())
    result.sum().backward()
    return result.detach(), x.grad


def _observe(function, train, wrap=float):
    torch.manual_seed(0)
    x = torch.randn(64, 32) * 8
    last = None
    for limit in _LIMITS:
        expected, got = _run(_gate, x, limit, train), _run(function, x, wrap(limit), train)
        off = [float((one - other).abs().max()) for one, other in zip(expected, got)]
        if max(off) > 1e-3:
            raise WrongResult("expected the values of limit {}, got others: output off by {:.3g}, gradient by {:.3g} "
                              "(tolerance 1e-3)".format(limit, *off))
        last = float(got[0].abs().max())
    return {"limits": len(_LIMITS), "largest": last}


def control(train=True):
    return _observe(_gate, train)


def baseline(train=True):
    return _observe(torch.compile(_gate), train)


def specialize_float(train=True):
    """Every value of the float is a constant of its own graph."""
    import torch._dynamo

    torch._dynamo.config.specialize_float = True
    return _observe(torch.compile(_gate), train)


def tensor_limit(train=True):
    """The limit travels as a tensor of no dimensions."""
    return _observe(torch.compile(_gate), train, wrap=torch.tensor)


def no_autograd_cache(train=True):
    """ENV switches the cache of AOTAutograd off."""
    return _observe(torch.compile(_gate), train)


def aot_eager(train=True):
    return _observe(torch.compile(_gate, backend="aot_eager"), train)


def dynamic_false(train=True):
    return _observe(torch.compile(_gate, dynamic=False), train)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
