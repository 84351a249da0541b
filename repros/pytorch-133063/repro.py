"""pytorch-133063: compiled list.extend with a generator that reads the list does not see what it has added.

Each of three steps adds one to the last element of the list, which starts as [0, 0]: it must end as [0, 0, 1, 2, 3].
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the list \[0\.0, 0\.0, 1\.0, 2\.0, 3\.0\], got \[0\.0, 0\.0, 1\.0, 1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Step(torch.nn.Module):
    def forward(self, x):
        return x + 1


class _Model(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.steps = torch.nn.ModuleList([_Step() for _ in range(3)])
        self.how = how

    def forward(self, x):
        return self.how(self.steps, [x, x])


def _extend(steps, y):
    y.extend(step(y[-1]) for step in steps)
    return y


def _append(steps, y):
    for step in steps:
        y.append(step(y[-1]))
    return y


def _last_kept(steps, y):
    last, added = y[-1], []
    for step in steps:
        last = step(last)
        added.append(last)
    y.extend(added)
    return y


def _comprehension(steps, y):
    y.extend([step(y[-1]) for step in steps])
    return y


def _observe(how, wrap=lambda model: model):
    with torch.no_grad():
        got = [float(element) for element in wrap(_Model(how).eval())(torch.zeros(()))]
    if got != [0.0, 0.0, 1.0, 2.0, 3.0]:
        raise WrongResult("expected the list [0.0, 0.0, 1.0, 2.0, 3.0], got {}".format(got))
    return {"got": got}


def _compiled(model):
    return torch.compile(model, backend="eager")


def control():
    return _observe(_extend)


def baseline():
    return _observe(_extend, _compiled)


def append():
    """A loop that appends."""
    return _observe(_append, _compiled)


def last_kept():
    """The last element is a variable of its own."""
    return _observe(_last_kept, _compiled)


def comprehension():
    """No cure: a list comprehension is computed before anything is added, in eager mode too."""
    return _observe(_comprehension, _compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
