"""pytorch-188938: repeat_interleave writes before its output where repeats are negative and output_size is given.

repeats = [-1, -1, 2] with output_size=0, on more than one thread, as in the report. Valid repeats must give their indices;
these must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"line \d{1,5} in _negative_repeats\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _good():
    got = torch.ops.aten.repeat_interleave(torch.tensor([1, 0, 2]), output_size=3).tolist()
    if got != [0, 2, 2]:
        raise WrongResult("expected 0, 2 and 2, got {}".format(got))
    return {"indices": got}


def _negative_repeats(repeats, size):
    return torch.ops.aten.repeat_interleave(repeats, output_size=size)


def _without_size(repeats, size):
    return torch.ops.aten.repeat_interleave(repeats)


def _checked(repeats, size):
    if bool((repeats < 0).any()):
        raise ValueError("repeats can not be negative")
    return torch.ops.aten.repeat_interleave(repeats, output_size=size)


def _observe(function):
    torch.set_num_threads(8)  # with one thread, the first negative number is met before anything is written
    observed = _good()
    try:
        got = function(torch.tensor([-1, -1, 2]), 0)
    except (RuntimeError, ValueError) as refusal:
        if "repeats can not be negative" not in str(refusal):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal, got {}".format(got.tolist()))


def control():
    torch.set_num_threads(8)
    return _good()


def baseline():
    return _observe(_negative_repeats)


def without_output_size():
    return _observe(_without_size)


def check_first():
    return _observe(_checked)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
