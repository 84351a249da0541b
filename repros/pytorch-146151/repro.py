"""pytorch-146151: compiled flex_attention is noted with the query's head dimension instead of the value's.

Attention whose values are wider or narrower than its queries is merged to (batch, sequence, heads * width), as every
model does it. What comes out is compared with a plain softmax; Dynamo of torch 2.6 cannot trace the reshape.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"shape '\[\d+, \d+, \d+\]' is invalid for input of size \d+"

BATCH, HEADS, SEQUENCE, QK_DIM = 4, 8, 256, 64


class WrongResult(Exception):
    """The attention ran, and its output is wrong."""


class NotApplicable(Exception):
    """This release has no such attention, compiled or not."""


def _attention(q, k, v, scale=None):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v, scale=scale)


def _merge(out, width):
    """(batch, heads, sequence, width) to (batch, sequence, heads * width)."""
    return out.transpose(1, 2).reshape(BATCH, SEQUENCE, HEADS * width)


def _model(q, k, v):
    return _merge(_attention(q, k, v), v.shape[-1])


def _padded_model(q, k, v):
    wide = max(q.shape[-1], v.shape[-1])
    q_wide, k_wide, v_wide = (torch.nn.functional.pad(t, (0, wide - t.shape[-1])) for t in (q, k, v))
    out = _attention(q_wide, k_wide, v_wide, scale=q.shape[-1] ** -0.5)
    return _merge(out[..., : v.shape[-1]], v.shape[-1])


def _split_model(q, k, v):
    out = torch.cat([_attention(q, k, piece) for piece in v.split(q.shape[-1], dim=-1)], dim=-1)
    return _merge(out, v.shape[-1])


def _observe(model, v_dim, device):
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(BATCH, HEADS, SEQUENCE, width, device=device, dtype=torch.bfloat16)
        for width in (QK_DIM, QK_DIM, v_dim)
    )
    try:
        got = model(q, k, v)
    except Exception as failure:
        if "NYI: Currently value embedding dimension" in str(failure):
            raise NotApplicable("this release refuses values wider than queries, compiled or not")
        raise
    scores = q.float() @ k.float().transpose(-2, -1) / QK_DIM**0.5
    expected = _merge(scores.softmax(dim=-1) @ v.float(), v_dim)
    if got.shape != expected.shape:
        raise WrongResult("expected shape {}, got {}".format(tuple(expected.shape), tuple(got.shape)))
    worst = (got.float() - expected).abs().max().item()
    if not worst < 3e-2:
        raise WrongResult("expected the values of a plain softmax, got values {} apart, tolerance 0.03".format(worst))
    return {"shape": tuple(got.shape), "sum": float(got.double().sum())}


def control(v_dim=128, device="cuda"):
    """Not compiled."""
    return _observe(_model, v_dim, device)


def baseline(v_dim=128, device="cuda"):
    return _observe(torch.compile(_model), v_dim, device)


def flex_alone(v_dim=128, device="cuda"):
    """The attention is a graph of its own, which nothing follows; the reshape is in another one."""
    alone = torch.compile(_attention)

    @torch.compiler.disable(recursive=False)
    def attend(q, k, v):
        return alone(q, k, v)

    return _observe(torch.compile(lambda q, k, v: _merge(attend(q, k, v), v.shape[-1])), v_dim, device)


def pad_query(v_dim=128, device="cuda"):
    """One head dimension for all three."""
    return _observe(torch.compile(_padded_model), v_dim, device)


def split_value(v_dim=128, device="cuda"):
    """Pieces of the value as wide as the query."""
    return _observe(torch.compile(_split_model), v_dim, device)


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
