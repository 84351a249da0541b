"""pytorch-140464: an int attribute of a module that is changed from outside is compiled into the graph for each value.

A module multiplies by its attribute `step_count`, which the caller raises between the calls of a compiled function. The
second value must make it dynamic, so that five values need two graphs. The script counts them.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo

SIGNATURE = r"expected at most 2 graphs for 5 values, got \d+"


class NotApplicable(Exception):
    """The arm cannot exist on this build."""


class WrongResult(Exception):
    """The computation ended without an error and with more work than it should."""


class _Module(torch.nn.Module):
    step_count = 2

    def forward(self, x):
        return x * self.step_count


class _Argument(torch.nn.Module):
    def forward(self, x, step_count):
        return x * step_count


def _observe(call, values=(2, 3, 4, 5, 6)):
    graphs = []

    def counting(graph, inputs):
        graphs.append(len(inputs))
        return graph.forward

    run = call(counting)
    sums = [float(run(torch.ones(3), value).sum()) for value in values]
    if sums != [3.0 * value for value in values]:
        raise RuntimeError("wrong sums: {}".format(sums))
    if len(graphs) > 2:
        raise WrongResult("expected at most 2 graphs for {} values, got {}".format(len(values), len(graphs)))
    return {"graphs": len(graphs), "sums": sums}


def _with_attribute(compiled, module, wrap=int):
    def run(x, value):
        module.step_count = wrap(value)
        return compiled(x)

    return run


def _compiled(module, backend, **options):
    def step(x):
        return module(x)

    return torch.compile(step, backend=backend, fullgraph=True, **options)


def control():
    module = _Module()
    return _observe(lambda backend: _with_attribute(module, module))


def baseline():
    module = _Module()
    return _observe(lambda backend: _with_attribute(_compiled(module, backend), module))


def allow_unspec_int():
    if not hasattr(torch._dynamo.config, "allow_unspec_int_on_nn_module"):
        raise NotApplicable("this torch has no allow_unspec_int_on_nn_module")
    module = _Module()
    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):
        return _observe(lambda backend: _with_attribute(_compiled(module, backend), module))


def as_argument():
    """The step is an argument of forward."""
    module = _Argument()

    def call(backend):
        return torch.compile(lambda x, value: module(x, value), backend=backend, fullgraph=True)

    return _observe(call)


def tensor_attribute():
    """The attribute is a tensor without dimensions."""
    module = _Module()
    return _observe(lambda backend: _with_attribute(_compiled(module, backend), module, torch.tensor))


def dynamic_true():
    module = _Module()
    return _observe(lambda backend: _with_attribute(_compiled(module, backend, dynamic=True), module))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
