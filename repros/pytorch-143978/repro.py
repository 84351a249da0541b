"""pytorch-143978: sin(atan(x)) of a NaN is 1 once compiled for the CPU.

The reciprocal root of a negative number is NaN, and so is what is computed from it.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected NaN of \[[-\d., ]+\], got \[(?:nan, )*1\.0\b"

_NUMBERS = {
    "ten": [0.7886758446693420, -1.1796921491622925, 0.5152440071105957, 1.4106913805007935, 1.3812966346740723,
            0.5720621347427368, 1.7286888360977173, -2.2948377132415771, -0.3201593160629272, 1.3686311244964600],
    "one": [-1.1796921491622925],
}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x):
    return torch.sin(torch.positive(torch.atan(torch.angle(torch.rsqrt(x)))))


def _without_angles(x):
    x = torch.angle(torch.rsqrt(x))
    return x / torch.sqrt(1 + x * x)


def _kept(x):
    x = torch.angle(torch.rsqrt(x))
    return torch.where(torch.isnan(x), x, torch.sin(torch.atan(x)))


def _observe(function, numbers):
    x = torch.tensor(_NUMBERS[numbers])
    result = function(x)
    got = result.tolist()
    if torch.isnan(result).tolist() != (x < 0).tolist() or result[x > 0].any():
        raise WrongResult("expected NaN of {}, got {}".format(x[x < 0].tolist(), result[x < 0].tolist()))
    return {"got": [str(value) for value in got]}


def control(numbers="ten"):
    return _observe(_suspect, numbers)


def baseline(numbers="ten"):
    return _observe(torch.compile(_suspect), numbers)


def without_angles(numbers="ten"):
    """The sine of an arc tangent is algebraic."""
    return _observe(torch.compile(_without_angles), numbers)


def kept(numbers="ten"):
    """NaN is put back where it was."""
    return _observe(torch.compile(_kept), numbers)


def aot_eager(numbers="ten"):
    return _observe(torch.compile(_suspect, backend="aot_eager"), numbers)


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
