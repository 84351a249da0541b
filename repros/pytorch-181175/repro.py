"""pytorch-181175: torch.func.grad through a convolution cannot be compiled with dynamic shapes.

The gradient of the sum of a ConvTranspose2d with respect to its input, in eager mode and compiled with dynamic=True.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Cannot call numel\(\) on tensor with symbolic sizes/strides"

_LAYERS = {"transposed": torch.nn.ConvTranspose2d, "plain": torch.nn.Conv2d}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _layer(kind):
    layer = _LAYERS[kind](2, 2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(36.0).reshape(2, 2, 3, 3) / 36)
    return layer


def _expected(layer, x):
    x = x.clone().requires_grad_()
    layer(x).sum().backward()
    layer.zero_grad()
    return x.grad


def _observe(function, layer):
    x = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
    expected, got = _expected(layer, x), function(x)
    if not torch.allclose(got, expected, rtol=1e-4, atol=1e-5):
        raise WrongResult("expected the gradient {}, got {}, tolerance 1e-4".format(expected.tolist(), got.tolist()))
    return {"sum": got.sum().item(), "first": got[0, 0, 0].tolist(), "last": got[0, 1, 3].tolist()}


def _gradient(layer):
    def _suspect(x):
        return torch.func.grad(lambda y: layer(y).sum())(x)

    return _suspect


def control(kind="transposed"):
    layer = _layer(kind)
    return _observe(_gradient(layer), layer)


def baseline(kind="transposed"):
    layer = _layer(kind)
    return _observe(torch.compile(_gradient(layer), backend="aot_eager", dynamic=True), layer)


def static_shapes(kind="transposed"):
    """Sizes are numbers."""
    layer = _layer(kind)
    return _observe(torch.compile(_gradient(layer), backend="aot_eager", dynamic=False), layer)


def frozen(kind="transposed"):
    """Without parameters that require gradients nothing is differentiated twice."""
    layer = _layer(kind)
    frozen = _layer(kind).requires_grad_(False)
    return _observe(torch.compile(_gradient(frozen), backend="aot_eager", dynamic=True), layer)


def no_grad(kind="transposed"):
    """torch.func.grad differentiates inside of no_grad too; what comes out is not differentiated again."""
    layer = _layer(kind)
    compiled = torch.compile(_gradient(layer), backend="aot_eager", dynamic=True)

    def _guarded(x):
        with torch.no_grad():
            return compiled(x)

    return _observe(_guarded, layer)


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
