"""pytorch-198270: a write by index, then an in-place update that reads other rows: wrong numbers when compiled.

`x[rows] = x * 2`, then `x.add_(x.flip(0))`: Inductor copies into x and reads x at mirrored rows in one loop, so that
half of the rows are read after they were written. Small whole numbers are exact in float32: the comparison needs no
tolerance.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 0 elements to differ, got \d+ of \d+"


class WrongResult(Exception):
    """The computation ended without an error and with wrong numbers."""


def _put_then_add(x):
    x.index_put_((torch.arange(x.size(0)),), x * 2.0)
    x.add_(x.flip(0))
    return x


def _only_add(x):
    x.add_(x.flip(0))
    return x


CASES = {"both": _put_then_add, "only_add": _only_add}


def _observe(function, case):
    x = torch.arange(32, dtype=torch.float32).reshape(4, 8).clone()
    expected = CASES[case](x.clone())
    result = function(x)
    apart = int((result != expected).sum())
    if apart:
        raise WrongResult("expected 0 elements to differ, got {} of {} (exact)".format(apart, result.numel()))
    return {"sum": float(result.sum())}


def _compile(function, **options):
    return torch.compile(function, fullgraph=True, **options)


def control(case="both"):
    return _observe(CASES[case], case)


def baseline(case="both"):
    return _observe(_compile(CASES[case]), case)


def out_of_place(case="both"):
    """The sum is a tensor of its own, and is copied into x by the caller."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        return x + x.flip(0)

    compiled = _compile(function)
    return _observe(lambda x: x.copy_(compiled(x)), case)


def two_graphs(case="both"):
    """A graph break between the two statements."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        torch._dynamo.graph_break()
        x.add_(x.flip(0))
        return x

    return _observe(torch.compile(function), case)


def aot_eager(case="both"):
    return _observe(_compile(CASES[case], backend="aot_eager"), case)


def clone_flipped(case="both"):
    """The copy is fused away."""

    def function(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        x.add_(x.flip(0).clone())
        return x

    return _observe(_compile(function), case)


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
