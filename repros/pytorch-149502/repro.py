"""pytorch-149502: a global forward pre-hook is called once more for a compiled model, around the whole of it.

The hook adds 1 to the input of every module and counts its calls. Model and input are small; the output and the number
of calls must be those of the model that is not compiled. Only the second call counts: the first one compiles, and
tracing calls hooks too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
from torch.nn.modules.module import register_module_forward_pre_hook

SIGNATURE = r"expected the output [^fkx\n]* after \d+ calls of the hook, got [^fx\n]* after \d+ \(tolerance 1e-5\)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))


def _run(model, skip=()):
    seen = []

    def add_one(module, inputs):
        if isinstance(module, skip):
            return None
        seen.append(1)
        return (inputs[0] + 1.0,)

    handle = register_module_forward_pre_hook(add_one)
    try:
        with torch.no_grad():
            model(torch.arange(10.0).unsqueeze(0))
            seen.clear()
            return model(torch.arange(10.0).unsqueeze(0)), len(seen)
    finally:
        handle.remove()


def _judge(result, calls):
    expected, wanted = _run(_model())
    if not torch.allclose(expected, result, atol=1e-5) or calls != wanted:
        raise WrongResult("expected the output {} after {} calls of the hook, got {} after {} (tolerance 1e-5)".format(
            expected.tolist(), wanted, result.tolist(), calls))
    return {"output": result.tolist(), "calls": calls}


def control():
    return _judge(*_run(_model()))


def baseline():
    return _judge(*_run(torch.compile(_model(), backend="eager")))


def compile_in_place():
    model = _model()
    model.compile(backend="eager")
    return _judge(*_run(model))


def skip_wrapper():
    """The hook passes over the module that torch.compile returns."""
    from torch._dynamo.eval_frame import OptimizedModule

    return _judge(*_run(torch.compile(_model(), backend="eager"), skip=(OptimizedModule,)))


def module_hooks():
    """The same hook, registered on each module of the model."""
    model, seen = _model(), []

    def add_one(module, inputs):
        seen.append(1)
        return (inputs[0] + 1.0,)

    for module in list(model.modules()):
        module.register_forward_pre_hook(add_one)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        compiled(torch.arange(10.0).unsqueeze(0))
        seen.clear()
        return _judge(compiled(torch.arange(10.0).unsqueeze(0)), len(seen))


def compile_forward():
    """Only `forward` is compiled, and the hook of the model itself runs outside."""
    model = _model()
    model.forward = torch.compile(model.forward, backend="eager")
    return _judge(*_run(model))


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
