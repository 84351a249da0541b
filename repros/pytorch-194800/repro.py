"""pytorch-194800: _adaptive_avg_pool3d_backward returns memory that is not its own where the gradient has fewer channels than the input.

An input of two channels and a gradient of one, as in the report. Shapes that fit must give the gradient; these must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected a refusal of the gradient with too few channels"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _backward(gradient, x):
    return torch.ops.aten._adaptive_avg_pool3d_backward(gradient, x)


def _good():
    got = _backward(torch.tensor([6.0, 4.0]).reshape(1, 2, 1, 1, 1), torch.ones(1, 2, 1, 1, 2)).flatten().tolist()
    if got != [3.0, 3.0, 2.0, 2.0]:
        raise WrongResult("expected the gradients 3, 3, 2 and 2, got {}".format(got))
    return {"gradients": got}


def _checked(gradient, x):
    if gradient.shape[:-3] != x.shape[:-3]:
        raise ValueError("The gradient must have the size of the input")
    return _backward(gradient, x)


def _autograd(gradient, x):
    y = torch.nn.functional.adaptive_avg_pool3d(x.requires_grad_(), gradient.shape[-3:])
    return torch.autograd.grad(y, x, gradient)[0]


def _observe(function):
    observed = dict(_good(), by_this=function(torch.ones(1, 2, 1, 1, 2), torch.ones(1, 2, 1, 1, 4)).flatten().tolist())
    if observed["by_this"] != [0.5] * 8:
        raise WrongResult("expected gradients of 0.5, got {}".format(observed["by_this"]))
    try:
        got = function(torch.ones(1, 1, 1, 1, 2), torch.ones(1, 2, 1, 1, 4))
    except (RuntimeError, ValueError) as refusal:
        if "size" not in str(refusal) and "shape" not in str(refusal):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal of the gradient with too few channels, got {}".format(got.flatten().tolist()))


def control():
    return dict(_good(), by_this=_backward(torch.ones(1, 2, 1, 1, 2), torch.ones(1, 2, 1, 1, 4)).flatten().tolist())


def baseline():
    return _observe(_backward)


def check_first():
    return _observe(_checked)


def by_autograd():
    return _observe(_autograd)


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
