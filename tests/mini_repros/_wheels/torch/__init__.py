"""A stand-in for torch, small enough to be read: the surface that the worker and the toy issues touch, and two bugs.

The version with `IS_AFFECTED` fails to compile in the default mode and is silently wrong with `mode="max-autotune"`.
"""

from torch import _dynamo, overrides, version

__version__ = version.__version__


class CompileError(RuntimeError):
    pass


def add(left, right):
    return overrides.call(lambda: left + right)


def total(values):
    return overrides.call(lambda: sum(values))


def get_num_threads():
    return 2


def compile(function, *, backend="inductor", mode="default"):
    """Like torch.compile as far as its counters go: a graph is counted once its backend has compiled it."""
    graphs = []

    def compiled(*args):
        if not graphs:
            if backend == "inductor" and mode == "default" and version.IS_AFFECTED:
                raise CompileError("error: conflicting declaration 'long tmp_acc0_arr [2]'")
            graphs.append(function)
            _dynamo.utils.counters["stats"]["unique_graphs"] += 1
        is_wrong = mode == "max-autotune" and version.IS_AFFECTED
        return function(*args) + 1 if is_wrong else function(*args)

    return compiled
