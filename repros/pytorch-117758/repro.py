"""pytorch-117758: forward hooks registered after the first compiled call are ignored.

A small model is compiled and called once; then a forward hook that doubles the output is registered on its first layer.
The hook must run in the next call, and the output must be doubled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \d+ calls? of the hook, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _model():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(0.25)
        model[0].bias.zero_()
    return model


def _register(model, calls):
    @torch._dynamo.disable
    def hook(module, args, output):
        calls.append(1)
        return output * 2

    return model[0].register_forward_hook(hook)


def _check(model, calls):
    """One call, after which the hook must have run once more."""
    del calls[:]
    output = model(torch.ones(1, 4)).flatten().tolist()
    if len(calls) != 1:
        raise WrongResult("expected 1 call of the hook, got {}".format(len(calls)))
    if output != [2.0] * 4:
        raise WrongResult("expected an output of 2 everywhere, got {} (tolerance 0)".format(output))
    return {"calls": len(calls), "output": output}


def _late(compiler, then=lambda model: None):
    """Call, register a hook, do `then`, call what that gives."""
    model, calls = _model(), []
    compiled = compiler(model)
    compiled(torch.ones(1, 4))
    _register(model, calls)
    return _check(then(model) or compiled, calls)


def _compile(model):
    return torch.compile(model, backend="eager")


def control():
    return _late(lambda model: model)


def baseline():
    return _late(_compile)


def hook_guards():
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    return _late(_compile)


def hook_first():
    model, calls = _model(), []
    _register(model, calls)
    compiled = _compile(lambda x: model(x * 1.0))  # the hook is not compiled, and breaks the graph after the product
    compiled(torch.ones(1, 4))
    return _check(compiled, calls)


def reset_after():
    return _late(_compile, lambda model: torch._dynamo.reset())


def guard_nn_modules():
    torch._dynamo.config.guard_nn_modules = True
    return _late(_compile)


def wrap_again():
    """A second torch.compile of the same model, after the hook is there."""
    return _late(_compile, _compile)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
