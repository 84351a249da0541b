"""pytorch-186807: a custom operator that writes to an input of its nested_compile_region does not compile.

The operator adds a tensor of ones to a tensor of zeros in place; the region returns that plus 1: 2 everywhere, and 3
where the region is called twice. Newer releases inline a region that is called once, which is why both are tried.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Found a custom \(non-ATen\) operator whose output has alias annotations"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _define():
    """The operators; defined when an arm runs, because importing this file must change nothing."""
    @torch.library.custom_op("knowngood186807::add_into", mutates_args=("target",))
    def add_into(target: torch.Tensor, x: torch.Tensor) -> None:
        target.add_(x)

    @add_into.register_fake
    def _(target, x):
        return None

    @torch.library.custom_op("knowngood186807::added", mutates_args=())
    def added(target: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return target + x

    @added.register_fake
    def _(target, x):
        return torch.empty_like(target)


def _step(target, x):
    torch.ops.knowngood186807.add_into(target, x)
    return target + 1.0


def _on_clone(target, x):
    target = target.clone()
    torch.ops.knowngood186807.add_into(target, x)
    return target + 1.0


def _functional(target, x):
    return torch.ops.knowngood186807.added(target, x) + 1.0


def _plus_one(target):
    return target + 1.0


def _observe(build, expected=2.0):
    _define()
    result = build()(torch.zeros(3), torch.ones(3))
    if result.tolist() != [expected] * 3:
        raise WrongResult("expected {} everywhere (exactly), got {}".format(expected, result.tolist()))
    return {"result": result.tolist()}


def _in_region(step):
    def build():
        region = torch.compiler.nested_compile_region(step)

        def function(target, x):
            return region(target, x)
        return torch.compile(function, backend="aot_eager", fullgraph=True)
    return build


def _op_before_region():
    region = torch.compiler.nested_compile_region(_plus_one)

    def function(target, x):
        torch.ops.knowngood186807.add_into(target, x)
        return region(target)
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _no_region():
    return torch.compile(_step, backend="aot_eager", fullgraph=True)


def _twice():
    region = torch.compiler.nested_compile_region(_step)

    def function(target, x):
        region(target, x)
        return region(target, x)
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _plainly(target, x):
    """A region that nobody compiles is a plain function."""
    torch.compiler.nested_compile_region(_step)(target, x)
    return torch.compiler.nested_compile_region(_step)(target, x)


def control(calls=1):
    if calls == 1:
        return _observe(lambda: torch.compiler.nested_compile_region(_step))
    return _observe(lambda: _plainly, expected=3.0)


def baseline(calls=1):
    if calls == 1:
        return _observe(_in_region(_step))
    return _observe(_twice, expected=3.0)


def outside_region(calls=1):
    """The writing operator stands before the region."""
    return _observe(_op_before_region)


def functional_op(calls=1):
    """The operator returns what it computes."""
    return _observe(_in_region(_functional))


def without_region(calls=1):
    return _observe(_no_region)


def write_to_clone(calls=1):
    """The region writes to none of its inputs, but the operator still writes."""
    return _observe(_in_region(_on_clone))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
