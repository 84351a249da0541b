"""pytorch-169908: the fused backward of a wide RMSNorm asks for more shared memory than there is.

The report's function, compiled, forward and backward. The gradients of the first rows and of the weight are compared
with those of eager mode, which is run on a few rows at a time so that it stays small.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"out of resource: \w[\w ,]{0,300}\s{1,20}Required: \d+,?\s{1,20}Hardware limit: ?\d+"

ENV = {"no_mix_order": {"TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0"}}

ROWS_AT_ONCE = 1024


class WrongResult(Exception):
    """The backward ran, and its gradients are wrong."""


def _norm(x, w):
    return F.rms_norm(x.float(), x.shape[1:], w, 1e-5).to(dtype=x.dtype)


def _at_once(norm):
    return lambda x, w: norm(x, w).sum().backward()


def _in_chunks(norm):
    """The same function, called on a few rows at a time, each with its own backward."""

    def step(x, w):
        for part in x.split(ROWS_AT_ONCE):
            norm(part, w).sum().backward()

    return step


def _by_hand(x, w):
    """Gradients of the first rows and of the weight, by eager mode and in pieces."""
    w = w.detach().requires_grad_()
    first = None
    for part in x.detach().split(ROWS_AT_ONCE):
        part = part.detach().requires_grad_()
        _norm(part, w).sum().backward()
        first = part.grad if first is None else first
    return first, w.grad


def _observe(step, rows, columns):
    torch.manual_seed(0)
    x = torch.randn((rows, columns), dtype=torch.bfloat16, device="cuda", requires_grad=True)
    w = torch.randn(columns, dtype=torch.float, device="cuda", requires_grad=True)
    step(x, w)
    torch.cuda.synchronize()
    for name, got, expected in zip("xw", (x.grad[:ROWS_AT_ONCE], w.grad), _by_hand(x, w)):
        apart = ((got.float() - expected.float()).norm() / expected.float().norm()).item()
        if not apart < 0.02:
            raise WrongResult(
                "expected the gradient of {} of eager mode, got one {} away, tolerance 0.02".format(name, apart)
            )
        print("gradient of", name, "is right, relative distance", apart)
    return {"rows": rows, "weight_grad": float(w.grad.double().sum()), "gpu": torch.cuda.get_device_name()}


def control(rows=32768, columns=16384):
    """Not compiled."""
    return _observe(_in_chunks(_norm), rows, columns)


def baseline(rows=32768, columns=16384):
    return _observe(_at_once(torch.compile(_norm)), rows, columns)


def no_mix_order(rows=32768, columns=16384):
    """ENV turns the fusion of the two reductions off."""
    return _observe(_at_once(torch.compile(_norm)), rows, columns)


def fewer_rows(rows=32768, columns=16384):
    """Below 4096 rows Inductor does not fuse them."""
    return _observe(_in_chunks(torch.compile(_norm)), rows, columns)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
