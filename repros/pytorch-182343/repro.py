"""pytorch-182343: searchsorted and bucketize forget where a slice of their boundaries begins.

Positions are mapped to the segments that hold them, given cumulative lengths whose first element is sliced off, in eager
mode and compiled. Segments are counted from 1, which gives the compiler something to do where it does not search itself.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \[[\d, ]+\], got \[[\d, ]+\], tolerance 0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _search(operator, boundaries, values):
    if operator == "bucketize":
        return torch.bucketize(values, boundaries, right=True) + 1
    return torch.searchsorted(boundaries, values, right=True) + 1


def _compare(function, operator, first):
    """`function` with the same search in eager mode; it is given all offsets and how many to leave out."""
    offsets = torch.tensor([0, 3, 7, 12], device="cuda")
    values = torch.arange(12, device="cuda")
    expected = _search(operator, offsets[first:], values).tolist()
    got = function(operator, offsets, values, first).tolist()
    print("expected", expected)
    print("got     ", got)
    if got != expected:
        raise WrongResult("expected {}, got {}, tolerance 0".format(expected, got))
    return {"segments": got}


def _sliced(operator, offsets, values, first):
    return _search(operator, offsets[first:], values)


def control(operator="searchsorted", first=1):
    """Not compiled."""
    return _compare(_sliced, operator, first)


def baseline(operator="searchsorted", first=1):
    return _compare(torch.compile(_sliced), operator, first)


def slice_outside(operator="searchsorted", first=1):
    """The compiled function gets the slice as its argument."""
    compiled = torch.compile(_search)
    return _compare(lambda operator, offsets, values, first: compiled(operator, offsets[first:], values), operator, first)


def whole_minus_one(operator="searchsorted", first=1):
    """All offsets are searched, and those that come before the slice are taken off."""

    def whole(operator, offsets, values, first):
        return _search(operator, offsets, values) - first

    return _compare(torch.compile(whole), operator, first)


def compare_and_count(operator="searchsorted", first=1):
    """No search: every value is compared with every boundary."""

    def count(operator, offsets, values, first):
        return (offsets[first:, None] <= values).sum(0) + 1

    return _compare(torch.compile(count), operator, first)


def contiguous(operator="searchsorted", first=1):
    """The slice is contiguous already."""

    def made_contiguous(operator, offsets, values, first):
        return _search(operator, offsets[first:].contiguous(), values)

    return _compare(torch.compile(made_contiguous), operator, first)


def clone(operator="searchsorted", first=1):
    """Inductor removes the copy."""

    def cloned(operator, offsets, values, first):
        return _search(operator, offsets[first:].clone(), values)

    return _compare(torch.compile(cloned), operator, first)


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
