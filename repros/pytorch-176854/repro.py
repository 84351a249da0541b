"""pytorch-176854: after detach_() compiled code still reads requires_grad as True.

A tensor that requires a gradient is detached in place and asked whether it requires one, which is false.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected requires_grad False after detach_\(\), got True|expected the branch without a gradient, got the other"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _read(x):
    y = x * 2.0
    y.detach_()
    return y + 1.0, y.requires_grad


def _read_detached(x):
    y = x * 2.0
    y = y.detach()
    return y + 1.0, y.requires_grad


def _read_no_grad(x):
    with torch.no_grad():
        y = x * 2.0
    return y + 1.0, y.requires_grad


def _branch(x):
    y = x * 2.0
    y.detach_()
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


def _branch_detached(x):
    y = x * 2.0
    y = y.detach()
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


def _branch_no_grad(x):
    with torch.no_grad():
        y = x * 2.0
    if y.requires_grad:
        return y * 100.0, True
    return y + 1.0, False


_SUSPECT = {"read": _read, "branch": _branch}
_DETACHED = {"read": _read_detached, "branch": _branch_detached}
_NO_GRAD = {"read": _read_no_grad, "branch": _branch_no_grad}


def _observe(function):
    z, requires_grad = function(torch.ones(4, requires_grad=True))
    if z.tolist() == [200.0] * 4:
        raise WrongResult("expected the branch without a gradient, got the other")
    if requires_grad:
        raise WrongResult("expected requires_grad False after detach_(), got True")
    return {"z": z.tolist(), "y requires grad": requires_grad, "z requires grad": z.requires_grad}


def control(kind="read"):
    return _observe(_SUSPECT[kind])


def baseline(kind="read"):
    return _observe(torch.compile(_SUSPECT[kind], backend="eager", fullgraph=True))


def detached(kind="read"):
    """A new tensor, and not the old one changed."""
    return _observe(torch.compile(_DETACHED[kind], backend="eager", fullgraph=True))


def no_grad(kind="read"):
    """Computed without a gradient in the first place."""
    return _observe(torch.compile(_NO_GRAD[kind], backend="eager", fullgraph=True))


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
