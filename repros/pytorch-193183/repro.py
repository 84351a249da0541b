"""pytorch-193183: slice assignments of stride 3 (interleaved MRoPE) copy wrong elements once compiled.

Every third element is copied from each of three planes, in eager mode and compiled; the copies must be equal.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the copied elements, got \d+ of \d+ other ones"

ENV = {"no_llvm_optimisation": {"DISABLE_LLVM_OPT": "1"}}

WIDTH = 64


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _interleave(x, h, w):
    """vLLM's apply_interleaved_rope."""
    x_t = x[0].clone()
    x_t[..., 1:h * 3:3] = x[1, ..., 1:h * 3:3]
    x_t[..., 2:w * 3:3] = x[2, ..., 2:w * 3:3]
    return x_t


def _by_masks(x, h, w):
    at = torch.arange(x.shape[-1], device=x.device)
    from_h = (at % 3 == 1) & (at < 3 * h)
    from_w = (at % 3 == 2) & (at < 3 * w)
    return torch.where(from_w, x[2], torch.where(from_h, x[1], x[0]))


def _compare(function, tokens, dtype, h, w):
    """`function` with what numpy's slices give."""
    torch.manual_seed(0)
    x = torch.randn(3, tokens, WIDTH, device="cuda").to(getattr(torch, dtype))
    planes = x.float().cpu().numpy()
    expected = planes[0].copy()
    expected[:, 1:h * 3:3] = planes[1][:, 1:h * 3:3]
    expected[:, 2:w * 3:3] = planes[2][:, 2:w * 3:3]
    got = function(x, h, w).float().cpu().numpy()
    other = int((got != expected).sum())
    columns = sorted(set((got != expected).nonzero()[1].tolist()))
    print("columns with other elements:", columns)
    if other:
        raise WrongResult("expected the copied elements, got {} of {} other ones, in {} of {} columns, tolerance 0".format(
            other, expected.size, len(columns), WIDTH))
    return {"elements": expected.size, "sum": float(got.sum()), "gpu": torch.cuda.get_device_name()}


def control(tokens=8192, dtype="bfloat16", h=20, w=20):
    """Not compiled."""
    return _compare(_interleave, tokens, dtype, h, w)


def baseline(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_interleave), tokens, dtype, h, w)


def mask_where(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_by_masks), tokens, dtype, h, w)


def gather_planes(tokens=8192, dtype="bfloat16", h=20, w=20):
    """The index is made outside of what is compiled."""
    plane = torch.zeros(WIDTH, dtype=torch.int64, device="cuda")
    plane[1:h * 3:3] = 1
    plane[2:w * 3:3] = 2

    def by_index(x, plane):
        return x.gather(0, plane.expand(1, *x.shape[1:]))[0]

    compiled = torch.compile(by_index)
    return _compare(lambda x, h, w: compiled(x, plane), tokens, dtype, h, w)


def no_llvm_optimisation(tokens=8192, dtype="bfloat16", h=20, w=20):
    """ENV switches LLVM's passes off, the vectoriser among them."""
    return _compare(torch.compile(_interleave), tokens, dtype, h, w)


def aot_eager(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_interleave, backend="aot_eager"), tokens, dtype, h, w)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
