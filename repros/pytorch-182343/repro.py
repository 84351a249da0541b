"""pytorch-182343: searchsorted and bucketize forget where a slice of their boundaries begins.

Positions are mapped to the segments that hold them, given cumulative lengths whose first element is sliced off, in eager
mode and compiled. Segments are counted from 1, which gives the compiler something to do where it does not search itself.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \[[\d, ]+\], got \[[\d, ]+\], tolerance 0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _search(operator, boundaries, values):
    if operator == "bucketize":
        return torch.bucketize(values, boundaries, right=True) + 1
    return torch.searchsorted(boundaries, values, right=True) + 1


def _compare(function, operator, first):
    """`function` with the same search in eager mode; it is given all offsets and how many to leave out."""
    offsets = torch.tensor([0, 3, 7, 12], device="cuda")
    values = torch.arange(12, device="cuda")
    expected = _search(operator, offsets[first:], values).tolist()
    got = function(operator, offsets, values, first).tolist()
    print("expected", expected)
    print("got     ", got)
    if got != expected:
        raise WrongResult("expected {}, got {}, tolerance 0".format(expected, got))
    return {"segments": got}


def _sliced(operator, offsets, values, first):
    return _search(operator, offsets[first:], values)


def control(operator="searchsorted", first=1):
    """Not compiled."""
    return _compare(_sliced, operator, first)


def baseline(operator="searchsorted", first=1):
    return _compare(torch.compile(_sliced), operator, first)


def slice_outside(operator="searchsorted", first=1):
    """The compiled function gets the slice as its argument."""
    compiled = torch.compile(_search)
    return _compare(lambda operator, offsets, values, first: compiled(operator, offsets[first:], values), operator, first)


def whole_minus_one(operator="searchsorted", first=1):
    """All offsets are searched, and those that come before the slice are taken off."""

    def whole(operator, offsets, values, first):
        return _search(operator, offsets, values) - first

    return _compare(torch.compile(whole), operator, first)


def compare_and_count(operator="searchsorted", first=1):
    """No search: every value is compared with every boundary."""

    def count(operator, offsets, values, first):
        return (offsets[first:, None] <= values).sum(0) + 1

    return _compare(torch.compile(count), operator, first)


def contiguous(operator="searchsorted", first=1):
    """The slice is contiguous already."""

    def made_contiguous(operator, offsets, values, first):
        return _search(operator, offsets[first:].contiguous(), values)

    return _compare(torch.compile(made_contiguous), operator, first)


def clone(operator="searchsorted", first=1):
    """Inductor removes the copy."""

    def cloned(operator, offsets, values, first):
        return _search(operator, offsets[first:].clone(), values)

    return _compare(torch.compile(cloned), operator, first)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
