"""pytorch-169908: the fused backward of a wide RMSNorm asks for more shared memory than there is.

The report's function, compiled, forward and backward. The gradients of the first rows and of the weight are compared
with those of eager mode, which is run on a few rows at a time so that it stays small.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"out of resource: \w[\w ,]{0,300}\s{1,20}Required: \d+,?\s{1,20}Hardware limit: ?\d+"

ENV = {"no_mix_order": {"TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0"}}

ROWS_AT_ONCE = 1024


class WrongResult(Exception):
    """The backward ran, and its gradients are wrong."""


def _norm(x, w):
    return F.rms_norm(x.float(), x.shape[1:], w, 1e-5).to(dtype=x.dtype)


def _at_once(norm):
    return lambda x, w: norm(x, w).sum().backward()


def _in_chunks(norm):
    """The same function, called on a few rows at a time, each with its own backward."""

    def step(x, w):
        for part in x.split(ROWS_AT_ONCE):
            norm(part, w).sum().backward()

    return step


def _by_hand(x, w):
    """Gradients of the first rows and of the weight, by eager mode and in pieces."""
    w = w.detach().requires_grad_()
    first = None
    for part in x.detach().split(ROWS_AT_ONCE):
        part = part.detach().requires_grad_()
        _norm(part, w).sum().backward()
        first = part.grad if first is None else first
    return first, w.grad


def _observe(step, rows, columns):
    torch.manual_seed(0)
    x = torch.randn((rows, columns), dtype=torch.bfloat16, device="cuda", requires_grad=True)
    w = torch.randn(columns, dtype=torch.float, device="cuda", requires_grad=True)
    step(x, w)
    torch.cuda.synchronize()
    for name, got, expected in zip("xw", (x.grad[:ROWS_AT_ONCE], w.grad), _by_hand(x, w)):
        apart = ((got.float() - expected.float()).norm() / expected.float().norm()).item()
        if not apart < 0.02:
            raise WrongResult(
                "expected the gradient of {} of eager mode, got one {} away, tolerance 0.02".format(name, apart)
            )
        print("gradient of", name, "is right, relative distance", apart)
    return {"rows": rows, "weight_grad": float(w.grad.double().sum()), "gpu": torch.cuda.get_device_name()}


def control(rows=32768, columns=16384):
    """Not compiled."""
    return _observe(_in_chunks(_norm), rows, columns)


def baseline(rows=32768, columns=16384):
    return _observe(_at_once(torch.compile(_norm)), rows, columns)


def no_mix_order(rows=32768, columns=16384):
    """ENV turns the fusion of the two reductions off."""
    return _observe(_at_once(torch.compile(_norm)), rows, columns)


def fewer_rows(rows=32768, columns=16384):
    """Below 4096 rows Inductor does not fuse them."""
    return _observe(_in_chunks(torch.compile(_norm)), rows, columns)


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
