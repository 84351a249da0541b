"""pytorch-136504: a size that became symbolic is handed to a `tl.constexpr` of a user's Triton kernel.

The report's kernel squares a vector and takes the number of elements as a constant. It is compiled with its launcher
and called with two lengths; from the second call on, torch 2.5 writes a module that names the undefined variable s0.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name 's\d+' is not defined"

BLOCK = 256
LENGTHS = (2 * 256 + 5, 3 * 256 + 7, 4 * 256 + 9)


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.jit
def _square(x, y, NUMEL: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < NUMEL)
    tl.store(y + at, value * value, at < NUMEL)


@triton.jit
def _square_of_any_length(x, y, numel, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + at, at < numel)
    tl.store(y + at, value * value, at < numel)


def _launch(x):
    y = torch.empty_like(x)
    numel = x.numel()
    _square[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _launch_int(x):
    y = torch.empty_like(x)
    numel = int(x.numel())
    _square[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _launch_any_length(x):
    y = torch.empty_like(x)
    numel = x.numel()
    _square_of_any_length[(triton.cdiv(numel, BLOCK),)](x, y, numel, BLOCK)
    return y


def _step(launch):
    """What surrounds the kernel in a model, so that the compiler has something to do in every arm."""
    return lambda x: launch(x + 1) - 1


def _run(step, prepare=lambda x: x):
    torch.manual_seed(0)
    total = 0.0
    for length in LENGTHS:
        x = torch.randn(length, device="cuda")
        got = step(prepare(x))
        torch.cuda.synchronize()
        expected = (x + 1) ** 2 - 1
        if not torch.allclose(got, expected, atol=1e-5):
            worst = (got - expected).abs().max().item()
            raise WrongResult("expected (x + 1) ** 2 - 1, got values {} apart, tolerance 1e-5".format(worst))
        print("length", length, "is right")
        total += got.double().sum().item()
    return {"lengths": len(LENGTHS), "sum": total, "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _run(_step(_launch))


def baseline():
    return _run(torch.compile(_step(_launch)))


def runtime_arg():
    """The kernel takes the length when it runs."""
    return _run(torch.compile(_step(_launch_any_length)))


def dynamic_false():
    """Every length is compiled anew."""
    return _run(torch.compile(_step(_launch), dynamic=False))


def mark_static():
    """The length of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile(_step(_launch)), mark)


def compiler_disable():
    """The launcher stays out of the graph; what surrounds it is compiled."""
    return _run(torch.compile(_step(torch.compiler.disable(_launch))))


def int_of_it():
    """int() of a symbolic size is a symbolic size."""
    return _run(torch.compile(_step(_launch_int)))


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
