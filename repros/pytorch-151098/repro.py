"""pytorch-151098: attention divided by a scale of its own is fused by Inductor and computed with the default scale.

softmax(q @ k.T / inv_scale + mask) @ v with heads of 64 and an inv_scale of the root of 1/8, compiled. It must be
close to the same attention in float64. The query is added, so that a graph that is fused aright has a C++ kernel too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"expected attention with its own scale, got it with the default scale"

_INV_SCALE = 1.0 / 8 ** 0.5


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _plain(q, k, v, mask, inv_scale=_INV_SCALE):
    scores = torch.matmul(q, k.transpose(-2, -1)).div(inv_scale) + mask
    return scores.softmax(dim=-1).matmul(v) + q


def _permuted(q, k, v, mask, inv_scale=_INV_SCALE):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _plain(q, k, v, mask, inv_scale)


def _multiplied(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1)) * (1.0 / _INV_SCALE) + mask
    return scores.softmax(dim=-1).matmul(v) + q


def _permuted_multiplied(q, k, v, mask):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _multiplied(q, k, v, mask)


def _ready_made(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0 / _INV_SCALE) + q


def _permuted_ready_made(q, k, v, mask):
    q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
    return _ready_made(q, k, v, mask)


def _observe(function, permuted):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (0.25 * torch.randn(1, 4, 8, 64, generator=generator) for _ in range(3))
    tokens = 4 if permuted else 8
    mask = torch.randn(1, 1, tokens, tokens, generator=generator)
    right = _permuted if permuted else _plain
    double = (q.double(), k.double(), v.double(), mask.double())
    with torch.no_grad():
        got = function(q, k, v, mask)
        off = float((got - right(*double)).abs().max())
        off_default = float((got - right(*double, 64 ** 0.5)).abs().max())
    if off_default < 1e-4:
        raise WrongResult("expected attention with its own scale, got it with the default scale "
                          "(off by {:.3g}, tolerance 1e-4)".format(off))
    if not off < 1e-4:
        raise WrongResult("expected attention, got something that is {:.3g} off (tolerance 1e-4)".format(off))
    return {"first": got.flatten()[:8].tolist(), "sum": float(got.double().sum())}


def control(permuted=True):
    return _observe(_permuted if permuted else _plain, permuted)


def baseline(permuted=True):
    return _observe(torch.compile(_permuted if permuted else _plain, fullgraph=True), permuted)


def multiply(permuted=True):
    """The same numbers in a form that no pattern has."""
    return _observe(torch.compile(_permuted_multiplied if permuted else _multiplied, fullgraph=True), permuted)


def ready_made(permuted=True):
    """Nothing is left to be recognised."""
    return _observe(torch.compile(_permuted_ready_made if permuted else _ready_made, fullgraph=True), permuted)


def no_pattern_matcher(permuted=True):
    compiled = torch.compile(_permuted if permuted else _plain, fullgraph=True, options={"pattern_matcher": False})
    return _observe(compiled, permuted)


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
