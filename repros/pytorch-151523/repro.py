"""pytorch-151523: Inductor's C++ for Conv2d, hardshrink, view and mv is refused by g++, with any g++ and two threads.

The report's model, compiled for the CPU. What varies is what a reader of the thread suspects: the C++ compiler that
Inductor calls, and the number of threads. The result is held against the same model in double precision.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import shutil
import subprocess

import torch
import torch.nn.functional as F

SIGNATURE = r"(conflicting declaration|redeclaration of|redefinition of) .{0,80}tmp_acc\d+_arr"


class NotApplicable(Exception):
    """The compiler that the variant names is not on this machine."""


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, (1, 7), (2, 1))

    def forward(self, x, weight):
        x = F.hardshrink(self.conv(x), lambd=0)
        return torch.mv(weight, x.view(x.size(0), -1)[0])


def _compiler(name):
    """The first line that the compiler says of itself; asked before anything is compiled with it."""
    if not shutil.which(name):
        raise NotApplicable("there is no {} here".format(name))
    said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, check=True)
    return said.stdout.decode(errors="replace").splitlines()[0]


def _run(compiler, threads, how):
    version = _compiler(compiler)
    print("compiler:", version, "- threads:", threads)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x, weight = _Model().eval(), torch.randn(2, 3, 127, 255), torch.randn(10, 254976)
    with torch.no_grad():
        got = how(model)(x, weight)
        expected = model.double()(x.double(), weight.double())
    if not torch.allclose(got.double(), expected, atol=0.1, rtol=1e-3):
        raise WrongResult("expected {}, got {}, tolerance 0.1".format(expected.tolist(), got.tolist()))
    return {"result": got.tolist(), "threads": torch.get_num_threads(), "compiler": version}


def _inductor(compiler, **options):
    """torch.compile, with Inductor told which C++ compiler to call."""
    return lambda model: torch.compile(model, options={"cpp.cxx": (compiler,), **options})


def control(compiler="g++", threads=2):
    """Not compiled; the compiler is asked for, and not used."""
    return _run(compiler, threads, lambda model: model)


def baseline(compiler="g++", threads=2):
    return _run(compiler, threads, _inductor(compiler))


def cpp_threads_1(compiler="g++", threads=2):
    """Inductor splits nothing in this graph."""
    return _run(compiler, threads, _inductor(compiler, **{"cpp.threads": 1}))


def no_simd(compiler="g++", threads=2):
    """Without vectors there is no tail."""
    return _run(compiler, threads, _inductor(compiler, **{"cpp.simdlen": 0}))


def one_thread(compiler="g++", threads=2):
    """The whole process has one thread; `threads` is what it would have had."""
    return _run(compiler, 1, _inductor(compiler))


def aot_eager(compiler="g++", threads=2):
    """No C++ at all."""
    return _run(compiler, threads, lambda model: torch.compile(model, backend="aot_eager"))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
