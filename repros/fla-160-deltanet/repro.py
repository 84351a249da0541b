"""fla-160-deltanet: Flash Linear Attention's own DeltaNet layer under torch.compile, at a second batch size.

The layer of the released package is compiled and called with batches of 2, 3 and 5. The release keeps the function that
launches the recurrent kernel out of the graph; the baseline takes that away, as the package had it in git until the days
of the report.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import importlib.metadata
import sys
import types

import torch

SIGNATURE = r"NameError: name 's\d+' is not defined"

BATCHES = (2, 3, 5)
LENGTH, WIDTH, HEADS = 16, 64, 2


class WrongResult(Exception):
    """The layer ran, and its numbers are wrong."""


def _module():
    """The module of the layer, without the package's models, which want transformers and more."""
    if "fla" not in sys.modules:
        for name in ("fla", "fla.layers"):
            sys.modules[name] = types.ModuleType(name)
            folder = importlib.metadata.distribution("flash-linear-attention").locate_file(name.replace(".", "/"))
            sys.modules[name].__path__ = [str(folder)]
    import fla.layers.delta_net as delta_net

    return delta_net


def _layer(released):
    """DeltaNet with the convolutions of PyTorch; `released` leaves its recurrent kernel out of the graph, as published."""
    delta_net = _module()
    convolution = delta_net.ShortConvolution
    delta_net.ShortConvolution = lambda **options: convolution(use_fast_conv1d=False, **options)
    if not released:
        published = delta_net.fused_recurrent_delta_rule
        delta_net.fused_recurrent_delta_rule = getattr(published, "_torchdynamo_orig_callable", published)
    torch.manual_seed(0)
    return delta_net.DeltaNet(mode="fused_recurrent", hidden_size=WIDTH, num_heads=HEADS).to("cuda").eval()


def _run(how, released=False, prepare=lambda x: x):
    layer = _layer(released)
    compiled = how(layer)
    observed = {}
    with torch.no_grad():
        for batch in BATCHES:
            x = torch.randn(batch, LENGTH, WIDTH, device="cuda")
            expected = layer(x)[0]
            got = compiled(prepare(x))[0]
            torch.cuda.synchronize()
            worst = ((got - expected).abs().max() / expected.abs().max()).item()
            if not worst <= 0.001:
                raise WrongResult("expected the layer uncompiled, got values {} apart, tolerance 0.001".format(worst))
            print("batch", batch, "is right")
            observed["size of batch %d" % batch] = got.double().square().mean().sqrt().item()
    return observed


def control():
    """Not compiled: the package and Triton alone."""
    return _run(lambda layer: layer)


def baseline():
    return _run(torch.compile)


def released_decorator():
    """The package as it is published: torch.compiler.disable on fused_recurrent_delta_rule."""
    return _run(torch.compile, released=True)


def dynamic_false():
    """Every shape is compiled anew."""
    return _run(lambda layer: torch.compile(layer, dynamic=False))


def mark_static():
    """The batch size of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile, prepare=mark)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
