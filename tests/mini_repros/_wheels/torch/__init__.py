"""A stand-in for torch, small enough to be read: the surface that the worker and the toy issues touch, and two bugs.

The version with `IS_AFFECTED` fails to compile in the default mode and is silently wrong with `mode="max-autotune"`.
"""

import operator

from torch import _C, _dynamo, overrides, version

__version__ = version.__version__


_default = ["cpu"]


class CompileError(RuntimeError):
    pass


class Tensor(float):
    device = "cpu"

    @property
    def is_cuda(self):
        return self.device == "cuda"


def tensor(value, device=None):
    made = Tensor(value)
    made.device = device or _default[0]
    return made


def set_default_device(device):
    _default[0] = device


def add(left, right):
    return overrides.call(operator.add, left, right)


def total(values):
    return overrides.call(sum, values)


def get_num_threads():
    return 2


def compile(function, *, backend="inductor", mode="default"):
    """Like torch.compile as far as its counters and seams go: a frame is converted once, its backend compiles it, and
    what that gave back is called from then on. Errors are suppressed by giving a frame up, if the setting says so.
    """
    graphs = []

    def compile_graph(graph):
        if callable(backend):
            return backend(graph, [])
        if backend == "inductor" and mode == "default" and version.IS_AFFECTED:
            raise CompileError("error: conflicting declaration 'long tmp_acc0_arr [2]'")
        is_wrong = mode == "max-autotune" and version.IS_AFFECTED
        return lambda *args: graph(*args) + 1 if is_wrong else graph(*args)

    compile_graph.__name__ = getattr(backend, "__name__", backend)

    def compiled(*args):
        if not graphs:
            try:
                graphs.append(_dynamo.convert_frame._compile(function.__code__, {}, _locals(function, args), function, compile_graph))
            except Exception:
                if not _dynamo.config.suppress_errors:
                    raise
                graphs.append(function)
        return graphs[0](*args)

    return compiled


def _locals(function, args):
    return dict(zip(function.__code__.co_varnames, args))
