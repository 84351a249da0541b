"""pytorch-197811: a closure over another Tensor method runs the graph that was compiled for the first.

Two closures of one factory, over the methods of addition and of multiplication of Tensor, compiled one after the other.
Each must compute its own: 6 + 3 and 6 * 3.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the product 18, got the sum 9"

_METHODS = {
    "operator": (torch.Tensor.__add__, torch.Tensor.__mul__),
    "method": (torch.Tensor.add, torch.Tensor.mul),
}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _closure(operation):
    def _apply(x, y):
        return operation(x, y)

    return _apply


def _observe(add, multiply):
    x, y = torch.tensor([6.0, 0.5]), torch.tensor([3.0, 8.0])
    sums, products = add(x, y).tolist(), multiply(x, y).tolist()
    if sums == [9.0, 8.5] and products == sums:
        raise WrongResult("expected the product 18, got the sum 9 (the graph of the first closure)")
    if (sums, products) != ([9.0, 8.5], [18.0, 4.0]):
        raise WrongResult("expected the sums 9 and 8.5 and the products 18 and 4, got {} and {}".format(sums, products))
    return {"sums": sums, "products": products}


def control(methods="operator"):
    return _observe(*map(_closure, _METHODS[methods]))


def baseline(methods="operator"):
    add, multiply = map(_closure, _METHODS[methods])
    return _observe(torch.compile(add, dynamic=True), torch.compile(multiply, dynamic=True))


def functions(methods="operator"):
    """A captured function of torch is guarded."""
    add, multiply = _closure(torch.add), _closure(torch.mul)
    return _observe(torch.compile(add, dynamic=True), torch.compile(multiply, dynamic=True))


def _add(x, y, methods="operator"):
    return _METHODS[methods][0](x, y)


def _multiply(x, y, methods="operator"):
    return _METHODS[methods][1](x, y)


def own_code(methods="operator"):
    """Kept graphs are found by code object: functions with a code of their own share none."""
    add, multiply = torch.compile(_add, dynamic=True), torch.compile(_multiply, dynamic=True)
    return _observe(lambda x, y: add(x, y, methods), lambda x, y: multiply(x, y, methods))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
