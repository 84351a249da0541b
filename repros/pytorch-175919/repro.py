"""pytorch-175919: compiled aten.resize of an overlapping view reads past the end of the tensor.

One number, seen as a hundred by a stride of zero, is resized to fifty; and a view that begins in the middle of ten
numbers to its own size. Both must be what eager gives.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected \d+ numbers of the view, got only \d+ of them"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _seen(x, view):
    return x[5:] if view == "offset" else torch.as_strided(x, (100,), (0,))


def _suspect(x, view):
    return torch.ops.aten.resize(_seen(x, view), (5 if view == "offset" else 50,)) + 1


def _by_slice(x, view):
    return _seen(x, view)[: 5 if view == "offset" else 50] + 1


def _by_expand(x, view):
    return x[:1].expand(50) + 1


def _observe(function, view):
    expected = [6.0, 7.0, 8.0, 9.0, 10.0] if view == "offset" else [1.0] * 50
    got = (function(torch.arange(1.0, 11.0), view) - 1).tolist()
    right = sum(mine == theirs for mine, theirs in zip(expected, got))
    if len(got) != len(expected) or right != len(expected):
        raise WrongResult("expected {} numbers of the view, got only {} of them".format(len(expected), right))
    return {"numbers": got}


def control(view="stride_zero"):
    return _observe(_suspect, view)


def baseline(view="stride_zero"):
    return _observe(torch.compile(_suspect), view)


def slice_instead(view="stride_zero"):
    return _observe(torch.compile(_by_slice), view)


def expand_instead(view="stride_zero"):
    return _observe(torch.compile(_by_expand), view)


def aot_eager(view="stride_zero"):
    return _observe(torch.compile(_suspect, backend="aot_eager"), view)


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
