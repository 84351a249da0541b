"""pytorch-190796: a fused reduction corrupts the gradient of a convolution's bias under bf16 autocast.

The residual block of a diffusion U-Net runs forward and backward, in eager mode and compiled; the gradient of the bias
is compared with float32 in eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected conv\.bias\.grad \(largest \S+\), got values up to \S+ apart"

ENV = {"mix_order_off": {"TORCHINDUCTOR_MIX_ORDER_REDUCTION": "0"}}

TOLERANCE = 0.1  # of the largest gradient; bfloat16 is good for 0.01


class WrongResult(Exception):
    """The backward pass ended without an error and with a wrong gradient."""


class _Block(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.proj = torch.nn.Linear(4 * channels, channels)

    def forward(self, x, temb):
        return self.conv(x) + self.proj(torch.nn.functional.silu(temb))[:, :, None, None]


def _bias_gradient(block, called, x, temb, autocast):
    block.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        y = called(x, temb)
    (y.float().square().sum() / x.shape[0]).backward()
    return block.conv.bias.grad.float().clone()


def _compare(how, batch, channels, side, autocast=True):
    torch.manual_seed(0)
    block = _Block(channels).cuda()
    x = torch.randn(batch, channels, side, side, device="cuda")
    temb = torch.randn(batch, 4 * channels, device="cuda")
    expected = _bias_gradient(block, block, x, temb, False)
    called = how(block)
    largest = expected.abs().max().item()
    worst = 0.0
    for step in range(3):
        got = _bias_gradient(block, called, x, temb, autocast)
        torch.cuda.synchronize()
        apart = (got - expected).abs().nan_to_num(nan=float("inf")).max().item()
        print("step", step, "largest gradient", largest, "apart", apart)
        worst = max(worst, apart)
    if not worst <= TOLERANCE * largest:
        raise WrongResult("expected conv.bias.grad (largest {}), got values up to {} apart, tolerance {} of the largest".format(
            largest, worst, TOLERANCE))
    return {"largest gradient": largest, "worst difference": worst, "gpu": torch.cuda.get_device_name()}


def control(batch=128, channels=128, side=32):
    """Not compiled, with autocast."""
    return _compare(lambda block: block, batch, channels, side)


def baseline(batch=128, channels=128, side=32):
    return _compare(torch.compile, batch, channels, side)


def mix_order_off(batch=128, channels=128, side=32):
    """ENV keeps reductions over different dimensions in kernels of their own."""
    return _compare(torch.compile, batch, channels, side)


def no_autocast(batch=128, channels=128, side=32):
    """Compiled, in float32."""
    return _compare(torch.compile, batch, channels, side, autocast=False)


def aot_eager(batch=128, channels=128, side=32):
    return _compare(lambda block: torch.compile(block, backend="aot_eager"), batch, channels, side)


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
