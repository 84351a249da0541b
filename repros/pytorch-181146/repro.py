"""pytorch-181146: an autograd.Function that is given one tensor twice loses a part of its gradient.

One leaf is passed to both inputs of the function, whose backward returns another gradient for each. Both must be added.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient (5, got 3|2, got None)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Both(torch.autograd.Function):
    """2 a + 3 b, with a gradient for each."""

    @staticmethod
    def forward(ctx, a, b):
        return a * 2 + b * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, gradient * 3


class _First(torch.autograd.Function):
    """2 a + 3 b, with no gradient for b."""

    @staticmethod
    def forward(ctx, a, b):
        return a * 2 + b * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


_FUNCTIONS = {"both": (_Both, 5), "first": (_First, 2)}


def _suspect(x, function):
    return function.apply(x, x).sum() * 1.0


def _copied(x, function):
    return function.apply(x, x.view_as(x)).sum() * 1.0


def _observe(compute, slots):
    function, expected = _FUNCTIONS[slots]
    x = torch.ones(2, requires_grad=True)
    loss = compute(x, function)
    loss.backward()
    got = None if x.grad is None else int(x.grad[0])
    if got != expected:
        raise WrongResult("expected the gradient {}, got {}".format(expected, got))
    return {"loss": loss.item(), "gradient": x.grad.tolist()}


def control(slots="both"):
    return _observe(_suspect, slots)


def baseline(slots="both"):
    return _observe(torch.compile(_suspect, backend="eager"), slots)


def view(slots="both"):
    """A view is another tensor, and autograd adds what comes back through it."""
    return _observe(torch.compile(_copied, backend="eager"), slots)


def disabled(slots="both"):
    """Dynamo does not look into apply."""
    apply = torch.compiler.disable(_FUNCTIONS[slots][0].apply)
    return _observe(torch.compile(lambda x, function: apply(x, x).sum() * 1.0, backend="eager"), slots)


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
