"""pytorch-139257: a custom operator that gives a parameter new storage by set_() cannot be compiled.

An empty parameter gets the data of an intermediate, as lazy loading and sharded parameters do it. What the module then
computes is held against the same module in eager mode: nine numbers, and a parameter that holds three times as much.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expand: the requested shape has too few dimensions"

_library = torch.library.Library("exchange", "DEF")
for _name in ("set_data", "copy_data"):
    _library.define(_name + "(Tensor(a!) param, Tensor new_data) -> ()")


def _set_data(param, new_data):
    param.set_(new_data)


def _copy_data(param, new_data):
    param.copy_(new_data)


_library.impl("set_data", _set_data, "CPU")
_library.impl("set_data", _set_data, "Meta")
_library.impl("copy_data", _copy_data, "CPU")
_library.impl("copy_data", lambda param, new_data: None, "Meta")


class WrongResult(Exception):
    """The module ran, and computes something else than it should."""


class _Module(torch.nn.Module):
    """`put` is how the parameter gets its data, `size` what it is made with."""

    def __init__(self, put, size=(0,)):
        super().__init__()
        self.param = torch.nn.Parameter(torch.zeros(size))
        self.put = put

    def forward(self, x):
        x = x * 3
        y = self.param
        self.put(y, x)
        return y / 3


def _set(param, new_data):
    torch.ops.exchange.set_data(param, new_data)


def _copy(param, new_data):
    torch.ops.exchange.copy_data(param, new_data)


def _observe(module, how):
    with torch.no_grad():
        result = how(module)(torch.arange(9.0).view(3, 3))
    got, param = result.flatten().tolist(), module.param.detach().flatten().tolist()
    if got != [float(i) for i in range(9)] or param != [3.0 * i for i in range(9)]:
        raise WrongResult("expected the numbers 0 to 8 and three times as much in the parameter, got {} and {}".format(got, param))
    return {"result": got, "param": param}


def _compiled(module):
    return torch.compile(module, backend="aot_eager")


def control():
    return _observe(_Module(_set), lambda module: module)


def baseline():
    return _observe(_Module(_set), _compiled)


def disable():
    """The operator is called between two graphs."""
    return _observe(_Module(torch.compiler.disable(_set)), _compiled)


def full_size():
    """The parameter has its size from the start, and the operator copies."""
    return _observe(_Module(_copy, (3, 3)), _compiled)


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
