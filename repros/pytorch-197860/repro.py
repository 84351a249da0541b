"""pytorch-197860: compiled code keeps running the old body of a method whose code object was replaced.

A method doubles its argument; then its code object is replaced by that of a function that multiplies by nine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected 9 after the method's code was replaced, got 2\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _model():
    def first(self, x):
        return x * 2.0

    class Model:
        m = first

    return Model


def _second(self, x):
    return x * 9.0


def _by_code(cls):
    cls.m.__code__ = _second.__code__


def _by_assignment(cls):
    cls.m = _second


def _by_code_and_reset(cls):
    cls.m.__code__ = _second.__code__
    torch._dynamo.reset()


def _method(cls):
    model = cls()

    def call(x):
        return model.m(x)

    return call


def _function_of_class(cls):
    model = cls()

    def call(x):
        return cls.m(model, x)

    return call


def _observe(replace, wrap=lambda function: function, make=_method):
    cls = _model()
    function, x = wrap(make(cls)), torch.ones(())
    before = function(x).item()
    replace(cls)
    after = function(x).item()
    if before != 2.0:
        raise WrongResult("expected 2 from the first body, got {}".format(before))
    if after != 9.0:
        raise WrongResult("expected 9 after the method's code was replaced, got {}".format(after))
    return {"before": before, "after": after}


def _compiled(function):
    return torch.compile(function, backend="eager")


def control():
    return _observe(_by_code)


def baseline():
    return _observe(_by_code, _compiled)


def through_class():
    """The method is called as a function of the class, whose code is guarded."""
    return _observe(_by_code, _compiled, _function_of_class)


def reset():
    """Everything that was compiled is forgotten."""
    return _observe(_by_code_and_reset, _compiled)


def assignment():
    """No cure: another function in the place of the method, and not another code in it."""
    return _observe(_by_assignment, _compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
