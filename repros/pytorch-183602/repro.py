"""pytorch-183602: the compiled backward of torch.diagonal_scatter gives zero gradients.

The diagonal of a 5 x 5 matrix is replaced and all is summed. Every element of the matrix that was kept has the gradient
1, those on the diagonal 0: together 20.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the gradient to sum to \S+ \(exactly\), got "


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scatter(x, diagonal):
    return torch.diagonal_scatter(x, diagonal, 0).sum()


def _squared(x, diagonal):
    """A gradient that is no expanded scalar: 2 * y."""
    return torch.diagonal_scatter(x, diagonal, 0).square().sum()


_CASES = {"sum": _scatter, "square": _squared}


def _where(x, diagonal):
    on_it = torch.eye(5, dtype=torch.bool)
    return torch.where(on_it, torch.diag_embed(diagonal), x).sum()


def _in_place(x, diagonal):
    y = x.clone()
    y.diagonal().copy_(diagonal)
    return y.sum()


def _dense_gradient(x, diagonal):
    y = torch.diagonal_scatter(x, diagonal, 0)
    return (y * torch.ones_like(y)).sum()


def _outside(compiled):
    def function(x, diagonal):
        return torch.diagonal_scatter(compiled(x), diagonal, 0).sum()
    return function


def _identity(x):
    return x * 1.0


def _observe(function):
    x = torch.full((5, 5), 0.5, requires_grad=True)
    diagonal = torch.ones(5, requires_grad=True)
    result = function(x, diagonal)
    result.backward()
    total = float(x.grad.sum())
    if total != 20.0:
        raise WrongResult("expected the gradient to sum to 20.0 (exactly), got {}".format(total))
    return {"result": float(result), "gradient": x.grad[0].tolist(), "of_diagonal": diagonal.grad.tolist()}


def control(case="sum"):
    return _observe(_CASES[case])


def baseline(case="sum"):
    return _observe(torch.compile(_CASES[case]))


def where(case="sum"):
    """The same matrix put together by torch.where."""
    return _observe(torch.compile(_where))


def in_place(case="sum"):
    """A clone whose diagonal is written."""
    return _observe(torch.compile(_in_place))


def dense_gradient(case="sum"):
    """Times a tensor of ones, so that the gradient might be no expanded scalar."""
    return _observe(torch.compile(_dense_gradient))


def aot_eager(case="sum"):
    return _observe(torch.compile(_CASES[case], backend="aot_eager"))


def outside(case="sum"):
    """diagonal_scatter itself is not compiled."""
    return _observe(_outside(torch.compile(_identity)))


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
