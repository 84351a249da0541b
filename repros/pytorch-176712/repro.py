"""pytorch-176712: Inductor cannot write down a global of a user's Triton kernel that is a dtype.

Kernels that convert, or reinterpret, numbers to a dtype which they name without `tl.` before it. Each is launched
inside a compiled function; the result is compared with what torch computes.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl
from triton.language import core, float32, int32

SIGNATURE = (
    r"AttributeError: ('dtype' object has no attribute '__name__'|module 'triton\.language' has no attribute 'fp\d+')"
)

SIZE, BLOCK = 1000, 256

INT32 = tl.constexpr(tl.int32)
FLOAT32 = tl.constexpr(tl.float32)

_constexpr_function = getattr(triton, "constexpr_function", None)  # from Triton 3.5 on
_int_of_width = _constexpr_function(core.get_int_dtype) if _constexpr_function else None


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


class NotApplicable(Exception):
    """This Triton lacks what the variant is about."""


@triton.jit
def _to_int(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(int32), at < n)


@triton.jit
def _to_int_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(tl.int32), at < n)


@triton.jit
def _to_int_constexpr(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(INT32), at < n)


@triton.jit
def _to_float(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(float32) * 0.5, at < n)


@triton.jit
def _to_float_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(tl.float32) * 0.5, at < n)


@triton.jit
def _to_float_constexpr(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n).to(FLOAT32) * 0.5, at < n)


@triton.jit
def _bits(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < n)
    kind = _int_of_width(bitwidth=value.dtype.primitive_bitwidth, signed=True)
    tl.store(y + at, value.to(kind, bitcast=True), at < n)


@triton.jit
def _bits_qualified(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < n)
    if value.dtype.primitive_bitwidth == 32:
        bits = value.to(tl.int32, bitcast=True)
    else:
        bits = value.to(tl.int16, bitcast=True)
    tl.store(y + at, bits, at < n)


KERNELS = {
    "int32": {"bare": _to_int, "qualified": _to_int_qualified, "constexpr": _to_int_constexpr},
    "float32": {"bare": _to_float, "qualified": _to_float_qualified, "constexpr": _to_float_constexpr},
    "int_of_width": {"bare": _bits, "qualified": _bits_qualified},
}


def _launcher(case, form):
    """A function of a tensor that launches one of the kernels."""
    if case == "int_of_width" and _constexpr_function is None:
        raise NotApplicable("this Triton has no constexpr_function")
    kernel = KERNELS[case][form]
    dtype = torch.float32 if case == "float32" else torch.int32

    def launch(x):
        y = torch.empty_like(x, dtype=dtype)
        kernel[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
        return y

    return launch


def _observe(case, launch, how):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda") * 100
    x = x.to(torch.int32) if case == "float32" else x
    got = how(lambda t: launch(t + 1) * 2)(x)  # what surrounds the kernel gives Inductor something to write, too
    torch.cuda.synchronize()
    shifted = x + 1
    converted = {
        "int32": lambda: shifted.to(torch.int32),
        "float32": lambda: shifted.to(torch.float32) * 0.5,
        "int_of_width": lambda: shifted.view(torch.int32),
    }[case]()
    if not torch.equal(got, converted * 2):
        wrong = int((got != converted * 2).sum())
        raise WrongResult("expected {} equal elements, got {} other ones, tolerance 0".format(SIZE, wrong))
    return {"case": case, "sum": float(got.double().sum()), "gpu": torch.cuda.get_device_name()}


def control(case="int32"):
    """Not compiled: Triton alone."""
    return _observe(case, _launcher(case, "bare"), lambda function: function)


def baseline(case="int32"):
    return _observe(case, _launcher(case, "bare"), torch.compile)


def qualified(case="int32"):
    """Nothing but `tl` is a global of the kernel."""
    return _observe(case, _launcher(case, "qualified"), torch.compile)


def constexpr_global(case="int32"):
    """Inductor writes a constexpr down by its value."""
    return _observe(case, _launcher(case, "constexpr"), torch.compile)


def compiler_disable(case="int32"):
    """The launcher stays out of the graph; what surrounds it is compiled."""
    return _observe(case, torch.compiler.disable(_launcher(case, "bare")), torch.compile)


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
