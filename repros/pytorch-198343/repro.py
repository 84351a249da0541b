"""pytorch-198343: compiled lerp with a weight of 0.5 or more takes the strides of `end`, and no view of it compiles.

`x` is contiguous and `end` is transposed. In eager mode `x.lerp_(end, 0.75)` leaves x contiguous, and x.view(-1) is
fine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"Cannot view a tensor with shape"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _in_place(x, end, weight):
    x.lerp_(end, weight)
    return x.view(-1)


def _observe(function, weight):
    torch.manual_seed(0)
    x, end = torch.rand(4, 16, 16), torch.rand(4, 16, 16).transpose(-1, -2)
    expected = (x + weight * (end - x)).flatten()
    result = function(x.clone(), end, weight)
    apart = (result - expected).abs().max().item()
    if result.shape != (1024,) or apart > 1e-5:
        raise WrongResult("expected 1024 elements within 1e-05, got {} that are {} apart".format(result.numel(), apart))
    return {"elements": result.numel(), "sum": round(float(result.sum()), 3)}


def _compile(function, **options):
    return torch.compile(function, fullgraph=True, **options)


def control(weight=0.75):
    return _observe(_in_place, weight)


def baseline(weight=0.75):
    return _observe(_compile(_in_place), weight)


def contiguous_end(weight=0.75):
    """Both have the strides of x."""

    def function(x, end, weight):
        x.lerp_(end.contiguous(), weight)
        return x.view(-1)

    return _observe(_compile(function), weight)


def formula(weight=0.75):
    """x comes first, and gives its strides."""

    def function(x, end, weight):
        x.add_(end - x, alpha=weight)
        return x.view(-1)

    return _observe(_compile(function), weight)


def aot_eager(weight=0.75):
    """The decomposition is Inductor's own."""
    return _observe(_compile(_in_place, backend="aot_eager"), weight)


def view_first(weight=0.75):
    """The view is taken before the update, while x still has its own strides."""

    def function(x, end, weight):
        flat = x.view(-1)
        x.lerp_(end, weight)
        return flat

    return _observe(_compile(function), weight)


def reshape(weight=0.75):
    """While tracing x is contiguous, so that the graph holds a view all the same."""

    def function(x, end, weight):
        x.lerp_(end, weight)
        return x.reshape(-1)

    return _observe(_compile(function), weight)


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
