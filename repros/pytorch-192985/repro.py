"""pytorch-192985: under torch.compile, torch.func.jvp does not call the jvp that an autograd.Function defines.

The function is a sine whose jvp says 0, so that the tangent shows which rule was used: 0 is the function's own, cos(x)
that of the inlined sine.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch

SIGNATURE = r"expected tangents 0 by the function's own jvp, got \[[^]x\n]*\]"

_X = (0.1, 0.7, 2.0)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def jvp(ctx, dx):
        return torch.zeros_like(dx)


def _tangent(x):
    return torch.func.jvp(_Sine.apply, (x,), (torch.ones_like(x),))[1]


def _scaled(x):
    """The tangent inside of something that is compiled."""
    return _tangent(x) * 1.0


def _observe(function):
    got = function(torch.tensor(_X)).tolist()
    if any(value != 0 for value in got):
        raise WrongResult("expected tangents 0 by the function's own jvp, got {} (tolerance 0); "
                          "cos(x) is {}".format(got, [math.cos(x) for x in _X]))
    return {"tangents": str(got)}


def control():
    return _observe(_scaled)


def baseline(backend="aot_eager"):
    return _observe(torch.compile(_scaled, backend=backend))


def disabled(backend="aot_eager"):
    """Dynamo does not look into the call of torch.func.jvp."""
    tangent = torch.compiler.disable(_tangent)
    return _observe(torch.compile(lambda x: tangent(x) * 1.0, backend=backend))


def allowed_in_graph(backend="aot_eager"):
    """The whole jvp is one call in Dynamo's graph, and AOTAutograd traces it as eager runs it."""
    torch.compiler.allow_in_graph(_tangent)
    return _observe(torch.compile(_scaled, backend=backend, fullgraph=True))


def apply_disabled(backend="aot_eager"):
    """Only the function itself is kept from Dynamo."""
    apply = torch.compiler.disable(_Sine.apply)

    def scaled(x):
        return torch.func.jvp(apply, (x,), (torch.ones_like(x),))[1] * 1.0

    return _observe(torch.compile(scaled, backend=backend))


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
