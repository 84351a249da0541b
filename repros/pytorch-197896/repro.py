"""pytorch-197896: what a method appends to a captured list is lost when its object is made in the compiled function.

A local class writes down, in a list or dict of the enclosing function, that it was called. The function is called
twice; the record must hold both calls.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \d+ calls on record, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _list_kept():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    def function(x):
        Recorder().note()
        return x + 1

    return function, lambda: len(record)


def _dict_kept():
    record = {"calls": 0}

    class Recorder:
        def note(self):
            record["calls"] += 1

    def function(x):
        Recorder().note()
        return x + 1

    return function, lambda: record["calls"]


def _made_outside():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    recorder = Recorder()

    def function(x):
        recorder.note()
        return x + 1

    return function, lambda: len(record)


def _plain_function():
    record = []

    def note():
        record.append("call")

    def function(x):
        note()
        return x + 1

    return function, lambda: len(record)


def _record_handed_over():
    record = []

    class Recorder:
        def __init__(self, record):
            self.record = record

        def note(self):
            self.record.append("call")

    def function(x):
        Recorder(record).note()
        return x + 1

    return function, lambda: len(record)


def _helper_in_python():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    @torch.compiler.disable
    def note():
        Recorder().note()

    def function(x):
        note()
        return x + 1

    return function, lambda: len(record)


_KINDS = {"list": _list_kept, "dict": _dict_kept}


def _observe(pair, how=lambda function: function):
    function, calls = pair()
    function = how(function)
    for _ in range(2):
        result = function(torch.ones(2))
        if result.tolist() != [2.0, 2.0]:
            raise WrongResult("expected [2.0, 2.0], got {}".format(result.tolist()))
    if calls() != 2:
        raise WrongResult("expected 2 calls on record, got {}".format(calls()))
    return {"calls": calls()}


def _compiled(function):
    return torch.compile(function, backend="eager")


def control(kind="list"):
    return _observe(_KINDS[kind])


def baseline(kind="list"):
    return _observe(_KINDS[kind], _compiled)


def made_outside(kind="list"):
    """The object is made before the compiled function is called."""
    return _observe(_made_outside, _compiled)


def plain_function(kind="list"):
    """A nested function in place of the method."""
    return _observe(_plain_function, _compiled)


def record_handed_over(kind="list"):
    """The object holds the list itself, and captures nothing."""
    return _observe(_record_handed_over, _compiled)


def helper_in_python(kind="list"):
    """Dynamo leaves to Python what makes the object and calls the method."""
    return _observe(_helper_in_python, _compiled)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
