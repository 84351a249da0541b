"""unsloth-4001: Inductor of torch 2.9 looks for cluster_dims where Triton 3.6.0 has none.

A function is compiled that launches a user's Triton kernel, or one without; its result is compared with eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"'KernelMetadata' object has no attribute 'cluster_dims"

SIZE = 1024


class WrongResult(Exception):
    """The kernels ran, and their numbers are wrong."""


@triton.jit
def _double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


def _with_user_kernel(x):
    x = x.sin() + 1
    y = torch.empty_like(x)
    _double[(SIZE // 256,)](x, y, SIZE, BLOCK=256)
    return y - 1


def _with_own_kernel(x):
    return (x.sin() + 1) * 2 - 1


def _compare(how, user_kernel):
    torch.manual_seed(0)
    x = torch.randn(SIZE, device="cuda")
    expected = (x.sin() + 1) * 2 - 1
    got = how(_with_user_kernel if user_kernel else _with_own_kernel)(x)
    torch.cuda.synchronize()
    apart = (got - expected).abs().max().item()
    if not apart <= 1e-5:
        raise WrongResult("expected (sin(x) + 1) * 2 - 1, got values {} apart, tolerance 1e-5".format(apart))
    return {"apart": apart, "triton": triton.__version__, "torch": torch.__version__}


def control(user_kernel=True):
    """Not compiled."""
    return _compare(lambda function: function, user_kernel)


def baseline(user_kernel=True):
    return _compare(torch.compile, user_kernel)


def give_attributes(user_kernel=True):
    """Patch Triton in this process."""
    from triton.compiler.compiler import CompiledKernel

    original = CompiledKernel.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if not hasattr(self.metadata, "cluster_dims"):
            self.num_ctas = getattr(self.metadata, "num_ctas", 1)
            self.cluster_dims = (1, 1, 1)

    CompiledKernel.__init__ = init
    return _compare(torch.compile, user_kernel)


def aot_eager(user_kernel=True):
    return _compare(lambda function: torch.compile(function, backend="aot_eager"), user_kernel)


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
