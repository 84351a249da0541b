"""pytorch-198056: NumPy code compiled with torch.compile does not follow NumPy's result types.

A NumPy function of a small integer array is computed by NumPy and compiled; dtype, shape and values must agree.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import numpy as np
import torch

SIGNATURE = r"expected (int64|int8|bool|float64) [^x\n]* from NumPy, got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_INT8 = np.array([100, 100, 100], dtype=np.int8)
_CASES = {
    "cumsum": (lambda a: np.cumsum(a), _INT8),
    "square": (lambda a: np.square(a), np.array([2, 3], dtype=np.int8)),
    "any": (lambda a: np.any(a), np.array([0, 3], dtype=np.uint8)),
    "median": (lambda a: np.median(a), np.array([1.0, 2.0, 4.0])),
}


def _told(value):
    value = np.asarray(value)
    return "{} {}".format(value.dtype, value.tolist())


def _compare(expected, got):
    if _told(got) != _told(expected):
        raise WrongResult("expected {} from NumPy, got {}".format(_told(expected), _told(got)))
    return {"result": _told(got), "sum": torch.as_tensor(np.asarray(got)).double().sum().item()}


def _observe(case, how):
    function, values = _CASES[case]
    return _compare(function(values), how(function)(values))


def _eager_backend(function):
    return torch.compile(function, backend="eager")


def control(case="cumsum"):
    return _observe(case, lambda function: function)


def baseline(case="cumsum"):
    return _observe(case, _eager_backend)


def say_dtype(case="cumsum"):
    """The result type is written out."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a, dtype=np.int64))(_INT8))


def widen_first(case="cumsum"):
    """The array is int64 before the running sum starts."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a.astype(np.int64)))(_INT8))


def torch_cumsum(case="cumsum"):
    """torch's own function accumulates integers in int64."""
    compiled = _eager_backend(lambda a: torch.cumsum(a, dim=0))
    return _compare(np.cumsum(_INT8), compiled(torch.from_numpy(_INT8)).numpy())


def no_numpy_tracing(case="cumsum"):
    """Dynamo leaves NumPy to NumPy, and breaks the graph there."""
    import torch._dynamo

    torch._dynamo.config.trace_numpy = False
    double = _eager_backend(lambda x, a: (x * 2, np.cumsum(a)))
    twice, sums = double(torch.ones(2), _INT8)
    if twice.tolist() != [2.0, 2.0]:
        raise WrongResult("expected [2.0, 2.0], got {}".format(twice.tolist()))
    return _compare(np.cumsum(_INT8), sums)


def astype_after(case="cumsum"):
    """The result is widened, after the running sum has wrapped."""
    return _compare(np.cumsum(_INT8), _eager_backend(lambda a: np.cumsum(a).astype(np.int64))(_INT8))


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
