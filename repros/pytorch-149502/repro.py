"""pytorch-149502: a global forward pre-hook is called once more for a compiled model, around the whole of it.

The hook adds 1 to the input of every module and counts its calls. Model and input are small; the output and the number
of calls must be those of the model that is not compiled. Only the second call counts: the first one compiles, and
tracing calls hooks too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

SIGNATURE = r"expected the output [^fkx\n]* after \d+ calls of the hook, got [^fx\n]* after \d+ \(tolerance 1e-5\)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))


def _run(model, skip=()):
    seen = []

    def add_one(module, inputs):
        if isinstance(module, skip):
            return None
        seen.append(1)
        return (inputs[0] + 1.0,)

    handle = register_module_forward_pre_hook(add_one)
    try:
        with torch.no_grad():
            model(torch.arange(10.0).unsqueeze(0))
            seen.clear()
            return model(torch.arange(10.0).unsqueeze(0)), len(seen)
    finally:
        handle.remove()


def _judge(result, calls):
    expected, wanted = _run(_model())
    if not torch.allclose(expected, result, atol=1e-5) or calls != wanted:
        raise WrongResult("expected the output {} after {} calls of the hook, got {} after {} (tolerance 1e-5)".format(
            expected.tolist(), wanted, result.tolist(), calls))
    return {"output": result.tolist(), "calls": calls}


def control():
    return _judge(*_run(_model()))


def baseline():
    return _judge(*_run(torch.compile(_model(), backend="eager")))


def compile_in_place():
    model = _model()
    model.compile(backend="eager")
    return _judge(*_run(model))


def skip_wrapper():
    """The hook passes over the module that torch.compile returns."""
    from torch._dynamo.eval_frame import OptimizedModule

    return _judge(*_run(torch.compile(_model(), backend="eager"), skip=(OptimizedModule,)))


def module_hooks():
    """The same hook, registered on each module of the model."""
    model, seen = _model(), []

    def add_one(module, inputs):
        seen.append(1)
        return (inputs[0] + 1.0,)

    for module in list(model.modules()):
        module.register_forward_pre_hook(add_one)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(torch.arange(10.0).unsqueeze(0))
        seen.clear()
        return _judge(compiled(torch.arange(10.0).unsqueeze(0)), len(seen))


def compile_forward():
    """Only `forward` is compiled, and the hook of the model itself runs outside."""
    model = _model()
    model.forward = torch.compile(model.forward, backend="eager")
    return _judge(*_run(model))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
