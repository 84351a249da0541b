"""triton-7181: an autotuned kernel's reset_to_zero is not applied once it is tuned.

A kernel that adds one to every element is launched three times; each time the elements are expected to be one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"expected 1\.0 after each launch, got \[[\d., ]+\]"

SIZE = 1000


class WrongResult(Exception):
    """The kernel ran, and added to what an earlier launch left."""


@triton.jit
def _add_one(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


def _zero(arguments):
    arguments["x_ptr"].zero_()


def _tuned(hook=None, **options):
    configs = [triton.Config({"BLOCK": block}, num_warps=4, pre_hook=hook) for block in (128, 256)]
    return triton.autotune(configs=configs, key=["n"], **options)(_add_one)


def _grid(meta):
    return (triton.cdiv(SIZE, meta["BLOCK"]),)


def _observe(launch):
    """Call `launch(x)` three times with the same tensor and look at it after each."""
    x = torch.zeros(SIZE, device="cuda")
    values = []
    for _ in range(3):
        launch(x)
        torch.cuda.synchronize()
        low, high = x.min().item(), x.max().item()
        values.append(low if low == high else float("nan"))
    print("values after each launch:", values)
    if values != [1.0, 1.0, 1.0]:
        raise WrongResult("expected 1.0 after each launch, got {}, tolerance 0".format(values))
    return {"values": values, "triton": triton.__version__}


def control():
    """PyTorch in place of the kernel."""
    return _observe(lambda x: x.zero_().add_(1.0))


def baseline():
    kernel = _tuned(reset_to_zero=["x_ptr"])
    return _observe(lambda x: kernel[_grid](x, SIZE))


def config_pre_hook():
    """The configurations' own hook zeroes."""
    kernel = _tuned(_zero)
    return _observe(lambda x: kernel[_grid](x, SIZE))


def zero_before_call():
    """The caller zeroes; the option is there for the trials."""
    kernel = _tuned(reset_to_zero=["x_ptr"])

    def launch(x):
        x.zero_()
        kernel[_grid](x, SIZE)

    return _observe(launch)


def no_autotune():
    """One configuration, and the caller zeroes."""

    def launch(x):
        x.zero_()
        _add_one[(triton.cdiv(SIZE, 256),)](x, SIZE, BLOCK=256)

    return _observe(launch)


def restore_value():
    """The trials leave no trace; the launches do."""
    kernel = _tuned(restore_value=["x_ptr"])
    return _observe(lambda x: kernel[_grid](x, SIZE))


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
