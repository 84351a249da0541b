"""pytorch-170398: a user's Triton kernel whose name begins with two underscores is not found in Inductor's own module.

A kernel doubles a vector inside a compiled function. Since torch 2.9 the call stands inside a class, where Python
reads the name __twice_0 as _Runner__twice_0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name '_Runner__\w+' is not defined"

SIZE, BLOCK = 1000, 256


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.jit
def __twice(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@triton.jit
def __twice__(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@triton.jit
def _twice(x, y, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


_same_kernel = __twice


def _launch(x):
    y = torch.empty_like(x)
    __twice[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_renamed(x):
    y = torch.empty_like(x)
    _twice[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_trailing(x):
    y = torch.empty_like(x)
    __twice__[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _launch_alias(x):
    y = torch.empty_like(x)
    _same_kernel[(triton.cdiv(SIZE, BLOCK),)](x, y, SIZE, BLOCK)
    return y


def _observe(launch, how):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda")
    got = how(lambda t: launch(t + 1) - 1)(x)  # what surrounds the kernel gives Inductor something to write, too
    torch.cuda.synchronize()
    expected = (x + 1) * 2 - 1
    if not torch.allclose(got, expected, atol=1e-6):
        worst = (got - expected).abs().max().item()
        raise WrongResult("expected (x + 1) * 2 - 1, got values {} apart, tolerance 1e-6".format(worst))
    return {"sum": float(got.double().sum()), "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _observe(_launch, lambda function: function)


def baseline():
    return _observe(_launch, torch.compile)


def renamed():
    """One leading underscore is never mangled."""
    return _observe(_launch_renamed, torch.compile)


def trailing_underscores():
    """Inductor adds a number behind the trailing underscores."""
    return _observe(_launch_trailing, torch.compile)


def alias():
    """The kernel is the same function with the same name."""
    return _observe(_launch_alias, torch.compile)


def no_partition():
    """The calls stand outside of any class."""
    return _observe(_launch, lambda function: torch.compile(function, options={"graph_partition": False}))


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
