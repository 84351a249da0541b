"""pytorch-146260: the backward of compiled flex_attention finds no configuration at head dimension 128 on torch 2.6.

Attention with a causal document mask, forward and backward, in bfloat16. The gradients are compared with those of a
plain softmax in float32. The reporter's shapes, only fewer heads and a smaller batch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"NoValidChoicesError: No choices to select[^V]*target: flex_attention_backward"

BATCH, HEADS, SEQUENCE, DOCUMENT = 2, 2, 512, 200


class WrongResult(Exception):
    """The attention ran, and its gradients are wrong."""


def _documents():
    """For each token the number of its document, as int64 of (batch, sequence)."""
    return (torch.arange(SEQUENCE, device="cuda") // DOCUMENT).expand(BATCH, SEQUENCE).contiguous()


def _allowed():
    """The mask as a tensor of (batch, 1, queries, keys)."""
    documents = _documents()
    causal = torch.ones(SEQUENCE, SEQUENCE, device="cuda", dtype=torch.bool).tril()
    return causal & (documents[:, None, :, None] == documents[:, None, None, :])


def _block_mask():
    from torch.nn.attention.flex_attention import create_block_mask

    documents = _documents()

    def causal_in_document(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (documents[b, q_idx] == documents[b, kv_idx])

    return create_block_mask(causal_in_document, BATCH, None, SEQUENCE, SEQUENCE, device="cuda")


def _softmax_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.masked_fill(~_allowed(), float("-inf")).softmax(dim=-1) @ v


def _sdpa(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=_allowed())


def _flex(options=None, **compile_options):
    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention, **compile_options)
    return lambda q, k, v: compiled(q, k, v, block_mask=_block_mask(), kernel_options=options)


def _gradients(attention, values, upstream, dtype):
    q, k, v = (value.detach().to(dtype).requires_grad_() for value in values)
    attention(q, k, v).backward(upstream.to(dtype))
    torch.cuda.synchronize()
    return [tensor.grad.float() for tensor in (q, k, v)]


def _observe(attention, dtype, dim):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    size = (BATCH, HEADS, SEQUENCE, dim)
    values = [torch.randn(size, device="cuda").to(kind) for _ in range(3)]
    upstream = torch.randn(size, device="cuda").to(kind)
    got = _gradients(attention, values, upstream, kind)
    expected = _gradients(_softmax_attention, values, upstream, torch.float32)
    apart = [((g - e).norm() / e.norm()).item() for g, e in zip(got, expected)]
    if not max(apart) < 0.05:
        raise WrongResult(
            "expected the gradients of a plain softmax, got relative distances {}, tolerance 0.05".format(apart)
        )
    return {"distances": ["{:.1e}".format(one) for one in apart], "gpu": torch.cuda.get_device_name()}


def control(dtype="bfloat16", dim=128):
    """Not compiled, and no flex attention."""
    return _observe(_softmax_attention, dtype, dim)


def baseline(dtype="bfloat16", dim=128):
    return _observe(_flex(dynamic=False), dtype, dim)


def max_autotune(dtype="bfloat16", dim=128):
    """More configurations than the default one."""
    return _observe(_flex(dynamic=False, mode="max-autotune-no-cudagraphs"), dtype, dim)


def in_float32(dtype="bfloat16", dim=128):
    """float32 has a default configuration of 4 warps."""
    flex = _flex(dynamic=False)
    return _observe(lambda q, k, v: flex(q.float(), k.float(), v.float()).to(q.dtype), dtype, dim)


def sdpa_with_mask(dtype="bfloat16", dim=128):
    """The mask as a tensor, and no flex attention."""
    return _observe(torch.compile(_sdpa), dtype, dim)


def smaller_blocks(dtype="bfloat16", dim=128):
    """Smaller blocks do not change the number of warps."""
    options = {"BLOCK_M1": 32, "BLOCK_N1": 32, "BLOCK_M2": 32, "BLOCK_N2": 32}
    return _observe(_flex(options, dynamic=False), dtype, dim)


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
