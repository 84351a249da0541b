"""pytorch-193183: slice assignments of stride 3 (interleaved MRoPE) copy wrong elements once compiled.

Every third element is copied from each of three planes, in eager mode and compiled; the copies must be equal.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the copied elements, got \d+ of \d+ other ones"

ENV = {"no_llvm_optimisation": {"DISABLE_LLVM_OPT": "1"}}

WIDTH = 64


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _interleave(x, h, w):
    """vLLM's apply_interleaved_rope."""
    x_t = x[0].clone()
    x_t[..., 1:h * 3:3] = x[1, ..., 1:h * 3:3]
    x_t[..., 2:w * 3:3] = x[2, ..., 2:w * 3:3]
    return x_t


def _by_masks(x, h, w):
    at = torch.arange(x.shape[-1], device=x.device)
    from_h = (at % 3 == 1) & (at < 3 * h)
    from_w = (at % 3 == 2) & (at < 3 * w)
    return torch.where(from_w, x[2], torch.where(from_h, x[1], x[0]))


def _compare(function, tokens, dtype, h, w):
    """`function` with what numpy's slices give."""
    torch.manual_seed(0)
    x = torch.randn(3, tokens, WIDTH, device="cuda").to(getattr(torch, dtype))
    planes = x.float().cpu().numpy()
    expected = planes[0].copy()
    expected[:, 1:h * 3:3] = planes[1][:, 1:h * 3:3]
    expected[:, 2:w * 3:3] = planes[2][:, 2:w * 3:3]
    got = function(x, h, w).float().cpu().numpy()
    other = int((got != expected).sum())
    columns = sorted(set((got != expected).nonzero()[1].tolist()))
    print("columns with other elements:", columns)
    if other:
        raise WrongResult("expected the copied elements, got {} of {} other ones, in {} of {} columns, tolerance 0".format(
            other, expected.size, len(columns), WIDTH))
    return {"elements": expected.size, "sum": float(got.sum()), "gpu": torch.cuda.get_device_name()}


def control(tokens=8192, dtype="bfloat16", h=20, w=20):
    """Not compiled."""
    return _compare(_interleave, tokens, dtype, h, w)


def baseline(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_interleave), tokens, dtype, h, w)


def mask_where(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_by_masks), tokens, dtype, h, w)


def gather_planes(tokens=8192, dtype="bfloat16", h=20, w=20):
    """The index is made outside of what is compiled."""
    plane = torch.zeros(WIDTH, dtype=torch.int64, device="cuda")
    plane[1:h * 3:3] = 1
    plane[2:w * 3:3] = 2

    def by_index(x, plane):
        return x.gather(0, plane.expand(1, *x.shape[1:]))[0]

    compiled = torch.compile(by_index)
    return _compare(lambda x, h, w: compiled(x, plane), tokens, dtype, h, w)


def no_llvm_optimisation(tokens=8192, dtype="bfloat16", h=20, w=20):
    """ENV switches LLVM's passes off, the vectoriser among them."""
    return _compare(torch.compile(_interleave), tokens, dtype, h, w)


def aot_eager(tokens=8192, dtype="bfloat16", h=20, w=20):
    return _compare(torch.compile(_interleave, backend="aot_eager"), tokens, dtype, h, w)


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
