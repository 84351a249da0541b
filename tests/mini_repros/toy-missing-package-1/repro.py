"""toy-missing-package-1: Needs a package that is not there

The baseline imports a package that the issue does not name: the environment's fault, never the issue.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import importlib

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def baseline():
    """A package nobody asked for."""
    return {"answer": importlib.import_module("absent_package").ANSWER, "total": torch.total([1])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
