"""pytorch-175855: compiled iteration over a list does not see what is appended on the way.

A list of one element grows to three while it is iterated over. As in Python, 1, 2 and 3 must be visited.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the elements 1, 2 and 3, got \[1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_generator(x):
    values = [x.sum()]

    def grow_and_read():
        for item in values:
            if len(values) < 3:
                values.append(item + 1)
            yield item

    return torch.stack(list(grow_and_read()))


def _by_loop(x):
    values, seen = [x.sum()], []
    for item in values:
        if len(values) < 3:
            values.append(item + 1)
        seen.append(item)
    return torch.stack(seen)


def _by_index(x):
    values, seen, index = [x.sum()], [], 0
    while index < len(values):
        item = values[index]
        index += 1
        if len(values) < 3:
            values.append(item + 1)
        seen.append(item)
    return torch.stack(seen)


def _by_queue(x):
    waiting, seen, made = [x.sum()], [], 1
    while waiting:
        item = waiting.pop(0)
        if made < 3:
            waiting.append(item + 1)
            made += 1
        seen.append(item)
    return torch.stack(seen)


_KINDS = {"generator": _by_generator, "loop": _by_loop}


def _observe(function):
    got = function(torch.ones(1)).tolist()
    if got != [1.0, 2.0, 3.0]:
        raise WrongResult("expected the elements 1, 2 and 3, got {}".format(got))
    return {"got": got}


def control(kind="generator"):
    return _observe(_KINDS[kind])


def baseline(kind="generator"):
    return _observe(torch.compile(_KINDS[kind], backend="eager"))


def index(kind="generator"):
    """The length is asked for again before each element."""
    return _observe(torch.compile(_by_index, backend="eager"))


def queue(kind="generator"):
    """What is still to be visited is taken out of a list; nothing iterates over it."""
    return _observe(torch.compile(_by_queue, backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
