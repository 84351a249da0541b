"""pytorch-194547: a sample of a normal distribution has another dtype in compiled code.

The mean is float16 and the standard deviation float32; the sample is float16 without compiling.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a sample of torch\.float16, got torch\.\w+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(loc, scale):
    return torch.distributions.Normal(loc, scale).sample()


def _observe(function, prepare=lambda scale: scale):
    sample = function(torch.zeros(8, dtype=torch.float16), prepare(torch.ones(8)))
    if sample.dtype != torch.float16:
        raise WrongResult("expected a sample of torch.float16, got {}".format(sample.dtype))
    return {"dtype": str(sample.dtype), "shape": list(sample.shape)}


def _compiled(function):
    return torch.compile(function, backend="aot_eager_decomp_partition")


def control():
    return _observe(_suspect)


def baseline():
    return _observe(_compiled(_suspect))


def one_dtype():
    """Both parameters have the dtype that the sample is to have."""
    return _observe(_compiled(_suspect), lambda scale: scale.to(torch.float16))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
