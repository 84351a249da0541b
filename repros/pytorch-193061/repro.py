"""pytorch-193061: the gradient of a chunked scale/shift table is memory that nobody wrote.

Two modulated LayerNorms run forward and backward, in eager mode and compiled; the gradients of the table are compared.
Free GPU memory is filled with NaN before, so that what is never written is seen.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the table's gradient of eager mode, got \d+ of \d+ rows wrong"

ENV = {"mix_order_off": {"TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0"}}

WIDTH = 1024
TOLERANCE = 0.01  # of a row's largest element


class WrongResult(Exception):
    """The backward pass ended without an error and with a wrong gradient."""


def _modulated(x, s1, b1, s2, b2):
    h = F.layer_norm(x, (WIDTH,)) * (1 + s1) + b1
    return F.layer_norm(h, (WIDTH,)) * (1 + s2) + b2


def _chunked(x, table):
    return _modulated(x, *table.chunk(4, dim=1))


def _unbound(x, table):
    return _modulated(x, *table.unbind(1))


def _cloned(x, table):
    return _modulated(x, *[part.clone() for part in table.chunk(4, dim=1)])


def _poison():
    """Leave blocks of the table's size in the allocator that hold NaN."""
    blocks = [torch.full((1, 4, WIDTH), float("nan"), device="cuda") for _ in range(256)]
    torch.cuda.synchronize()
    del blocks


def _table_gradient(function, x, table, weight):
    _poison()
    (function(x, table) * weight).sum().backward()
    torch.cuda.synchronize()
    gradient, table.grad = table.grad.clone(), None
    return gradient


def _compare(how, tokens):
    """`how` makes of nothing a function of x and the table."""
    torch.manual_seed(0)
    x = torch.randn(1, tokens, WIDTH, device="cuda")
    weight = torch.randn_like(x)
    table = (torch.randn(1, 4, WIDTH, device="cuda") * 0.1).requires_grad_()
    expected = _table_gradient(_chunked, x, table, weight)
    got = _table_gradient(how(), x, table, weight)
    observed = {}
    wrong = 0
    for row, name in enumerate(("s1", "b1", "s2", "b2")):
        apart = (got[0, row] - expected[0, row]).abs().nan_to_num(nan=float("inf")).max().item()
        largest = expected[0, row].abs().max().item()
        observed[name] = "{} apart, largest {}".format(apart, largest)
        print(name, observed[name])
        wrong += not apart <= TOLERANCE * largest
    if wrong:
        raise WrongResult("expected the table's gradient of eager mode, got {} of 4 rows wrong, tolerance {} of a row's "
                          "largest: {}".format(wrong, TOLERANCE, observed))
    return observed


def control(tokens=32768):
    """Not compiled: unbound rows against chunked ones, in eager mode."""
    return _compare(lambda: _unbound, tokens)


def baseline(tokens=32768):
    return _compare(lambda: torch.compile(_chunked), tokens)


def mix_order_off(tokens=32768):
    """ENV keeps reductions over different dimensions in kernels of their own."""
    return _compare(lambda: torch.compile(_chunked), tokens)


def unbind(tokens=32768):
    """The table's rows are unbound, not chunked."""
    return _compare(lambda: torch.compile(_unbound), tokens)


def separate_parameters(tokens=32768):
    """The compiled function gets four tensors; what they are slices of is eager mode's business."""
    compiled = torch.compile(_modulated)
    return _compare(lambda: lambda x, table: compiled(x, *[part.clone() for part in table.chunk(4, dim=1)]), tokens)


def clone_chunks(tokens=32768):
    """The chunks are cloned in the compiled function."""
    return _compare(lambda: torch.compile(_cloned), tokens)


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
