"""pytorch-138354: scaled_dot_product_attention returns another memory layout when cuDNN computes it.

Query, key and value are transposed views of (batch, sequence, heads, dim), as in most models. The output has to have
the values of a plain softmax and to lie in memory as the query does; torch 2.5.0 chooses cuDNN on Hopper, and it does
not.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import contextlib

import torch
import torch.nn.functional as F

SIGNATURE = r"expected an output laid out as the query, strides \([^)x\n]*\), got strides \("

BATCH, SEQUENCE, HEADS, DIM = 2, 128, 16, 64


class WrongResult(Exception):
    """The attention ran, and its output is wrong or lies elsewhere in memory than it should."""


class NotApplicable(Exception):
    """What the variant asks for does not exist here."""


def _inputs():
    torch.manual_seed(0)
    size = (BATCH, SEQUENCE, HEADS, DIM)
    return tuple(torch.randn(size, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in range(3))


def _attend(context):
    """The output beside its query, after its values were compared with those of float32."""
    q, k, v = _inputs()
    with context:
        out = F.scaled_dot_product_attention(q, k, v)
    scores = q.float() @ k.float().transpose(-2, -1) / DIM**0.5
    worst = (out.float() - scores.softmax(dim=-1) @ v.float()).abs().max().item()
    if not worst < 3e-2:
        raise WrongResult("expected the values of a plain softmax, got values {} apart, tolerance 0.03".format(worst))
    return q, out


def _observe(context):
    q, out = _attend(context)
    if out.stride() != q.stride():
        raise WrongResult(
            "expected an output laid out as the query, strides {}, got strides {}".format(q.stride(), out.stride())
        )
    merged = out.transpose(1, 2).view(BATCH, SEQUENCE, HEADS * DIM)
    return {"strides": out.stride(), "sum": float(merged.double().sum()), "gpu": torch.cuda.get_device_name()}


def _only(*names):
    """The backends of these names, as a context."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([getattr(SDPBackend, name) for name in names])


def control(asked_for=False):
    """Without cuDNN."""
    return _observe(_only("FLASH_ATTENTION", "EFFICIENT_ATTENTION"))


def baseline(asked_for=False):
    if not asked_for:
        return _observe(contextlib.nullcontext())
    try:
        return _observe(_only("CUDNN_ATTENTION"))
    except RuntimeError as failure:
        if "No available kernel" in str(failure):
            raise NotApplicable("this build has no cuDNN attention for this GPU")
        raise


def cudnn_off(asked_for=False):
    """What the whole program may use, set once."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    return _observe(contextlib.nullcontext())


def name_the_backends(asked_for=False):
    """cuDNN is not among those named."""
    return _observe(_only("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"))


def reshape(asked_for=False):
    """The heads are merged whatever the layout is."""
    _, out = _attend(contextlib.nullcontext())
    merged = out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * DIM)
    return {"strides": out.stride(), "sum": float(merged.double().sum()), "gpu": torch.cuda.get_device_name()}


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
