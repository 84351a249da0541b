"""pytorch-177406: conv3d of bfloat16 tensors takes the memory of an unfolded input, because cuDNN is not asked.

A 3-D convolution of the kind that video autoencoders are made of, by the functional call and by cuDNN's own operator. The
script measures the most device memory that is allocated while a call runs, its input not counted.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r""

CHANNELS, DEPTH, HEIGHT, WIDTH = 64, 8, 256, 256


def _functional(x, weight, bias):
    return torch.nn.functional.conv3d(x, weight, bias, padding=1)


def _by_cudnn(x, weight, bias):
    result = torch.cudnn_convolution(
        x, weight, padding=(1, 1, 1), stride=(1, 1, 1), dilation=(1, 1, 1), groups=1,
        benchmark=False, deterministic=False, allow_tf32=True)
    return result.add_(bias.view(1, -1, 1, 1, 1))


def _by_slices(x, weight, bias):
    """The kernel's three slices in depth are 2-D convolutions of the frames before, at and after each frame."""
    batch, channels, depth, height, width = x.shape
    result = bias.view(1, -1, 1, 1, 1).repeat(batch, 1, depth, height, width)
    for tap in range(3):
        first, last = max(0, 1 - tap), min(depth, depth + 1 - tap)
        for frame in range(first, last):
            result[:, :, frame] += torch.nn.functional.conv2d(x[:, :, frame + tap - 1], weight[:, :, tap], padding=1)
    return result


def _observe(convolve):
    torch.manual_seed(0)
    options = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(1, CHANNELS, DEPTH, HEIGHT, WIDTH, **options)
    weight = torch.randn(CHANNELS, CHANNELS, 3, 3, 3, **options) / (27 * CHANNELS) ** 0.5
    bias = torch.ones(CHANNELS, **options)
    with torch.no_grad():
        convolve(x, weight, bias)  # handles and libraries are loaded
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = convolve(x, weight, bias)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
        return {"peak_bytes": peak, "mean": result.float().mean().item(), "spread": result.float().std().item()}


def control():
    """cuDNN's own operator, which asks no version first."""
    return _observe(_by_cudnn)


def baseline():
    return _observe(_functional)


def call_cudnn():
    return _observe(_by_cudnn)


def frame_by_frame():
    """2-D convolutions of single frames, added up."""
    return _observe(_by_slices)


def without_cudnn():
    """cuDNN switched off: what is unfolded is then the whole input, on every release."""
    torch.backends.cudnn.enabled = False
    return _observe(_functional)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
