"""fla-160: a batch size that became symbolic reaches a `tl.constexpr` of a user's Triton kernel as the bare name s2.

A kernel with Flash Linear Attention's mix of heuristics and constexpr sizes scales rows; it is compiled with its launcher
and called with batches of 2, 3 and 5. From the second on, torch 2.5 writes a module that names a variable nobody defines.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import triton
import triton.language as tl

SIGNATURE = r"NameError: name 's\d+' is not defined"

BATCHES = (2, 3, 5)
WIDTH = 8


class WrongResult(Exception):
    """The kernel ran, and its numbers are wrong."""


@triton.heuristics({"USE_INITIAL_STATE": lambda arguments: arguments["h0"] is not None})
@triton.jit
def _scale_rows(x, y, h0, scale, B: tl.constexpr, T: tl.constexpr, USE_INITIAL_STATE: tl.constexpr):
    at = tl.program_id(0)
    tl.store(y + at, tl.load(x + at) * scale, mask=at < B * T)


@triton.jit
def _scale_rows_of_any_batch(x, y, scale, B, T):
    at = tl.program_id(0)
    tl.store(y + at, tl.load(x + at) * scale, mask=at < B * T)


def _launch(x):
    B, T = x.shape
    y = torch.empty_like(x)
    _scale_rows[(B * T,)](x, y, None, 2.0, B=B, T=T)
    return y


def _launch_any_batch(x):
    B, T = x.shape
    y = torch.empty_like(x)
    _scale_rows_of_any_batch[(B * T,)](x, y, 2.0, B, T)
    return y


def _layer(launch):
    """What surrounds the kernel in a model, so that the compiler has something to do in every arm."""
    return lambda x: launch(x + 1) - 1


def _run(layer, prepare=lambda x: x):
    torch.manual_seed(0)
    total = 0.0
    for batch in BATCHES:
        x = torch.randn(batch, WIDTH, device="cuda")
        got = layer(prepare(x))[:batch]
        torch.cuda.synchronize()
        expected = (x + 1) * 2 - 1
        if not torch.allclose(got, expected, atol=1e-6):
            worst = (got - expected).abs().max().item()
            raise WrongResult("expected (x + 1) * 2 - 1, got values {} apart, tolerance 1e-6".format(worst))
        print("batch", batch, "is right")
        total += got.double().sum().item()
    return {"batches": len(BATCHES), "sum": total, "gpu": torch.cuda.get_device_name()}


def control():
    """Not compiled: Triton alone."""
    return _run(_layer(_launch))


def baseline():
    return _run(torch.compile(_layer(_launch)))


def compiler_disable():
    """What Flash Linear Attention did: the launcher stays out of the graph."""
    return _run(torch.compile(_layer(torch.compiler.disable(_launch))))


def dynamic_false():
    """Every shape is compiled anew."""
    return _run(torch.compile(_layer(_launch), dynamic=False))


def mark_static():
    """The batch size of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile(_layer(_launch)), mark)


def runtime_arg():
    """The kernel takes its sizes when it runs."""
    return _run(torch.compile(_layer(_launch_any_batch)))


def pad_batch():
    """Every batch is padded to the largest one."""
    return _run(
        torch.compile(_layer(_launch)),
        lambda x: torch.nn.functional.pad(x, (0, 0, 0, max(BATCHES) - x.shape[0])),
    )


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
