"""fla-160-deltanet: Flash Linear Attention's own DeltaNet layer under torch.compile, at a second batch size.

The layer of the released package is compiled and called with batches of 2, 3 and 5. The release keeps the function that
launches the recurrent kernel out of the graph; the baseline takes that away, as the package had it in git until the days
of the report.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import importlib.metadata
import sys
import types

import torch

SIGNATURE = r"NameError: name 's\d+' is not defined"

BATCHES = (2, 3, 5)
LENGTH, WIDTH, HEADS = 16, 64, 2


class WrongResult(Exception):
    """The layer ran, and its numbers are wrong."""


def _module():
    """The module of the layer, without the package's models, which want transformers and more."""
    if "fla" not in sys.modules:
        for name in ("fla", "fla.layers"):
            sys.modules[name] = types.ModuleType(name)
            folder = importlib.metadata.distribution("flash-linear-attention").locate_file(name.replace(".", "/"))
            sys.modules[name].__path__ = [str(folder)]
    import fla.layers.delta_net as delta_net

    return delta_net


def _layer(released):
    """DeltaNet with the convolutions of PyTorch; `released` leaves its recurrent kernel out of the graph, as published."""
    delta_net = _module()
    convolution = delta_net.ShortConvolution
    delta_net.ShortConvolution = lambda **options: convolution(use_fast_conv1d=False, **options)
    if not released:
        published = delta_net.fused_recurrent_delta_rule
        delta_net.fused_recurrent_delta_rule = getattr(published, "_torchdynamo_orig_callable", published)
    torch.manual_seed(0)
    return delta_net.DeltaNet(mode="fused_recurrent", hidden_size=WIDTH, num_heads=HEADS).to("cuda").eval()


def _run(how, released=False, prepare=lambda x: x):
    layer = _layer(released)
    compiled = how(layer)
    observed = {}
    with torch.no_grad():
        for batch in BATCHES:
            x = torch.randn(batch, LENGTH, WIDTH, device="cuda")
            expected = layer(x)[0]
            got = compiled(prepare(x))[0]
            torch.cuda.synchronize()
            worst = ((got - expected).abs().max() / expected.abs().max()).item()
            if not worst <= 0.001:
                raise WrongResult("expected the layer uncompiled, got values {} apart, tolerance 0.001".format(worst))
            print("batch", batch, "is right")
            observed["size of batch %d" % batch] = got.double().square().mean().sqrt().item()
    return observed


def control():
    """Not compiled: the package and Triton alone."""
    return _run(lambda layer: layer)


def baseline():
    return _run(torch.compile)


def released_decorator():
    """The package as it is published: torch.compiler.disable on fused_recurrent_delta_rule."""
    return _run(torch.compile, released=True)


def dynamic_false():
    """Every shape is compiled anew."""
    return _run(lambda layer: torch.compile(layer, dynamic=False))


def mark_static():
    """The batch size of this input is never made symbolic."""

    def mark(x):
        torch._dynamo.mark_static(x, 0)
        return x

    return _run(torch.compile, prepare=mark)


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
