"""pytorch-195488: autocast stays nested after an exception inside a compiled `with torch.autocast`.

A compiled function opens autocast and reads a row that does not exist. The error is caught, as a training loop would,
and the state of autocast before and after is compared: how deeply it is nested, and whether it is on for the CPU.
Where it is left nested, the casts of weights that it keeps are never thrown away; the arm shows that, too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected autocast to be left as it was, \(depth 0, off\), got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _state():
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return "(depth {}, {})".format(depth, "on" if torch.is_autocast_cpu_enabled() else "off")


def _weight_seen():
    """What a plain, later autocast takes a weight for that has changed from 1.0 to 2.0 since the autocast before it."""
    weight = torch.ones(1, 1, requires_grad=True)
    for value in (1.0, 2.0):
        with torch.no_grad():
            weight.fill_(value)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen = float(torch.mm(torch.ones(1, 1), weight))
    return seen


def _rows(x, index):
    return x.index_select(0, index)


def _rows_in_autocast(x, index):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x.index_select(0, index)


def _observe(function, calls):
    x, good, bad = torch.ones(4, 4), torch.tensor([1]), torch.tensor([99])
    if function(x, good).shape != (1, 4) or _state() != "(depth 0, off)":
        raise RuntimeError("autocast is not off after a call without an error: " + _state())
    refused = 0
    for _ in range(calls):
        try:
            function(x, bad)
        except (IndexError, RuntimeError) as failure:
            if "out of " not in str(failure):
                raise
            refused += 1
    if refused != calls:
        raise RuntimeError("row 99 of 4 was read")
    after, weight = _state(), _weight_seen()
    if after != "(depth 0, off)":
        raise WrongResult("expected autocast to be left as it was, (depth 0, off), got {} after {} caught errors; a "
                          "later autocast sees a weight set to 2.0 as {}".format(after, calls, weight))
    return {"state": after, "weight": weight, "caught": refused}


def control(calls=2):
    return _observe(_rows_in_autocast, calls)


def baseline(calls=2):
    return _observe(torch.compile(_rows_in_autocast, backend="eager", fullgraph=True), calls)


def autocast_outside(calls=2):
    """Python's own `with` is around the compiled call."""
    compiled = torch.compile(_rows, backend="eager", fullgraph=True)

    def call(x, index):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return compiled(x, index)

    return _observe(call, calls)


def aot_eager(calls=2):
    """The graph that runs holds casts, and no context any more."""
    return _observe(torch.compile(_rows_in_autocast, backend="aot_eager", fullgraph=True), calls)


def look_first(calls=2):
    """The index is looked at before autocast is opened."""
    compiled = torch.compile(_rows_in_autocast, backend="eager", fullgraph=True)

    def call(x, index):
        if int(index.max()) >= x.shape[0]:
            raise IndexError("index out of range")
        return compiled(x, index)

    return _observe(call, calls)


def outer_autocast(calls=2):
    """An autocast that is off, around the call, to put things back."""
    compiled = torch.compile(_rows_in_autocast, backend="eager", fullgraph=True)

    def call(x, index):
        with torch.autocast("cpu", enabled=False):
            return compiled(x, index)

    return _observe(call, calls)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
