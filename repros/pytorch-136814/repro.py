"""pytorch-136814: compiling a call of a closure that another function has returned ends in an internal error.

A function returns a closure over a variable of the function around it; compiled code calls both. With x = 1, x + 2 is 3.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"InstructionTranslator\W object has no attribute \Wparent\W"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(kind):
    x = torch.ones(1)
    number = 2

    def make():
        def inner():
            return x + 2

        return inner

    def make_scaled():
        def inner(y):
            return y + number

        return inner

    def start(y):
        return make()() + 0 * y

    def start_number(y):
        return make_scaled()(y)

    return {"tensor": start, "number": start_number}[kind]


def _read_in_the_frame(kind):
    x = torch.ones(1)
    number = 2

    def make():
        def inner():
            return x + 2

        return inner

    def make_scaled():
        def inner(y):
            return y + number

        return inner

    def start(y):
        x  # captured by the compiled function as well
        return make()() + 0 * y

    def start_number(y):
        number  # captured by the compiled function as well
        return make_scaled()(y)

    return {"tensor": start, "number": start_number}[kind]


def _handed_over(kind):
    x = torch.ones(1)
    number = 2

    def make(x):
        def inner():
            return x + 2

        return inner

    def make_scaled(number):
        def inner(y):
            return y + number

        return inner

    def start(y):
        return make(x)() + 0 * y

    def start_number(y):
        return make_scaled(number)(y)

    return {"tensor": start, "number": start_number}[kind]


def _default(kind):
    x = torch.ones(1)
    number = 2

    def make(x=x):
        def inner(x=x):
            return x + 2

        return inner

    def make_scaled(number=number):
        def inner(y, number=number):
            return y + number

        return inner

    def start(y):
        return make()() + 0 * y

    def start_number(y):
        return make_scaled()(y)

    return {"tensor": start, "number": start_number}[kind]


def _observe(function):
    got = function(torch.ones(1)).tolist()
    if got != [3.0]:
        raise WrongResult("expected [3.0], got {}".format(got))
    return {"got": got}


def control(kind="tensor"):
    return _observe(_suspect(kind))


def baseline(kind="tensor"):
    return _observe(torch.compile(_suspect(kind), backend="eager"))


def read_in_the_frame(kind="tensor"):
    """The compiled function captures the variable too."""
    return _observe(torch.compile(_read_in_the_frame(kind), backend="eager"))


def handed_over(kind="tensor"):
    """The variable is an argument of the function that makes the closure."""
    return _observe(torch.compile(_handed_over(kind), backend="eager"))


def default(kind="tensor"):
    """The variable is the default of an argument, and nothing is captured."""
    return _observe(torch.compile(_default(kind), backend="eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
