"""toy-differs-1: Ends without an error and with other values

Each variant passes by its own word, and observes something else than the control: another sum, NaN, nothing of the name, a text
with a timing in it. None of them is a pass.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _observe(total, took, kind):
    if kind == "missing":
        return {"elements": 3}
    return {"total": "{} in {} s".format(total, took) if kind == "timed" else total}


def control(kind="wrong"):
    """The same sum without a compiler."""
    total = torch.total([1, 2, 3])
    return {"total": "{} in {} s".format(total, 0.012) if kind == "timed" else total}


def baseline(kind="wrong"):
    """Nothing is raised, and nobody compares."""
    total = torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])
    return _observe({"wrong": total + 1, "nan": float("nan")}.get(kind, total), 0.034, kind)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
