"""pytorch-185382: a compiled loop over optimizer steps with .item() updates the parameter wrongly.

Steps of Adam written out, each with a graph break where it reads the step's number, in a loop inside of what is
compiled. After six steps the parameter must be that of the same loop in float64.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the parameter of Adam in float64, got one that is"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _step(param, grad, first, second, count):
    count.add_(1)
    first.mul_(0.9).add_(grad, alpha=0.1)
    second.mul_(0.999).addcmul_(grad, grad, value=0.001)
    done = count.item()  # the graph breaks here
    size = 0.001 / (1 - 0.9 ** done)
    root = (second.sqrt() / (1 - 0.999 ** done) ** 0.5).add_(1e-8)
    param.addcdiv_(first, root, value=-size)


def _train(param, grad):
    first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
    for _ in range(6):
        _step(param, grad, first, second, count)
    return param


def _step_without_item(param, grad, first, second, count):
    count.add_(1)
    first.mul_(0.9).add_(grad, alpha=0.1)
    second.mul_(0.999).addcmul_(grad, grad, value=0.001)
    size = 0.001 / (1 - 0.9 ** count)
    root = (second.sqrt() / (1 - 0.999 ** count) ** 0.5).add_(1e-8)
    param.sub_(size * first / root)


def _train_without_item(param, grad):
    first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
    for _ in range(6):
        _step_without_item(param, grad, first, second, count)
    return param


def _looped(step):
    """The same loop outside of what is compiled."""

    def train(param, grad):
        first, second, count = torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
        for _ in range(6):
            step(param, grad, first, second, count)
        return param

    return train


def _observe(train):
    generator = torch.Generator().manual_seed(0)
    param, grad = torch.randn(32, generator=generator), torch.randn(32, generator=generator)
    with torch.no_grad():
        expected, got = _train(param.double(), grad.double()), train(param.clone(), grad)
    off = float((got - expected).abs().max())
    if not off < 1e-4:
        raise WrongResult("expected the parameter of Adam in float64, got one that is {:.3g} off "
                          "(tolerance 1e-4)".format(off))
    return {"first": got[:8].tolist(), "sum": float(got.double().sum())}


def control(loop=True):
    return _observe(_train)


def baseline(loop=True):
    return _observe(torch.compile(_train) if loop else _looped(torch.compile(_step)))


def no_item(loop=True):
    """The step's number stays a tensor: no graph break, and no number that a graph takes in."""
    compiled = torch.compile(_train_without_item) if loop else _looped(torch.compile(_step_without_item))
    return _observe(compiled)


def static(loop=True):
    """Each number is compiled in, and another one compiles anew."""
    return _observe(torch.compile(_train, dynamic=False) if loop else _looped(torch.compile(_step, dynamic=False)))


def aot_eager(loop=True):
    compiled = torch.compile(_train, backend="aot_eager") if loop else _looped(torch.compile(_step, backend="aot_eager"))
    return _observe(compiled)


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
