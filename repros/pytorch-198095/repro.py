"""pytorch-198095: a view of an input is rebuilt from the wrong tensor where two inputs share memory.

`tail` is `t[1:]`; the function updates `t` in place and returns `tail[0]`, which is row 1 of `t`. Compiled, row 0
comes back.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected row starting at \S+, got one starting at \S+"


class WrongResult(Exception):
    """The function returned without an error, and with another row."""


def _first_of_tail(t, tail):
    t.add_(100)
    return tail[0]


def _observe(function, start=1):
    """Call function(t, t[start:start + 3]) on rows of 0..5, 6..11, 12..17, 18..23; all of them get 100 more."""
    t = torch.arange(24, dtype=torch.float64).reshape(4, 6).clone()  # the clone is no view, as in the report
    got = function(t, t[start : start + 3])
    expected = torch.arange(24, dtype=torch.float64).reshape(4, 6)[start] + 100
    if not torch.equal(got, expected):
        text = "expected row starting at {}, got one starting at {} (exact)"
        raise WrongResult(text.format(expected[0].item(), got.flatten()[0].item()))
    return {"first": got[0].item(), "updated": t[0, 0].item()}


def _compile(function, backend="aot_eager"):
    return torch.compile(function, fullgraph=True, backend=backend)


def control(start=1, backend="aot_eager"):
    return _observe(_first_of_tail, start)


def baseline(start=1, backend="aot_eager"):
    return _observe(_compile(_first_of_tail, backend), start)


def clone_output(start=1, backend="aot_eager"):
    """A tensor of its own is not rebuilt from an input."""

    def function(t, tail):
        t.add_(100)
        return tail[0].clone()

    return _observe(_compile(function, backend), start)


def view_inside(start=1, backend="aot_eager"):
    """One input only: the compiled function takes the slice itself."""

    def function(t):
        t.add_(100)
        return t[start : start + 3][0]

    compiled = _compile(function, backend)
    return _observe(lambda t, tail: compiled(t), start)


def index_outside(start=1, backend="aot_eager"):
    """The compiled function updates, the caller takes the view."""

    def function(t, tail):
        t.add_(100)
        return tail.sum()

    compiled = _compile(function, backend)

    def caller(t, tail):
        compiled(t, tail)
        return tail[0]

    return _observe(caller, start)


def contiguous(start=1, backend="aot_eager"):
    """The row is contiguous already: nothing is copied, and it stays a view."""

    def function(t, tail):
        t.add_(100)
        return tail[0].contiguous()

    return _observe(_compile(function, backend), start)


def eager_backend(start=1, backend="aot_eager"):
    return _observe(_compile(_first_of_tail, "eager"), start)


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
