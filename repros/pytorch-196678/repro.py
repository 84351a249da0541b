"""pytorch-196678: cuDNN attention with a mask gives NaN gradients of the queries for lengths of 64 modulo 128.

Every score is near -120, so that each row's logsumexp is far below -88.7. The gradients of masked attention are computed
by cuDNN and, as the control, by the math backend.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import math

import torch
import torch.nn.functional as F

SIGNATURE = r"expected finite gradients of the queries, got \d+ of \d+ elements that are not"

WIDTH = 64


class WrongResult(Exception):
    """The backward pass ended without an error and with NaN."""


def _only(backend):
    """A context in which one backend alone may be used; `default` leaves the choice to the release."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if backend == "default":
        import contextlib
        return contextlib.nullcontext()
    return sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}[backend])


def _masked(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _observe(attention, length, backend, causal):
    torch.manual_seed(0)
    q = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16) * 0.1
    k = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16) * 0.1
    v = torch.randn(1, 1, length, WIDTH, device="cuda", dtype=torch.bfloat16)
    q[..., 0], k[..., 0] = 1.0, -120 * math.sqrt(WIDTH)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    mask = torch.ones(length, length, dtype=torch.bool, device="cuda")
    mask = (mask.tril() if causal else mask)[None, None]
    with _only(backend):
        out = attention(q, k, v, mask)
        out.backward(torch.randn_like(out))
    torch.cuda.synchronize()
    bad = {name: int((~torch.isfinite(tensor.grad)).sum()) for name, tensor in (("q", q), ("k", k), ("v", v))}
    print("elements that are not finite:", bad, "cuDNN", torch.backends.cudnn.version())
    if not torch.isfinite(out).all():
        raise RuntimeError("the forward result is not finite either")
    if bad["q"]:
        raise WrongResult("expected finite gradients of the queries, got {} of {} elements that are not "
                          "(keys {}, values {})".format(bad["q"], q.numel(), bad["k"], bad["v"]))
    return {"not finite": bad, "largest": q.grad.float().abs().max().item(), "cudnn": torch.backends.cudnn.version()}


def control(length=704, backend="cudnn", causal=True):
    """The math backend."""
    return _observe(_masked, length, "math", causal)


def baseline(length=704, backend="cudnn", causal=True):
    return _observe(_masked, length, backend, causal)


def cudnn_off(length=704, backend="cudnn", causal=True):
    """What is left chooses for itself."""
    torch.backends.cuda.enable_cudnn_sdp(False)
    return _observe(_masked, length, "default", causal)


def is_causal(length=704, backend="cudnn", causal=True):
    """No mask is passed."""
    return _observe(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, is_causal=True), length, backend, causal)


def pad_to_128(length=704, backend="cudnn", causal=True):
    """Zeros up to the next multiple of 128, with the new keys shut out."""

    def padded(q, k, v, mask):
        more = -length % 128
        q, k, v = (F.pad(tensor, (0, 0, 0, more)) for tensor in (q, k, v))
        mask = F.pad(mask, (0, more, 0, more), value=False)
        if more:
            mask[..., -more:, :1] = True
        return _masked(q, k, v, mask)[..., :length, :]

    return _observe(padded, length, backend, causal)


def float_mask(length=704, backend="cudnn", causal=True):
    """Zeros and minus infinities."""

    def with_floats(q, k, v, mask):
        return _masked(q, k, v, torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, float("-inf")))

    return _observe(with_floats, length, backend, causal)


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
