"""pytorch-187018: Inductor's C++ takes the abs of a uint8 with std::abs, and from there on computes with an int.

Eager arithmetic of uint8 wraps at 256: -abs(200) is 56. The generated kernel has an int of -200 where eager has 56,
and a sum shows the difference.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected sum \d+, got -\d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _twice(x):
    """The report's function: the negated value is used twice, so that it is stored between two kernels."""
    y = -x.abs()
    return torch.cat([y, y]).sum()


def _once(x):
    return (-x.abs()).sum()


def _twice_without_abs(x):
    y = -x
    return torch.cat([y, y]).sum()


def _twice_masked(x):
    y = (-x.abs()) & 255
    return torch.cat([y, y]).sum()


def _twice_cast(x):
    y = (-x.abs()).to(torch.uint8)
    return torch.cat([y, y]).sum()


_FUNCTIONS = {"twice": _twice, "once": _once}


def _observe(function, case, n):
    """200 wraps to 56 when it is negated, whichever way it got there."""
    expected = 56 * n * (2 if case == "twice" else 1)
    got = int(function(torch.full((n,), 200, dtype=torch.uint8)))
    if got != expected:
        raise WrongResult("expected sum {}, got {} (exact, tolerance 0)".format(expected, got))
    return {"sum": got, "vector_isa": torch.backends.cpu.get_cpu_capability()}


def control(case="twice", n=2):
    return _observe(_FUNCTIONS[case], case, n)


def baseline(case="twice", n=2):
    return _observe(torch.compile(_FUNCTIONS[case], fullgraph=True), case, n)


def without_abs(case="twice", n=2):
    """No unsigned value is negative: its abs is itself."""
    return _observe(torch.compile(_twice_without_abs, fullgraph=True), "twice", n)


def mask_255(case="twice", n=2):
    """The lower eight bits of an int are what a uint8 would hold."""
    return _observe(torch.compile(_twice_masked, fullgraph=True), "twice", n)


def aot_eager(case="twice", n=2):
    return _observe(torch.compile(_FUNCTIONS[case], backend="aot_eager", fullgraph=True), case, n)


def cast_back(case="twice", n=2):
    """A cast from uint8 to uint8 is nothing to Inductor, and is not in the kernel."""
    return _observe(torch.compile(_twice_cast, fullgraph=True), "twice", n)


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
