"""pytorch-184528: the gradient of a parameter that a scan's body closes over lacks what comes through the carry.

A scalar recurrence c = a c + x, with y = c c: the gradient of the sum of y by a, against the same recurrence as a loop.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
from torch._higher_order_ops.scan import scan

SIGNATURE = r"expected the gradient 3\d\.\d+, got (28|30)\.\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _step(a):
    def step(carry, x):
        following = a * carry + x
        return following, following * following

    return step


def _loop(step, carry, xs):
    ys = []
    for x in xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, torch.stack(ys)


def _suspect(a, carry, xs):
    return scan(_step(a), carry, xs, dim=0)


def _compute(function, final, carry_grad):
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    carry = torch.tensor(0.25, dtype=torch.float64, requires_grad=carry_grad)
    last, ys = function(a, carry, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    loss = ys.sum() + last if final else ys.sum()
    loss.backward()
    return loss.item(), a.grad.item()


def _observe(function, final, carry_grad=False):
    _, expected = _compute(lambda a, carry, xs: _loop(_step(a), carry, xs), final, False)
    loss, got = _compute(function, final, carry_grad)
    if abs(got - expected) > 1e-9:
        raise WrongResult("expected the gradient {:.4f}, got {:.4f} (tolerance 1e-9)".format(expected, got))
    return {"loss": loss, "gradient": got}


def control(final=0):
    return _observe(lambda a, carry, xs: _loop(_step(a), carry, xs), final)


def baseline(final=0):
    return _observe(torch.compile(_suspect, backend="eager"), final)


def carry_requires_grad(final=0):
    """The carry's part of the backward is kept where the first carry asks for a gradient."""
    return _observe(torch.compile(_suspect, backend="eager"), final, carry_grad=True)


def loop(final=0):
    """Python's loop, unrolled by Dynamo."""
    return _observe(torch.compile(lambda a, carry, xs: _loop(_step(a), carry, xs), backend="eager"), final)


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
