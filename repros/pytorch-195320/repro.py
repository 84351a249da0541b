"""pytorch-195320: compiled attention whose key is permuted in one step is fused into an attention with another key.

Attention over x of shape (batch, tokens, heads, width), written out with matmul and softmax. The key goes to (batch,
heads, width, tokens) by one permute, which is right, or by two transposes. Compiled against plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the attention of plain torch, got values off by"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_hand(q, k, v):
    return torch.matmul((torch.matmul(q, k) * 0.25).softmax(dim=-1), v)


def _one_permute(q, k, v):
    return _by_hand(q.transpose(1, 2), k.permute(0, 2, 3, 1), v.transpose(1, 2))


def _two_transposes(q, k, v):
    return _by_hand(q.transpose(1, 2), k.transpose(1, 2).transpose(-2, -1), v.transpose(1, 2))


def _contiguous_key(q, k, v):
    return _by_hand(q.transpose(1, 2), k.permute(0, 2, 3, 1).contiguous(), v.transpose(1, 2))


def _ready_made(q, k, v):
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=0.25)


def _observe(function, tokens, train):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, tokens, 8, 16, requires_grad=train) for _ in range(3))
    got, expected = function(q, k, v), _one_permute(q, k, v)
    off = float((got - expected).abs().max())
    if off > 1e-3:
        raise WrongResult("expected the attention of plain torch, got values off by {:.3g} (tolerance 1e-3)"
                          .format(off))
    return {"shape": list(got.shape), "off": off}


def control(tokens=8, train=False):
    return _observe(_one_permute, tokens, train)


def baseline(tokens=8, train=False):
    return _observe(torch.compile(_one_permute), tokens, train)


def two_transposes(tokens=8, train=False):
    """The key is spelled as Inductor's own patterns spell it."""
    return _observe(torch.compile(_two_transposes), tokens, train)


def ready_made(tokens=8, train=False):
    """Nothing is left to be recognised."""
    return _observe(torch.compile(_ready_made), tokens, train)


def no_pattern_matcher(tokens=8, train=False):
    return _observe(torch.compile(_one_permute, options={"pattern_matcher": False}), tokens, train)


def aot_eager(tokens=8, train=False):
    return _observe(torch.compile(_one_permute, backend="aot_eager"), tokens, train)


def contiguous_key(tokens=8, train=False):
    return _observe(torch.compile(_contiguous_key), tokens, train)


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
