"""pytorch-171320: the product of two Python floats inside a compiled function makes every new value a new graph.

A tensor is multiplied in place by the product of two floats, one of which grows from call to call. Six values must not
need six graphs. The script counts the graphs that were compiled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch._dynamo
from torch._dynamo.utils import counters

SIGNATURE = r"expected at most 3 graphs for 6 values, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with more work than it should."""


def _scalars_first(p, a, b):
    p.mul_(p * (a * b))


def _tensor_first(p, a, b):
    p.mul_(p * a * b)


def _product(p, product):
    p.mul_(p * product)


def _observe(step):
    before = counters["stats"]["unique_graphs"]
    results = []
    for number in range(1, 7):
        p = torch.full((3,), 2.0)
        step(p, 0.25 * number, 1.5)
        results.append(float(p[0]))
    graphs = counters["stats"]["unique_graphs"] - before
    expected = [1.5 * number for number in range(1, 7)]
    if results != expected:
        raise RuntimeError("expected {}, got {}".format(expected, results))
    if graphs > 3:
        raise WrongResult("expected at most 3 graphs for 6 values, got {}".format(graphs))
    return {"graphs": graphs, "results": results}


def control(backend="inductor"):
    return _observe(_scalars_first)


def baseline(backend="inductor"):
    return _observe(torch.compile(_scalars_first, backend=backend, fullgraph=True))


def tensor_first(backend="inductor"):
    """Each product is one of a tensor and a float."""
    return _observe(torch.compile(_tensor_first, backend=backend, fullgraph=True))


def product_outside(backend="inductor"):
    """The floats are multiplied before the compiled function."""
    compiled = torch.compile(_product, backend=backend, fullgraph=True)
    return _observe(lambda p, a, b: compiled(p, a * b))


def tensor_scalar(backend="inductor"):
    """The float that changes is a tensor without dimensions."""
    compiled = torch.compile(_scalars_first, backend=backend, fullgraph=True)
    return _observe(lambda p, a, b: compiled(p, torch.tensor(a), b))


def dynamic_true(backend="inductor"):
    return _observe(torch.compile(_scalars_first, backend=backend, fullgraph=True, dynamic=True))


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
