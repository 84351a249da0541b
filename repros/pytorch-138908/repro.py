"""pytorch-138908: `y[i] += y[i]` with one index twice is applied twice by Inductor on the CPU.

The index (0, 0) names the first row of y two times. Eager mode reads the row, doubles it and writes it twice: it comes out
doubled, once. The script compares every row, with a tolerance of 1e-6.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the row times \S+, got it times \S+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _doubled(i, y):
    i = i + 10
    y[i] += y[i]


def _cloned(i, y):
    i = i + 10
    y[i] += y[i].clone()


def _by_name(i, y):
    i = i + 10
    rows = y[i]
    y[i] = rows + rows


def _new_tensor(i, y):
    i = i + 10
    rows = y[i]
    return y.index_put((i,), rows + rows)


def _sum_outside(compiler):
    """Only the values are compiled; Python writes them."""
    compute = compiler(lambda i, y: y[i + 10] + y[i + 10])

    def function(i, y):
        y[i + 10] = compute(i, y)

    return function


def _observe(function, duplicates):
    torch.manual_seed(0)
    i = torch.tensor([[-10, -10]] if duplicates else [[-10, -9]])
    y = torch.rand(4, 32) + 1.0
    before = y.clone()
    with torch.no_grad():
        result = function(i, y)
    y = y if result is None else result
    factors = [2.0, 1.0, 1.0, 1.0] if duplicates else [2.0, 2.0, 1.0, 1.0]
    for row, factor in enumerate(factors):
        if not torch.allclose(y[row], before[row] * factor, rtol=1e-6, atol=0):
            got = float((y[row] / before[row]).mean())
            raise WrongResult("row {}: expected the row times {}, got it times {:.1f} (tolerance 1e-6)".format(
                row, factor, got))
    return {"factors": [round(float((y[row] / before[row]).mean()), 6) for row in range(4)]}


def _compile(function):
    return torch.compile(function, dynamic=True)


def control(duplicates=True):
    return _observe(_doubled, duplicates)


def baseline(duplicates=True):
    return _observe(_compile(_doubled), duplicates)


def values_outside(duplicates=True):
    return _observe(_sum_outside(_compile), duplicates)


def new_tensor(duplicates=True):
    """index_put, which does not write into y, of a copy."""
    return _observe(_compile(_new_tensor), duplicates)


def aot_eager(duplicates=True):
    return _observe(torch.compile(_doubled, dynamic=True, backend="aot_eager"), duplicates)


def clone_values(duplicates=True):
    return _observe(_compile(_cloned), duplicates)


def two_statements(duplicates=True):
    return _observe(_compile(_by_name), duplicates)


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
