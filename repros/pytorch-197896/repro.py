"""pytorch-197896: what a method appends to a captured list is lost when its object is made in the compiled function.

A local class writes down, in a list or dict of the enclosing function, that it was called. The function is called
twice; the record must hold both calls.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \d+ calls on record, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _list_kept():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    def function(x):
        Recorder().note()
        return x + 1

    return function, lambda: len(record)


def _dict_kept():
    record = {"calls": 0}

    class Recorder:
        def note(self):
            record["calls"] += 1

    def function(x):
        Recorder().note()
        return x + 1

    return function, lambda: record["calls"]


def _made_outside():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    recorder = Recorder()

    def function(x):
        recorder.note()
        return x + 1

    return function, lambda: len(record)


def _plain_function():
    record = []

    def note():
        record.append("call")

    def function(x):
        note()
        return x + 1

    return function, lambda: len(record)


def _record_handed_over():
    record = []

    class Recorder:
        def __init__(self, record):
            self.record = record

        def note(self):
            self.record.append("call")

    def function(x):
        Recorder(record).note()
        return x + 1

    return function, lambda: len(record)


def _helper_in_python():
    record = []

    class Recorder:
        def note(self):
            record.append("call")

    @torch.compiler.disable
    def note():
        Recorder().note()

    def function(x):
        note()
        return x + 1

    return function, lambda: len(record)


_KINDS = {"list": _list_kept, "dict": _dict_kept}


def _observe(pair, how=lambda function: function):
    function, calls = pair()
    function = how(function)
    for _ in range(2):
        result = function(torch.ones(2))
        if result.tolist() != [2.0, 2.0]:
            raise WrongResult("expected [2.0, 2.0], got {}".format(result.tolist()))
    if calls() != 2:
        raise WrongResult("expected 2 calls on record, got {}".format(calls()))
    return {"calls": calls()}


def _compiled(function):
    return torch.compile(function, backend="eager")


def control(kind="list"):
    return _observe(_KINDS[kind])


def baseline(kind="list"):
    return _observe(_KINDS[kind], _compiled)


def made_outside(kind="list"):
    """The object is made before the compiled function is called."""
    return _observe(_made_outside, _compiled)


def plain_function(kind="list"):
    """A nested function in place of the method."""
    return _observe(_plain_function, _compiled)


def record_handed_over(kind="list"):
    """The object holds the list itself, and captures nothing."""
    return _observe(_record_handed_over, _compiled)


def helper_in_python(kind="list"):
    """Dynamo leaves to Python what makes the object and calls the method."""
    return _observe(_helper_in_python, _compiled)


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
