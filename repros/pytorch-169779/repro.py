"""pytorch-169779: a negative index for torch.index_select is an error in eager mode and wraps around once compiled.

index_select knows no negative indices. Compiled, [-1] must be refused too; the script sees whether rows come back.
First the same function selects row 1, so that it is known to work.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected an error for the index -\d+, got the rows \[[^]x\n]*\]"


class WrongResult(Exception):
    """The computation ended without the error that it must end with."""


def _select(x, index):
    return torch.index_select(x, 0, index)


def _select_checked(x, index):
    torch._assert_async((index >= 0).all())
    return torch.index_select(x, 0, index)


def _checked_outside(function):
    def call(x, index):
        if bool((index < 0).any()):
            raise IndexError("index out of range")
        return function(x, index)

    return call


def _must_refuse(function):
    x = torch.arange(6.0).reshape(3, 2)
    row = function(x, torch.tensor([1])).tolist()
    if row != [[2.0, 3.0]]:
        raise RuntimeError("index 1 selected {}".format(row))
    try:
        got = function(x, torch.tensor([-1])).tolist()
    except (IndexError, RuntimeError) as refusal:
        words = str(refusal).splitlines()[0]
        if not any(word in words for word in ("index", "out of", "assert", "Assert", "nonzero")):
            raise
        return {"row": row, "refused": words}
    raise WrongResult("expected an error for the index -1, got the rows {}".format(got))


def control():
    return _must_refuse(_select)


def baseline():
    return _must_refuse(torch.compile(_select))


def check_outside():
    """The caller looks at the indices before the compiled function."""
    return _must_refuse(_checked_outside(torch.compile(_select)))


def assert_inside():
    """An assertion inside the graph."""
    return _must_refuse(torch.compile(_select_checked))


def aot_eager():
    return _must_refuse(torch.compile(_select, backend="aot_eager"))


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
