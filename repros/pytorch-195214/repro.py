"""pytorch-195214: a scaled bfloat16 value is compared unrounded with its rounded maximum.

Rows are divided by a constant, and how many elements equal their row's maximum is counted (or the maximum is
differentiated, which divides by that count), in eager mode and compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch

SIGNATURE = (
    r"expected (the tie counts of eager mode, got \d+ of \d+ rows with other counts|finite gradients, got \d+ of \d+)"
)

SCALE = math.sqrt(80)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scaled(x):
    return x / SCALE


def _unscaled(x):
    return x


def _in_float32(x):
    return x.float() / SCALE


def _cast_back(x):
    return (x / SCALE).to(torch.bfloat16)


def _ties(scale, x):
    s = scale(x)
    return (s == s.amax(dim=-1, keepdim=True)).sum(dim=-1)


def _maximum(scale, x):
    return scale(x).amax(dim=-1)


def _compare(how, rows, columns, gradient, scale=_scaled):
    torch.manual_seed(0)
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16, requires_grad=gradient)
    if gradient:
        how(_maximum)(scale, x).sum().backward()
        torch.cuda.synchronize()
        bad = int((~torch.isfinite(x.grad)).sum())
        if bad:
            raise WrongResult("expected finite gradients, got {} of {} that are not".format(bad, x.numel()))
        return {"gradients that are not zero": int((x.grad != 0).sum())}
    expected = _ties(scale, x)
    got = how(_ties)(scale, x)
    torch.cuda.synchronize()
    other = int((got != expected).sum())
    if other:
        raise WrongResult("expected the tie counts of eager mode, got {} of {} rows with other counts, {} of them with none, "
                          "tolerance 0".format(other, rows, int((got == 0).sum())))
    return {"rows": rows, "ties": int(got.sum())}


def control(rows=2, columns=1048576, gradient=False):
    """Not compiled."""
    return _compare(lambda function: function, rows, columns, gradient)


def baseline(rows=2, columns=1048576, gradient=False):
    return _compare(torch.compile, rows, columns, gradient)


def emulate_casts(rows=2, columns=1048576, gradient=False):
    options = {"emulate_precision_casts": True}
    return _compare(lambda function: torch.compile(function, options=options), rows, columns, gradient)


def compare_unscaled(rows=2, columns=1048576, gradient=False):
    """Ties and maxima of what was never scaled."""
    return _compare(torch.compile, rows, columns, gradient, _unscaled)


def float32(rows=2, columns=1048576, gradient=False):
    """Scaled in float32, where there is nothing to round."""
    return _compare(torch.compile, rows, columns, gradient, _in_float32)


def cast_back(rows=2, columns=1048576, gradient=False):
    """The graph holds no such cast."""
    return _compare(torch.compile, rows, columns, gradient, _cast_back)


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
