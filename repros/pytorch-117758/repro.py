"""pytorch-117758: forward hooks registered after the first compiled call are ignored.

A small model is compiled and called once; then a forward hook that doubles the output is registered on its first layer.
The hook must run in the next call, and the output must be doubled.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \d+ calls? of the hook, got \d+"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _model():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(0.25)
        model[0].bias.zero_()
    return model


def _register(model, calls):
    @torch._dynamo.disable
    def hook(module, args, output):
        calls.append(1)
        return output * 2

    return model[0].register_forward_hook(hook)


def _check(model, calls):
    """One call, after which the hook must have run once more."""
    del calls[:]
    output = model(torch.ones(1, 4)).flatten().tolist()
    if len(calls) != 1:
        raise WrongResult("expected 1 call of the hook, got {}".format(len(calls)))
    if output != [2.0] * 4:
        raise WrongResult("expected an output of 2 everywhere, got {} (tolerance 0)".format(output))
    return {"calls": len(calls), "output": output}


def _late(compiler, then=lambda model: None):
    """Call, register a hook, do `then`, call what that gives."""
    model, calls = _model(), []
    compiled = compiler(model)
    compiled(torch.ones(1, 4))
    _register(model, calls)
    return _check(then(model) or compiled, calls)


def _compile(model):
    return torch.compile(model, backend="eager")


def control():
    return _late(lambda model: model)


def baseline():
    return _late(_compile)


def hook_guards():
    torch._dynamo.config.skip_nnmodule_hook_guards = False
    return _late(_compile)


def hook_first():
    model, calls = _model(), []
    _register(model, calls)
    compiled = _compile(lambda x: model(x * 1.0))  # the hook is not compiled, and breaks the graph after the product
    compiled(torch.ones(1, 4))
    return _check(compiled, calls)


def reset_after():
    return _late(_compile, lambda model: torch._dynamo.reset())


def guard_nn_modules():
    torch._dynamo.config.guard_nn_modules = True
    return _late(_compile)


def wrap_again():
    """A second torch.compile of the same model, after the hook is there."""
    return _late(_compile, _compile)


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
