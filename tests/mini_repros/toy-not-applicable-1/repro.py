"""toy-not-applicable-1: Cannot exist here

The baseline finds that this torch has no such function, and says so by the exception made for it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


class NotApplicable(Exception):
    """This build does not have what the issue is about."""


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}



def baseline():
    """Asks for what no toy torch has."""
    if not hasattr(torch, "distributed"):
        raise NotApplicable("this torch was built without torch.distributed")
    return {"total": torch.total([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
