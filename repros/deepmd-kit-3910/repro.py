"""deepmd-kit-3910: a C++ operator reads a gradient as if its rows lay one after another, and autograd's do not.

Like DeePMD-kit's border_op: forward sends some rows of a feature matrix, backward adds up what comes back for them.
A small operator library is compiled with this machine's C++ compiler; arms differ in how it reads its matrices.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import pathlib
import subprocess
import tempfile

import torch

SIGNATURE = r"expected the (gradient|rows) to be \S+ at \(\d+, \d+\), got \S+, tolerance"

# TAKE_FEATURES and TAKE_GRADIENT are how the forward and the backward operator take their matrix.
LIBRARY = r"""
#include <torch/library.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

struct Matrix {
  at::Tensor owner;
  const float* first;
  int64_t row, column;  // the steps from one to the next
};

Matrix as_if_contiguous(const at::Tensor& t) { return {t, t.data_ptr<float>(), t.size(1), 1}; }
Matrix made_contiguous(const at::Tensor& t) { return as_if_contiguous(t.contiguous()); }
Matrix by_strides(const at::Tensor& t) { return {t, t.data_ptr<float>(), t.stride(0), t.stride(1)}; }
Matrix checked(const at::Tensor& t) {
  TORCH_CHECK(t.is_contiguous(), "border: the matrix must be contiguous, its strides are ", t.strides());
  return as_if_contiguous(t);
}

at::Tensor gather(const at::Tensor& features, const at::Tensor& sent) {
  const Matrix from = TAKE_FEATURES(features);
  const int64_t count = sent.size(0), width = features.size(1);
  at::Tensor rows = at::empty({count, width}, features.options());
  const int64_t* index = sent.data_ptr<int64_t>();
  float* to = rows.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < width; ++j) to[i * width + j] = from.first[index[i] * from.row + j * from.column];
  return rows;
}

at::Tensor scatter(const at::Tensor& gradient, const at::Tensor& sent, int64_t count) {
  const Matrix from = TAKE_GRADIENT(gradient);
  const int64_t width = gradient.size(1);
  at::Tensor sums = at::zeros({count, width}, gradient.options());
  const int64_t* index = sent.data_ptr<int64_t>();
  float* to = sums.data_ptr<float>();
  for (int64_t i = 0; i < sent.size(0); ++i)
    for (int64_t j = 0; j < width; ++j) to[index[i] * width + j] += from.first[i * from.row + j * from.column];
  return sums;
}

TORCH_LIBRARY(border, library) {
  library.def("gather(Tensor features, Tensor sent) -> Tensor", &gather);
  library.def("scatter(Tensor gradient, Tensor sent, int count) -> Tensor", &scatter);
}
"""


class WrongResult(Exception):
    """The operator returned without an error, and its numbers are wrong."""


def _load(take_features, take_gradient):
    """Compile the library and load it. Few headers and -O0: six seconds instead of forty."""
    torch_folder = pathlib.Path(torch.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, "border.cpp"), pathlib.Path(folder, "border.so")
        source.write_text(LIBRARY)
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O0", "-w", "-shared", "-fPIC", str(source)]
        command += ["-DTAKE_FEATURES=" + take_features, "-DTAKE_GRADIENT=" + take_gradient]
        command += ["-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi()]
        command += ["-I" + str(torch_folder / "include"), "-L" + str(torch_folder / "lib"), "-ltorch_cpu", "-lc10"]
        subprocess.run([*command, "-o", str(library)], check=True)
        torch.ops.load_library(str(library))


class _Border(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, sent):
        ctx.save_for_backward(sent)
        ctx.count = features.size(0)
        return torch.ops.border.gather(features, sent)

    @staticmethod
    def backward(ctx, gradient):
        print("backward is given a gradient of shape", tuple(gradient.shape), "and strides", gradient.stride())
        (sent,) = ctx.saved_tensors
        return torch.ops.border.scatter(gradient, sent, ctx.count), None


def _contiguous_around(features, sent):
    """The operator, given contiguous matrices only: features in the call, the gradient by a hook."""
    rows = _Border.apply(features.contiguous(), sent)
    rows.register_hook(lambda gradient: gradient.contiguous())
    return rows


def _compare(what, got, expected):
    apart = ((got - expected).abs() > 1e-6).nonzero()
    if len(apart):
        i, j = apart[0].tolist()
        text = "expected the {} to be {:.6f} at ({}, {}), got {:.6f}, tolerance 1e-06"
        raise WrongResult(text.format(what, expected[i, j].item(), i, j, got[i, j].item()))


def _run(send, transposed):
    """Send four of six rows, and pull the gradient back through a loss. `transposed` is what is not contiguous."""
    torch.manual_seed(0)
    features, weights = torch.randn(6, 5), torch.randn(4, 5)
    sent = torch.tensor([2, 0, 3, 5])
    given = features.t().contiguous().t() if transposed == "features" else features.clone()
    given.requires_grad_()
    rows = send(given, sent)
    _compare("rows", rows.detach(), features[sent])
    if transposed == "gradient":
        loss = (rows.t() * weights.t().contiguous()).sum()
    else:
        loss = (rows * weights).sum()
    loss.backward()
    _compare("gradient", given.grad, torch.zeros(6, 5).index_add_(0, sent, weights))
    return {"transposed": transposed, "rows_sum": float(rows.sum()), "gradient_sum": float(given.grad.sum())}


def control(transposed="gradient"):
    """torch's own operator for it."""
    return _run(lambda features, sent: features.index_select(0, sent), transposed)


def baseline(transposed="gradient"):
    _load("as_if_contiguous", "as_if_contiguous")
    return _run(_Border.apply, transposed)


def upstream_fix(transposed="gradient"):
    """What PR #3917 did: the gradient only."""
    _load("as_if_contiguous", "made_contiguous")
    return _run(_Border.apply, transposed)


def op_contiguous(transposed="gradient"):
    """The same for every matrix the operators take."""
    _load("made_contiguous", "made_contiguous")
    return _run(_Border.apply, transposed)


def use_strides(transposed="gradient"):
    _load("by_strides", "by_strides")
    return _run(_Border.apply, transposed)


def caller_contiguous(transposed="gradient"):
    """The operators stay as they are."""
    _load("as_if_contiguous", "as_if_contiguous")
    return _run(_contiguous_around, transposed)


def check(transposed="gradient"):
    """The operators refuse what they would misread."""
    _load("checked", "checked")
    return _run(_Border.apply, transposed)


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
