"""deepmd-kit-4804: an operator that needs contiguous tensors copies, in every call, what is kept in another layout.

A custom operator as in message passing: it sends the features of atoms along edges, and asks for contiguous tensors first.
It is given columns of a tensor of edges and transposed features, or the same numbers in contiguous tensors. The results
are equal; what differs is the time that calls take.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import functools

import torch

SIGNATURE = r""


@torch.library.custom_op("known_good_4804::send", mutates_args=())
def _send(features: torch.Tensor, sent: torch.Tensor) -> torch.Tensor:
    return features.contiguous().index_select(0, sent.contiguous())


@functools.cache
def _made():
    """The features of 384 atoms, and as many edges. Made once, as a neighbour list is for all layers of a model. All that is
    allocated is below 128 KiB: more than that comes with page faults or without, as the allocator happens to have room.
    """
    torch.manual_seed(0)
    return torch.randn(384, 64), torch.randint(384, (2, 384))


@functools.cache
def _contiguous():
    features, edges = _made()
    return features, edges[0]


@functools.cache
def _as_columns():
    """The same, kept so that what the operator takes lies apart in memory."""
    features, edges = _made()
    return features.t().contiguous().t(), edges.t().contiguous()[:, 0]


@functools.cache
def _made_contiguous():
    return tuple(tensor.contiguous() for tensor in _as_columns())


def _observe(features, sent):
    rows = _send(features, sent)
    return {"first": rows[0, 0].item(), "last": rows[-1, -1].item()}


def control():
    """Contiguous tensors."""
    return _observe(*_contiguous())


def baseline():
    """What is kept as columns is copied in the call."""
    return _observe(*_as_columns())


def contiguous_once():
    """It is copied before the calls, and once for all of them."""
    return _observe(*_made_contiguous())


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
