"""pytorch-146174: dropout on a CPU draws its mask one number at a time since MKL's generator is no longer used for it.

The script drops half of 8,192 numbers. The control compares uniform random numbers with the probability instead, which
gives the same distribution. What is dropped differs; the share that is kept, and the scale, are checked.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import functools

import torch

SIGNATURE = r""

P = 0.5


class WrongResult(Exception):
    """The mask was drawn, and not with the probability that was asked for."""


@functools.cache
def _input():  # below 128 KiB: more than that comes with page faults or without, as the allocator happens to have room
    return torch.ones(32, 256)


def _observe(dropped):
    kept = dropped.mean().item() * (1 - P)  # what is kept is scaled by 1 / (1 - P)
    if not abs(kept - (1 - P)) < 0.04:  # seven standard deviations
        raise WrongResult("expected a share of 0.5 to be kept, got {:.3f}, tolerance 0.04".format(kept))
    return {"numbers": dropped.numel(), "scale": dropped.max().item()}


def _by_uniform(x, p):
    """Dropout from uniform random numbers."""
    return x * (torch.rand_like(x) >= p) / (1 - p)


class _Dropout(torch.nn.Module):
    """To be put in the place of torch.nn.Dropout."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        return torch.rand_like(x).ge_(self.p).div_(1 - self.p).mul_(x)


@functools.cache
def _module():
    return _Dropout(P)


def control():
    return _observe(_by_uniform(_input(), P))


def baseline():
    return _observe(torch.nn.functional.dropout(_input(), P, training=True))


def uniform_mask():
    """A module of its own draws the mask."""
    return _observe(_module()(_input()))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
