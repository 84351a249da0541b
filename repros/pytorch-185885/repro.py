"""pytorch-185885: a compiled torch.index_add takes a negative index and adds to the last row; eager mode refuses it.

Ones are added to rows 0 and -1 of four rows of zeros. Without compiling this is an error; compiled it has to be one.
That eager mode raises is what the control shows.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected an error for index -\d+, got row sums "


class WrongResult(Exception):
    """Something was returned where an error was due."""


def _add(x, index, source):
    return torch.index_add(x, 0, index, source)


def _checked_before(function):
    def call(x, index, source):
        if int(index.min()) < 0:
            raise IndexError("index out of range: {}".format(int(index.min())))
        return function(x, index, source)
    return call


def _moved(x, index, source):
    return torch.index_add(x, 0, torch.where(index < 0, x.shape[0], index), source)


def _asserted(x, index, source):
    torch._assert_async((index >= 0).all())
    return torch.index_add(x, 0, index, source)


def _asserted_with_message(x, index, source):
    torch._assert_async((index >= 0).all(), "index out of range")
    return torch.index_add(x, 0, index, source)


def _observe(function):
    good = function(torch.zeros(4, 3), torch.tensor([0, 3]), torch.ones(2, 3))
    if good.sum(1).tolist() != [3.0, 0.0, 0.0, 3.0]:  # a function that refuses everything has shown nothing
        raise RuntimeError("rows 0 and 3 do not sum to what they should: {}".format(good.tolist()))
    try:
        rows = function(torch.zeros(4, 3), torch.tensor([0, -1]), torch.ones(2, 3))
    except (IndexError, RuntimeError) as refusal:
        text = str(refusal)
        words = ("index out of", "out of bounds", "out of range", "nonzero value", "ssertion")
        if not any(word in text for word in words):
            raise
        return {"refused": type(refusal).__name__, "good_rows": good.sum(1).tolist()}
    raise WrongResult("expected an error for index -1, got row sums {}".format(rows.sum(1).tolist()))


def control():
    return _observe(_add)


def baseline():
    return _observe(torch.compile(_add, fullgraph=True, dynamic=True))


def check_before():
    """The index is looked at before the compiled function is called."""
    return _observe(_checked_before(torch.compile(_add, fullgraph=True, dynamic=True)))


def move_out_of_range():
    """A negative index becomes one past the end, which the compiled code does refuse."""
    return _observe(torch.compile(_moved, fullgraph=True, dynamic=True))


def assert_inside():
    """A check that is part of the graph."""
    return _observe(torch.compile(_asserted, fullgraph=True, dynamic=True))


def assert_with_message():
    """A check that is part of the graph, in the form that newer releases keep."""
    return _observe(torch.compile(_asserted_with_message, fullgraph=True, dynamic=True))


def aot_eager():
    return _observe(torch.compile(_add, fullgraph=True, dynamic=True, backend="aot_eager"))


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
