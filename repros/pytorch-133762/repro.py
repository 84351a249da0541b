"""pytorch-133762: `+` of NamedTuple subclasses with __new__ and __add__ concatenates them once compiled.

A function builds a pair (x, 0) and adds it to itself; the class says that this adds the fields. The sum must be the pair
(6, 0).
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
from typing import NamedTuple

import torch

SIGNATURE = (r"call_function UserDefinedClassVariable\(<class '[^'\n]*'>\) \[(?:Tensor|Lazy)Variable(?:Tracker)?\(\)\]"
             r"|No module named 'namedtuple_|expected the pair \(\S+, \S+\), got")


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Fields(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor


class _Pair(_Fields):
    def __new__(cls, a, b=None):
        return super().__new__(cls, a, torch.zeros_like(a) if b is None else b)

    def __add__(self, other):
        return _Pair(self.a + other.a, self.b + other.b)


class _WithoutNew(_Fields):
    def __add__(self, other):
        return _WithoutNew(self.a + other.a, self.b + other.b)


class _Object:
    def __init__(self, a, b=None):
        self.a = a
        self.b = torch.zeros_like(a) if b is None else b

    def __add__(self, other):
        return _Object(self.a + other.a, self.b + other.b)


def _sum(x):
    pair = _Pair(x)
    return pair + pair


def _sum_of_objects(x):
    pair = _Object(x)
    return pair + pair


def _sum_without_new(x):
    pair = _WithoutNew(x, torch.zeros_like(x))
    return pair + pair


def _twice(pair):
    return pair + pair


def _observe(function):
    result = function(torch.tensor(3.0))
    told = tuple(float(x) for x in result) if isinstance(result, tuple) else (float(result.a), float(result.b))
    if told != (6.0, 0.0):
        raise WrongResult("expected the pair (6.0, 0.0), got the {} {} (tolerance 0)".format(type(result).__name__, told))
    return {"type": type(result).__name__, "fields": list(told)}


def _compile(function, fullgraph):
    return torch.compile(function, backend="eager", fullgraph=fullgraph)


def control(fullgraph=True):
    return _observe(_sum)


def baseline(fullgraph=True):
    return _observe(_compile(_sum, fullgraph))


def plain_object(fullgraph=True):
    return _observe(_compile(_sum_of_objects, fullgraph))


def without_new(fullgraph=True):
    """No __new__: the default is filled in where the pair is made."""
    return _observe(_compile(_sum_without_new, fullgraph))


def built_outside(fullgraph=True):
    """The pair is made before, and handed to the compiled function."""
    twice = _compile(_twice, fullgraph)
    return _observe(lambda x: twice(_Pair(x)))


def disabled_sum(fullgraph=True):
    """Python makes the pairs; what comes after is compiled."""
    make = torch._dynamo.disable(_sum)

    def function(x):
        y = x * 1.0
        return make(y)

    return _observe(_compile(function, False))


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
