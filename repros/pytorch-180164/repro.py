"""pytorch-180164: the gradient of slice_scatter under a plain sum is zero, or ignores the slice.

Elements of a tensor are replaced by another tensor and summed, in eager mode and compiled; the gradients that reach the
replaced tensor are compared.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected x\.grad of eager mode, got \d+ of \d+ other elements"


class WrongResult(Exception):
    """The backward pass ended without an error and with a wrong gradient."""


def _sum_of_scattered(x, y, start, dims):
    return torch.slice_scatter(x, y, dim=1, start=start, end=start + 6).sum(dim=dims)


def _sum_of_clone(x, y, start, dims):
    return torch.slice_scatter(x, y, dim=1, start=start, end=start + 6).clone().sum(dim=dims)


def _sum_of_assigned(x, y, start, dims):
    out = x.clone()
    out[:, start:start + 6] = y
    return out.sum(dim=dims)


def _sum_of_parts(x, y, start, dims):
    return torch.cat([x[:, :start], y, x[:, start + 6:]], dim=1).sum(dim=dims)


def _gradients(function, start, total):
    torch.manual_seed(0)
    x = torch.randn(4, 13, 33, device="cuda", requires_grad=True)
    y = torch.randn(4, 6, 33, device="cuda", requires_grad=True)
    dims = (0, 1, 2) if total else (1,)
    function(x, y, start, dims).sum().backward()
    return x.grad, y.grad


def _compare(function, start, total):
    """The gradients of `function` with those of the scatter in eager mode, which are zeros and ones."""
    x_expected, y_expected = _gradients(_sum_of_scattered, start, total)
    x_got, y_got = _gradients(function, start, total)
    torch.cuda.synchronize()
    wrong = int((x_got != x_expected).sum())
    if wrong:
        raise WrongResult("expected x.grad of eager mode, got {} of {} other elements (sums: {} and {}), tolerance 0".format(
            wrong, x_expected.numel(), float(x_expected.sum()), float(x_got.sum())))
    return {"x.grad sums to": float(x_got.sum()), "y.grad is equal": torch.equal(y_got, y_expected)}


def control(start=0, total=False):
    """Not compiled."""
    return _compare(_sum_of_scattered, start, total)


def baseline(start=0, total=False):
    return _compare(torch.compile(_sum_of_scattered), start, total)


def assign_to_copy(start=0, total=False):
    """The slice of a copy is assigned to."""
    return _compare(torch.compile(_sum_of_assigned), start, total)


def concatenate(start=0, total=False):
    """The parts are concatenated."""
    return _compare(torch.compile(_sum_of_parts), start, total)


def aot_eager(start=0, total=False):
    return _compare(torch.compile(_sum_of_scattered, backend="aot_eager"), start, total)


def clone_after_scatter(start=0, total=False):
    """The copy changes nothing about the gradient that comes in."""
    return _compare(torch.compile(_sum_of_clone), start, total)


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
