"""triton-7835: Inductor does not find triton_key in a Triton that is newer than its torch knows.

The key of Inductor's compile cache holds Triton's version, and Triton 3.5 moved the function that tells it. Every
compiled function needs that key, on the CPU as well.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton

SIGNATURE = r"cannot import name 'triton_key' from 'triton\.compiler\.compiler"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _plus_one(x):
    return x + 1


def _observe(function):
    result = function(torch.ones(4))
    if result.tolist() != [2, 2, 2, 2]:
        raise WrongResult("expected four times 2, got {}".format(result.tolist()))
    return {"triton": triton.__version__, "values": result.tolist()}


def control():
    return _observe(_plus_one)


def baseline():
    return _observe(torch.compile(_plus_one, fullgraph=True))


def aot_eager():
    """No key is needed without Inductor."""
    return _observe(torch.compile(_plus_one, backend="aot_eager", fullgraph=True))


def restore_name():
    """The function is put back where torch looks for it."""
    import triton.compiler.compiler

    if not hasattr(triton.compiler.compiler, "triton_key"):
        from triton.runtime.cache import triton_key

        triton.compiler.compiler.triton_key = triton_key
    return _observe(torch.compile(_plus_one, fullgraph=True))


def caches_off():
    """ENV turns Inductor's caches off: no key is asked for."""
    return _observe(torch.compile(_plus_one, fullgraph=True))


ENV = {"caches_off": {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
