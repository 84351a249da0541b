"""pytorch-126848: Inductor's kernel for the CPU flushes denormal numbers to zero, and leaves the thread doing so.

0.1875 * 2 ** -124 is 8.8e-39, a denormal float32. What a compiled multiplication gives (`what="compiled"`) and what eager
mode gives afterwards (`what="eager_after"`) must be that, to the last bit.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \S+e-(?:39|4\d), got 0\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _scale(t):
    return t * 2.0 ** (-127 + 3)


def _scale_in_double(t):
    return t.double() * 2.0 ** (-127 + 3)


def _checked(result):
    if result != 0.1875 * 2.0 ** -124:
        raise WrongResult("expected 8.816207631167156e-39, got {} (tolerance 0)".format(result))
    return result


def _observe(what, function, then=lambda: None):
    """`then` is called after the first call of the function."""
    x = torch.tensor(0.1875)
    before = _scale(x).item()
    compiled = function(x)
    then()
    told = compiled.item() if what == "compiled" else _scale(x).item()
    return {"eager": _checked(before), what: _checked(told)}


def control(what="compiled"):
    return _observe(what, _scale)


def baseline(what="compiled"):
    return _observe(what, torch.compile(_scale))


def aot_eager(what="compiled"):
    return _observe(what, torch.compile(_scale, backend="aot_eager"))


def in_double(what="compiled"):
    """The denormals of float32 are ordinary numbers of float64."""
    return _observe(what, torch.compile(_scale_in_double))


def unflush_after(what="compiled"):
    """The thread is told to keep denormals, after the call that compiled."""
    return _observe(what, torch.compile(_scale), lambda: torch.set_flush_denormal(False))


def warm_up(what="compiled"):
    """One call for the compiler; then the thread is told to keep denormals; then the call that counts."""
    compiled = torch.compile(_scale)
    compiled(torch.tensor(1.0))
    torch.set_flush_denormal(False)
    return _observe(what, compiled)


def unflush_before(what="compiled"):
    """The thread is told to keep denormals before anything is compiled."""
    torch.set_flush_denormal(False)
    return _observe(what, torch.compile(_scale))


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
