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


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
