"""pytorch-187319: a custom operator that now says what it mutates is given the code compiled for its older self.

The operator is compiled as one that mutates nothing, then defined again under the same name, now adding to its argument
and saying so. The second compilation has to see the addition; a cached graph of the first does not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \S+ from the operator that mutates, got \S+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _define(name, mutating):
    """Register the operator, in the place of an earlier one of that name."""
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        if mutating:
            x.add_(10)
        return y

    operator = torch.library.custom_op("kg187319::" + name, step, mutates_args=("x",) if mutating else ())
    operator.register_fake(torch.empty_like)
    return getattr(torch.ops.kg187319, name)


def _run(how, name, mutating):
    """a is 1 and x is 2: y is 3, and x is 2 or 12 when it is added."""
    operator = _define(name, mutating)

    def function(a):
        x = a * 2
        y = operator(x)
        return y + x

    return float(how(function)(torch.ones(4))[0])


def _observe(how, second_name="step"):
    first = _run(how, "step", False)
    if first != 5.0:
        raise RuntimeError("the first operator alone gives {}".format(first))
    torch._dynamo.reset()
    second = _run(how, second_name, True)
    if second != 15.0:
        raise WrongResult("expected 15.0 from the operator that mutates, got {} (exact, tolerance 0)".format(second))
    return {"first": first, "second": second}


def _compiled(function):
    return torch.compile(function, fullgraph=True)


def control():
    """Not compiled, and defined anew in the same way."""
    return _observe(lambda function: function)


def baseline():
    return _observe(_compiled)


def new_name():
    """The name is a part of the cache's key."""
    return _observe(_compiled, second_name="step_v2")


def caches_off():
    """ENV turns off every compile cache of the process."""
    return _observe(_compiled)


def autograd_cache_off():
    """ENV turns off the cache of AOTAutograd alone: behind it, Inductor's key does hold what is mutated."""
    return _observe(_compiled)


def fx_cache_off():
    """ENV turns off Inductor's cache of FX graphs."""
    return _observe(_compiled)


ENV = {
    "caches_off": {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
    "autograd_cache_off": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
    "fx_cache_off": {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0"},
}


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
