"""pytorch-138422: vmap over torch.autograd.grad fails on the output of a compiled function.

The Jacobian of t ** 2 at (1, ..., 5) is computed row by row in one batch; it must be the diagonal matrix of 2 t.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = (r"call a compiled backward function within vmap/grad/vjp"
             r"|Cannot access (data pointer|storage) of (Tensor|BatchedTensorImpl)")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _square(t):
    return t ** 2


def _x():
    return torch.arange(1.0, 6.0, requires_grad=True)


def _checked(jacobian, x):
    difference = float((jacobian - torch.diag(2 * x.detach())).abs().max())
    if difference > 1e-6:
        raise WrongResult("expected the diagonal matrix of 2 x, got another, by {} (tolerance 1e-6)".format(difference))
    return {"diagonal": torch.diagonal(jacobian).tolist(), "difference": difference}


def _batched(function):
    x = _x()
    y = function(x)
    jacobian = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(5))
    return _checked(jacobian, x)


def control():
    return _batched(_square)


def baseline():
    return _batched(torch.compile(_square))


def row_by_row():
    x = _x()
    y = torch.compile(_square)(x)
    rows = [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in torch.eye(5)]
    return _checked(torch.stack(rows), x)


def compiled_jacrev():
    x = _x()
    return _checked(torch.compile(torch.func.jacrev(_square))(x.detach()), x)


def is_grads_batched():
    x = _x()
    y = torch.compile(_square)(x)
    return _checked(torch.autograd.grad(y, x, torch.eye(5), is_grads_batched=True)[0], x)


def batched_aot_eager():
    """What is_grads_batched batches, without Inductor's own graph around it."""
    x = _x()
    y = torch.compile(_square, backend="aot_eager")(x)
    return _checked(torch.autograd.grad(y, x, torch.eye(5), is_grads_batched=True)[0], x)


def aot_eager():
    return _batched(torch.compile(_square, backend="aot_eager"))


def eager_backend():
    """Dynamo alone: autograd records plain operators."""
    return _batched(torch.compile(_square, backend="eager"))


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
