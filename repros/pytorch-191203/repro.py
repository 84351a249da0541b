"""pytorch-191203: an attention whose scale is a tensor is replaced by one that takes floats only.

softmax(q @ k.T / scale + mask) @ v is a pattern that Inductor fuses into scaled_dot_product_attention. What is
compiled must be close to the same attention in float64.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"scaled_dot_product_attention\(\) Expected a value of type 'Optional\[float\]' for argument 'scale' but"

_SCALE = 2.0


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _attention(q, k, v, mask, scale):
    scores = q @ k.transpose(-2, -1) / scale
    return torch.softmax(scores + mask, dim=-1) @ v


def _scaled_query(q, k, v, mask, scale):
    scores = (q / scale) @ k.transpose(-2, -1)
    return torch.softmax(scores + mask, dim=-1) @ v


def _sdpa(q, k, v, mask, scale):
    return F.scaled_dot_product_attention(q / scale, k, v, attn_mask=mask, scale=1.0)


def _observe(function, scale):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 8, 8, generator=generator) for _ in range(3))
    mask = torch.triu(torch.full((8, 8), -1e9), diagonal=1)
    with torch.no_grad():
        got = function(q, k, v, mask, scale)
        double = (q.double(), k.double(), v.double(), mask.double())
        off = float((got - _attention(*double, _SCALE)).abs().max())
        off_default = float((got - _attention(*double, 8 ** 0.5)).abs().max())
    if off_default < 1e-4:
        raise WrongResult("expected attention scaled by 2.0, got it scaled by the default, the root of the head's size "
                          "(off by {}, tolerance 1e-4)".format(off))
    if not off < 1e-4:
        raise WrongResult("expected attention, got something that is {} off (tolerance 1e-4)".format(off))
    return {"off": off}


def control():
    return _observe(_attention, torch.tensor(_SCALE))


def baseline():
    return _observe(torch.compile(_attention, fullgraph=True), torch.tensor(_SCALE))


def float_scale():
    """What the fused attention takes."""
    return _observe(torch.compile(_attention, fullgraph=True), _SCALE)


def scaled_query():
    """The same numbers, divided before the product: no pattern has it so."""
    return _observe(torch.compile(_scaled_query, fullgraph=True), torch.tensor(_SCALE))


def sdpa():
    """The fused attention by name, with the tensor applied to the query."""
    return _observe(torch.compile(_sdpa, fullgraph=True), torch.tensor(_SCALE))


def no_pattern_matcher():
    compiled = torch.compile(_attention, fullgraph=True, options={"pattern_matcher": False})
    return _observe(compiled, torch.tensor(_SCALE))


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
