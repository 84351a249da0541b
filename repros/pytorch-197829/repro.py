"""pytorch-197829: `x[1:] = x[:-1].clone()` compiled with Inductor copies row 0 into every row.

The rows of a small tensor are shifted down by one. Inductor takes the clone out and copies from memory that it is
writing to. The compiled result is compared with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected every row to hold the row before it, got \d+ of \d+ elements wrong"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _shift(x):
    x[1:] = x[:-1].clone()
    return x


def _shift_by_cat(x):
    return torch.cat([x[:1], x[:-1]])


def _shift_by_cat_in_place(x):
    x.copy_(torch.cat([x[:1], x[:-1]]))
    return x


def _shift_whole_clone(x):
    x[1:] = x.clone()[:-1]
    return x


def _observe(function):
    torch.manual_seed(0)
    x = torch.rand(3, 16, 16)
    expected = x[[0, 0, 1]]
    got = function(x.clone())
    wrong = int((got != expected).sum())
    if wrong:
        raise WrongResult("expected every row to hold the row before it, got {} of {} elements wrong; row 2 is row {}"
                          .format(wrong, x.numel(), [row for row in range(3) if torch.equal(got[2], x[row])]))
    return {"elements": got.numel(), "wrong": wrong}


def control():
    return _observe(_shift)


def baseline():
    return _observe(torch.compile(_shift))


def cat_new():
    """Nothing is written in place."""
    return _observe(torch.compile(_shift_by_cat))


def cat_in_place():
    """The shifted copy is whole before anything is written."""
    return _observe(torch.compile(_shift_by_cat_in_place))


def no_pattern_matcher():
    return _observe(torch.compile(_shift, options={"pattern_matcher": False}))


def aot_eager():
    return _observe(torch.compile(_shift, backend="aot_eager"))


def whole_clone():
    return _observe(torch.compile(_shift_whole_clone))


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
