"""pytorch-186807: a custom operator that writes to an input of its nested_compile_region does not compile.

The operator adds a tensor of ones to a tensor of zeros in place; the region returns that plus 1: 2 everywhere, and 3
where the region is called twice. Newer releases inline a region that is called once, which is why both are tried.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"Found a custom \(non-ATen\) operator whose output has alias annotations"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _define():
    """The operators; defined when an arm runs, because importing this file must change nothing."""
    @torch.library.custom_op("knowngood186807::add_into", mutates_args=("target",))
    def add_into(target: torch.Tensor, x: torch.Tensor) -> None:
        target.add_(x)

    @add_into.register_fake
    def _(target, x):
        return None

    @torch.library.custom_op("knowngood186807::added", mutates_args=())
    def added(target: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return target + x

    @added.register_fake
    def _(target, x):
        return torch.empty_like(target)


def _step(target, x):
    torch.ops.knowngood186807.add_into(target, x)
    return target + 1.0


def _on_clone(target, x):
    target = target.clone()
    torch.ops.knowngood186807.add_into(target, x)
    return target + 1.0


def _functional(target, x):
    return torch.ops.knowngood186807.added(target, x) + 1.0


def _plus_one(target):
    return target + 1.0


def _observe(build, expected=2.0):
    _define()
    result = build()(torch.zeros(3), torch.ones(3))
    if result.tolist() != [expected] * 3:
        raise WrongResult("expected {} everywhere (exactly), got {}".format(expected, result.tolist()))
    return {"result": result.tolist()}


def _in_region(step):
    def build():
        region = torch.compiler.nested_compile_region(step)

        def function(target, x):
            return region(target, x)
        return torch.compile(function, backend="aot_eager", fullgraph=True)
    return build


def _op_before_region():
    region = torch.compiler.nested_compile_region(_plus_one)

    def function(target, x):
        torch.ops.knowngood186807.add_into(target, x)
        return region(target)
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _no_region():
    return torch.compile(_step, backend="aot_eager", fullgraph=True)


def _twice():
    region = torch.compiler.nested_compile_region(_step)

    def function(target, x):
        region(target, x)
        return region(target, x)
    return torch.compile(function, backend="aot_eager", fullgraph=True)


def _plainly(target, x):
    """A region that nobody compiles is a plain function."""
    torch.compiler.nested_compile_region(_step)(target, x)
    return torch.compiler.nested_compile_region(_step)(target, x)


def control(calls=1):
    if calls == 1:
        return _observe(lambda: torch.compiler.nested_compile_region(_step))
    return _observe(lambda: _plainly, expected=3.0)


def baseline(calls=1):
    if calls == 1:
        return _observe(_in_region(_step))
    return _observe(_twice, expected=3.0)


def outside_region(calls=1):
    """The writing operator stands before the region."""
    return _observe(_op_before_region)


def functional_op(calls=1):
    """The operator returns what it computes."""
    return _observe(_in_region(_functional))


def without_region(calls=1):
    return _observe(_no_region)


def write_to_clone(calls=1):
    """The region writes to none of its inputs, but the operator still writes."""
    return _observe(_in_region(_on_clone))


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
