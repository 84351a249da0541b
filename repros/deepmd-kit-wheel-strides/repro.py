"""deepmd-kit-wheel-strides: the operators of released DeePMD-kit wheels refuse a transposed input.

tabulate_fusion_se_a of the wheel's own operator library is called with the same environment matrix in two memory layouts.
Only the library is loaded; the deepmd package, which wants TensorFlow and more, is not imported.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import importlib.metadata

import torch

SIGNATURE = r"view size is not compatible with input tensor's size and stride"

WIDTH = 8  # of the last layer
STEPS = (0.0, 1.0, 2.0, 0.1, 0.2)  # of the table: lower, upper and largest argument, fine and coarse step


class WrongResult(Exception):
    """The operator returned, and its numbers are wrong."""


class NotApplicable(Exception):
    """The wheel's library was built for another torch."""


def _load():
    library = importlib.metadata.distribution("deepmd-kit").locate_file("deepmd/lib/libdeepmd_op_pt.so")
    try:
        torch.ops.load_library(str(library))
    except OSError as failure:
        if "undefined symbol" not in str(failure):
            raise
        raise NotApplicable("this deepmd-kit was built for another torch: {}".format(failure)) from failure


def _inputs():
    """A table of random polynomials, and an environment matrix of 4 atoms with 6 neighbours each."""
    torch.manual_seed(0)
    lower, upper, largest, fine, coarse = STEPS
    rows = round((upper - lower) / fine) + round((largest - upper) / coarse)
    table = torch.randn(rows, WIDTH * 6, dtype=torch.float64)
    return table, torch.tensor([*STEPS, -1.0], dtype=torch.float64), torch.rand(4, 6, 4, dtype=torch.float64)


def _fuse(table, info, matrix, argument):
    return torch.ops.deepmd.tabulate_fusion_se_a(table, info, argument, matrix, WIDTH)[0]


def _transposed(tensor):
    """The same numbers in reversed order of memory."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _run(lay_out, gradient):
    """Compute with the matrix that `lay_out` makes, and with a contiguous one; `gradient` compares backward too."""
    _load()
    table, info, matrix = _inputs()
    argument = matrix[:, :, :1].reshape(-1, 1).contiguous()
    ends = []
    for given in (matrix.clone(), lay_out(matrix)):
        given.requires_grad_()
        fused = _fuse(table, info, given, argument)
        if gradient:
            pulled = torch.linspace(-1, 1, fused.numel(), dtype=fused.dtype).view(fused.shape)
            fused.backward(_transposed(pulled) if ends else pulled)
        ends.append((fused.detach(), given.grad if gradient else torch.zeros(1)))
    (expected, expected_gradient), (got, got_gradient) = ends
    if not (torch.equal(got, expected) and torch.equal(got_gradient, expected_gradient)):
        raise WrongResult("expected what a contiguous matrix gives, got something else, tolerance 0")
    version = importlib.metadata.version("deepmd-kit")
    return {"deepmd_kit": version, "sum": float(got.sum()), "gradient_sum": float(got_gradient.sum())}


def control(gradient=False):
    """Contiguous from the start."""
    return _run(torch.clone, gradient=False)


def baseline(gradient=False):
    return _run(torch.clone if gradient else _transposed, gradient)


def caller_contiguous(gradient=False):
    """The same matrix, copied before the call."""
    return _run(lambda matrix: _transposed(matrix).contiguous(), gradient)


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
