"""pytorch-198280: matrices transposed in place come out wrong from a compiled function on CUDA.

A batch of matrices is transposed and copied back into itself, a number of times for each shape, compiled and in eager mode.
In the fused kernel some programs read elements that others have already overwritten.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the transposed matrices, got \d+ other elements of \d+"

SHAPES = ((652, 5, 5), (80000, 5, 5), (64, 256, 256), (256, 512, 512))
REPEATS = 20


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


def _transpose_in_place(x):
    x.copy_(x.transpose(-1, -2) * 1.0)
    return x


def _transpose(x):
    return x.transpose(-1, -2) * 1.0


def _compare(function):
    observed = {}
    wrong = total = 0
    for shape in SHAPES:
        torch.manual_seed(0)
        start = torch.rand(shape).to("cuda")
        expected = start.transpose(-1, -2).contiguous()
        for _ in range(REPEATS):
            got = function(start.clone())
            torch.cuda.synchronize()
            wrong += int((got != expected).sum())
            total += got.numel()
        print(shape, "wrong so far:", wrong)
        observed["first row of %s x %s x %s" % shape] = got[1, 0, :4].tolist()
    if wrong:
        raise WrongResult("expected the transposed matrices, got {} other elements of {}, tolerance 0".format(wrong, total))
    return observed


def control():
    """Not compiled."""
    return _compare(_transpose_in_place)


def baseline():
    return _compare(torch.compile(_transpose_in_place))


def no_reordering():
    """Loops keep the order that they had before fusion."""
    import torch._inductor.config as inductor_config

    with inductor_config.patch(loop_ordering_after_fusion=False):
        return _compare(torch.compile(_transpose_in_place))


def copy_outside():
    """The compiled function returns a tensor of its own; the copy back is made after it."""
    compiled = torch.compile(_transpose)
    return _compare(lambda x: x.copy_(compiled(x)))


def aot_eager():
    """Without Inductor."""
    return _compare(torch.compile(_transpose_in_place, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
