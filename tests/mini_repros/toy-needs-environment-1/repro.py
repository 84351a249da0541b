"""toy-needs-environment-1: Needs a variable before the interpreter starts

The workaround is a variable that only counts if it is set before Python starts; the arm fails where it is not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import sys

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"

ENV = {"fixed_seed": {"PYTHONHASHSEED": "0"}}


class WrongResult(Exception):
    """The call came back with a value that is wrong."""



def _hash_is_fixed():
    return os.environ.get("PYTHONHASHSEED") == "0" and not sys.flags.hash_randomization


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """Fails on 0.0.1, whatever the variable."""
    return {"total": torch.compile(torch.total)([1, 2, 3])}


def fixed_seed():
    """Right only in an interpreter that was started with the variable."""
    if not _hash_is_fixed():
        raise RuntimeError("the interpreter was started without PYTHONHASHSEED=0")
    return {"total": torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
