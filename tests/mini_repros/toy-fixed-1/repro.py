"""toy-fixed-1: Fails to compile up to 0.0.1

The default mode fails with the issue's own text on torch 0.0.1 and works on 0.0.2. Its workarounds show every verdict one can get.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


class WrongResult(Exception):
    """The call came back with a value that is wrong."""



def _compiled(**options):
    return {"total": torch.compile(torch.total, **options)([1, 2, 3])}


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """The default backend and mode."""
    return _compiled()


def aot_eager():
    """Effective on 0.0.1, unnecessary on 0.0.2."""
    return _compiled(backend="aot_eager")


def dynamic():
    """Changes nothing: ineffective on 0.0.1, unnecessary on 0.0.2."""
    return _compiled(backend="inductor")


def patched():
    """Fails by itself: ineffective on 0.0.1, harmful on 0.0.2."""
    raise RuntimeError("the patch does not apply")
    return {}


def max_autotune():
    """Harmful on 0.0.1: a loud failure becomes silent wrong numbers."""
    observed = _compiled(mode="max-autotune")
    if observed["total"] != 6:
        raise WrongResult("expected 6, got {}, tolerance 0".format(observed["total"]))
    return observed


def eager():
    """Effective without compiling anything."""
    return {"total": torch.total([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
