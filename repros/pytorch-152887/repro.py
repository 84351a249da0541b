"""pytorch-152887: what a function with CUDA graphs returned is overwritten before the next one can take it.

Two calls of functions compiled with mode="reduce-overhead", the second on the first one's output, repeated so that the
graphs are warmed up, recorded and replayed. Each round must give (x + 1) * 2, or x + 2 where one function is called
twice.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run"

ROUNDS = 4


class WrongResult(Exception):
    """The chain ran, and its numbers are wrong."""


def _add(x):
    return x + 1


def _double(x):
    return x * 2


def _pair(functions, how):
    """The two functions of the chain, each as `how` makes it; one and the same where there is only one."""
    first = how(_add)
    return (first, first) if functions == 1 else (first, how(_double))


def _graphs(function):
    return torch.compile(function, mode="reduce-overhead")


def _observe(chain, functions):
    total = 0.0
    for at in range(ROUNDS):
        x = torch.arange(8, device="cuda", dtype=torch.float32) + at
        expected = x + 2 if functions == 1 else (x + 1) * 2
        got = chain(x).clone()
        torch.cuda.synchronize()
        if not torch.equal(got, expected):
            raise WrongResult("expected {}, got {}, tolerance 0".format(expected.tolist(), got.tolist()))
        print("round", at, "is right")
        total += float(got.sum())
    return {"rounds": ROUNDS, "sum": total, "gpu": torch.cuda.get_device_name()}


def control(functions=1):
    """Not compiled."""
    first, second = _pair(functions, lambda function: function)
    return _observe(lambda x: second(first(x)), functions)


def baseline(functions=1):
    first, second = _pair(functions, _graphs)
    return _observe(lambda x: second(first(x)), functions)


def mark_once(functions=1):
    """Both calls belong to one step."""
    first, second = _pair(functions, _graphs)

    def chain(x):
        torch.compiler.cudagraph_mark_step_begin()
        return second(first(x))

    return _observe(chain, functions)


def clone_between(functions=1):
    """The copy is no output of a CUDA graph."""
    first, second = _pair(functions, _graphs)
    return _observe(lambda x: second(first(x).clone()), functions)


def one_graph(functions=1):
    """Nothing is handed over between graphs."""
    first, second = _pair(functions, lambda function: function)
    return _observe(_graphs(lambda x: second(first(x))), functions)


def no_cuda_graphs(functions=1):
    """The default mode."""
    first, second = _pair(functions, torch.compile)
    return _observe(lambda x: second(first(x)), functions)


def mark_each(functions=1):
    """A step of its own for each call: the advice of the message."""
    first, second = _pair(functions, _graphs)

    def chain(x):
        torch.compiler.cudagraph_mark_step_begin()
        y = first(x)
        torch.compiler.cudagraph_mark_step_begin()
        return second(y)

    return _observe(chain, functions)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
