"""pytorch-132972: custom_op(mutates_args="unknown") is read as the letters of a list of argument names.

An operator that adds y to x in place is registered and used in a compiled function, whose result must be 4 everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"in mutates_args were not found in the custom op's signature"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _bump(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)


def _use(bump, compiler):
    """What a function computes that calls `bump`: (1 + 1) * 2."""
    def function(x):
        x = x.clone()
        bump(x, torch.ones_like(x))
        return x * 2

    result = compiler(function)(torch.ones(2)).tolist()
    if result != [4.0, 4.0]:
        raise WrongResult("expected [4.0, 4.0], got {} (tolerance 0)".format(result))
    return {"result": result}


def _compile(function):
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def control():
    return _use(_bump, lambda function: function)


def baseline():
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args="unknown"), _compile)


def named():
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=("x",)), _compile)


def every_tensor():
    """All tensor arguments by name: what "unknown" stands for."""
    return _use(torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=("x", "y")), _compile)


def written_schema():
    torch.library.define("knowngood_132972::bump", "(Tensor(a!) x, Tensor y) -> ()")
    torch.library.impl("knowngood_132972::bump", "cpu", _bump)
    return _use(torch.ops.knowngood_132972.bump, _compile)


def empty():
    """Told that nothing is mutated, the compiler has no reason to run what returns nothing."""
    bump = torch.library.custom_op("knowngood_132972::bump", _bump, mutates_args=())
    bump.register_fake(lambda x, y: None)
    return _use(bump, _compile)


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
