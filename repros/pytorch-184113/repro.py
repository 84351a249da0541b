"""pytorch-184113: the gradient of a compiled in-place autograd.Function is wrong where its result is not used.

The function multiplies its input in place by three, marks it dirty and returns it; the caller goes on with the input,
which is made inside the compiled function or comes in as its argument.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient 6, got 2"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Triple(torch.autograd.Function):
    """x *= 3"""

    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def _inside(w):
    y = torch.ones(2, 2) @ w
    _Triple.apply(y)
    return y.sum()


def _argument(y):
    _Triple.apply(y)
    return y.sum()


def _inside_result_used(w):
    y = torch.ones(2, 2) @ w
    y = _Triple.apply(y)
    return y.sum()


def _argument_result_used(y):
    y = _Triple.apply(y)
    return y.sum()


def _observe(function, tensor):
    w = torch.eye(2, requires_grad=True)
    loss = function(torch.ones(2, 2) @ w if tensor == "argument" else w)
    loss.backward()
    if w.grad[0, 0] != 6:
        raise WrongResult("expected the gradient 6, got {:g}".format(w.grad[0, 0].item()))
    return {"loss": loss.item(), "gradient": w.grad.tolist()}


def control(tensor="inside", backend="eager"):
    return _observe(_argument if tensor == "argument" else _inside, tensor)


def baseline(tensor="inside", backend="eager"):
    return _observe(torch.compile(_argument if tensor == "argument" else _inside, backend=backend), tensor)


def result_used(tensor="inside", backend="eager"):
    """The tensor that apply returns is the one with the history."""
    function = _argument_result_used if tensor == "argument" else _inside_result_used
    return _observe(torch.compile(function, backend=backend), tensor)


def disabled(tensor="inside", backend="eager"):
    """Dynamo does not look into apply."""
    apply = torch.compiler.disable(_Triple.apply)

    def function(given):
        y = given if tensor == "argument" else torch.ones(2, 2) @ given
        apply(y)
        return y.sum()

    return _observe(torch.compile(function, backend=backend), tensor)


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
