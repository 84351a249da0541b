"""pytorch-117265: a full_backward_pre_hook registered after the first compiled call is ignored.

An identity layer is compiled and called once; then a hook that doubles the gradient is registered on it. The gradient of
the next call must be 2 everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the gradient \[[^]x\n]*\], got \[[^]x\n]*\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _double(module, grad_output):
    return tuple(grad * 2 for grad in grad_output)


def _layer():
    layer = torch.nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(3))
    return layer


def _gradient(function):
    x = torch.ones(3, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def _observe(function, before, hook):
    """The gradient before and after `hook` is called; `before` is what it must be at first."""
    first = _gradient(function)
    if first != before:
        raise RuntimeError("the gradient is {} before anything is changed".format(first))
    hook()
    second = _gradient(function)
    if second != [2.0, 2.0, 2.0]:
        raise WrongResult("expected the gradient [2.0, 2.0, 2.0], got {} (tolerance 0)".format(second))
    return {"before": first, "after": second}


def _late(compiler):
    layer = _layer()
    return _observe(compiler(layer), [1.0] * 3, lambda: layer.register_full_backward_pre_hook(_double))


def _compiled(layer):
    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x):
        return layer(x)

    return function


def _compiled_with_breaks(layer):
    """Dynamo may leave the layer to Python, and compile the rest."""
    @torch.compile(backend="aot_eager")
    def function(x):
        return layer(x) * 1.0

    return function


def control():
    return _late(lambda layer: layer)


def baseline():
    return _late(_compiled)


def hook_first():
    """The hook is there before the first compiled call."""
    layer = _layer()
    layer.register_full_backward_pre_hook(_double)
    return _observe(_compiled_with_breaks(layer), [2.0] * 3, lambda: None)


def reset_after():
    """Everything compiled is thrown away after the hook is registered."""
    layer = _layer()

    def hook():
        layer.register_full_backward_pre_hook(_double)
        torch._dynamo.reset()

    return _observe(_compiled_with_breaks(layer), [1.0] * 3, hook)


def hook_guards():
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    return _late(_compiled_with_breaks)


def outside():
    """The hook is registered on a module that is called outside of what is compiled."""
    layer = _layer()

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.function = _compiled(layer)

        def forward(self, x):
            return self.function(x)

    outer = Outer()
    return _observe(outer, [1.0] * 3, lambda: outer.register_full_backward_pre_hook(_double))


# Standalone, second half; the first stands above the imports. Both are the same in every repro: see repros/README.md.
def _run_here(arm, params, report):
    """The child: run one arm and leave in the file `report` what it observed or raised."""
    import ast, faulthandler, json, pathlib, traceback

    def value_of(text):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text

    if "HANG_S" in globals():  # a hang ends as the stacks of every thread, where SIGNATURE is then looked for
        faulthandler.dump_traceback_later(globals()["HANG_S"], exit=True)
    try:
        told = {"observed": globals()[arm](**{name: value_of(text) for name, _, text in params})}
    except Exception as failure:
        traceback.print_exc()
        told = {"raised": type(failure).__name__}
    pathlib.Path(report).write_text(json.dumps(told, default=str))
    return 0


def _standalone():
    """The parent: run one arm in a child, so that a crash is survived. 0: good, 1: the issue, 2: anything else."""
    import argparse, inspect, json, pathlib, re, shutil, signal, subprocess, tempfile

    arms = [name for name, value in globals().items()
            if inspect.isfunction(value) and value.__module__ == __name__ and not name.startswith("_")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", default="baseline", choices=arms)
    parser.add_argument("--list", action="store_true", help="name the arms and stop")
    parser.add_argument("--report", help=argparse.SUPPRESS)
    parser.add_argument("params", nargs="*", metavar="name=value", type=lambda param: param.partition("="))
    asked = parser.parse_intermixed_args()
    if asked.list:
        print(*arms, sep="\n")
        return 0
    if asked.report:
        return _run_here(asked.arm, asked.params, asked.report)
    scratch = pathlib.Path(tempfile.mkdtemp())  # the compilers' caches are fresh: a filled one can hide the issue
    report, log = scratch / "report", scratch / "log"
    env = {"TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"), "TRITON_CACHE_DIR": str(scratch / "triton")}
    env.update(globals().get("ENV", {}).get(asked.arm, {}))  # set before the child's interpreter starts
    again = [sys.executable, "-u", "-X", "faulthandler", os.path.abspath(__file__), *sys.argv[1:], "--report", report]
    try:
        with log.open("wb") as output:
            status = subprocess.run(again, env={**os.environ, **env}, stdout=output, stderr=output).returncode
        text = log.read_text(errors="replace")
        told = json.loads(report.read_text()) if report.exists() else {}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(text, end="")
    observed, raised = told.get("observed"), told.get("raised")
    if status == 0 and observed and isinstance(observed, dict):
        print(*("observed %s = %s" % item for item in observed.items()), sep="\n")
        print("GOOD: %s returned what it observed." % asked.arm)
        return 0
    ended = "left with status %d" % status if status >= 0 else "was killed by " + signal.Signals(-status).name
    if status == 0 and told:
        ended = "raised " + raised if raised else "returned nothing it observed"
    found = re.search(SIGNATURE, text) if SIGNATURE else raised == "WrongResult"
    if found and (raised or status != 0) and raised != "NotApplicable":
        print("THE ISSUE: %s %s%s." % (asked.arm, ended, ", and its text has the signature" if SIGNATURE else ""))
        return 1
    print("CANNOT SAY: %s %s, which is neither good nor the issue." % (asked.arm, ended))
    return 2


if __name__ == "__main__":
    sys.exit(_standalone())
