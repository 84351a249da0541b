"""pytorch-64529: the gradient of sum() is one number seen as many, and an operator that walks its memory reads others.

An operator triples five numbers; its backward takes the pointer of the gradient and walks it as if it were contiguous,
the way C++ and CUDA kernels do. The gradient that autograd hands it after sum() has stride 0: all five are one element.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import ctypes

import torch

SIGNATURE = r"expected the gradient \[3\.0, 3\.0, 3\.0, 3\.0, 3\.0\], got \[3\.0, (nan|21\.0), "

_library = torch.library.Library("walk", "DEF")
_library.define("triple(Tensor x) -> Tensor")
_library.define("triple_contiguous(Tensor x) -> Tensor")
_library.define("triple_strided(Tensor x) -> Tensor")


class WrongResult(Exception):
    """Backward ran without an error, and its numbers are wrong."""


def _memory(x):
    """The floats from the tensor's pointer to the end of its storage: what a kernel may read without leaving it."""
    count = (x.untyped_storage().nbytes() - x.storage_offset() * 4) // 4
    return (ctypes.c_float * count).from_address(x.data_ptr())


def _triple(x, stride=1):
    """Three times each element, read by pointer. What lies outside of the storage is not read: nan stands for it."""
    memory, result = _memory(x), torch.empty(x.numel())
    for i in range(x.numel()):
        result[i] = 3 * memory[i * stride] if i * stride < len(memory) else float("nan")
    return result


_library.impl("triple", _triple, "CPU")
_library.impl("triple_contiguous", lambda x: _triple(x.contiguous()), "CPU")
_library.impl("triple_strided", lambda x: _triple(x, x.stride(0)), "CPU")


class _Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, backward_operator):
        ctx.backward_operator = backward_operator
        return torch.ops.walk.triple(x)

    @staticmethod
    def backward(ctx, gradient):
        print("backward is given strides", gradient.stride(), "contiguous:", gradient.is_contiguous(),
              "elements of its storage:", gradient.untyped_storage().nbytes() // 4)
        return ctx.backward_operator(gradient), None


def _loss_gradient(storage):
    """What backward() begins with: a 1 that is alone in its storage, as by default, or one with others behind it."""
    if storage == "alone":
        return torch.ones(1)[0]
    return torch.tensor([1.0] + [7.0] * 7)[0]


def _run(operation, storage, reduce=torch.sum):
    x = torch.arange(1.0, 6.0, requires_grad=True)
    y = operation(x)
    reduce(y).backward(_loss_gradient(storage))
    forward, gradient = y.detach().tolist(), x.grad.tolist()
    if forward != [3.0, 6.0, 9.0, 12.0, 15.0]:
        raise WrongResult("expected the forward [3.0, 6.0, 9.0, 12.0, 15.0], got {}".format(forward))
    if any(abs(value - 3.0) > 1e-6 or value != value for value in gradient):
        raise WrongResult("expected the gradient {}, got {}".format([3.0] * 5, gradient))
    return {"forward": forward, "gradient": gradient}


def control(storage="alone"):
    """torch's own multiplication, which goes by strides."""
    return _run(lambda x: x * 3, storage)


def baseline(storage="alone"):
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple), storage)


def op_contiguous(storage="alone"):
    """The operator of backward makes its gradient contiguous first."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple_contiguous), storage)


def use_strides(storage="alone"):
    """The operator of backward steps by the gradient's stride, which is 0."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple_strided), storage)


def hook(storage="alone"):
    """The operator stays as it is; a hook on its result makes the gradient contiguous on its way there."""
    def hooked(x):
        y = _Triple.apply(x, torch.ops.walk.triple)
        y.register_hook(lambda gradient: gradient.contiguous())
        return y

    return _run(hooked, storage)


def dot(storage="alone"):
    """A dot product with ones is the same sum, and its gradient is computed instead of expanded."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple), storage, lambda y: torch.dot(y, torch.ones_like(y)))


def clone(storage="alone"):
    """A copy of the result before sum(): its backward hands the same expanded gradient on."""
    return _run(lambda x: _Triple.apply(x, torch.ops.walk.triple).clone(), storage)


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
