"""pytorch-139789: a graph compiled for separate inputs is reused for inputs that overlap, one of which is written to.

The function doubles its first argument in place and adds the second. Compiled and called with two tensors of their own,
then with two views that share two elements, it must see in the second argument what it wrote through the first.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the sum [^gx\n]* and the storage [^gx\n]*, got [^x\n]* \(tolerance 0\)"

# From 2.7 on AOTAutograd has a cache of its own, which would hand the first graph to the second call.
ENV = {
    "own_function": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
    "reset_between": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"},
}


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _double_and_add(x, y):
    x.mul_(2)
    return x + y


def _on_halves(base):
    """The same, with the views taken in here."""
    return _double_and_add(base[:4], base[2:6])


def _overlapping():
    base = torch.ones(8)
    return base, base[:4], base[2:6]


def _judge(result, base):
    expected, after = [4.0, 4.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    if result.tolist() != expected or base.tolist() != after:
        raise WrongResult("expected the sum {} and the storage {}, got {} and {} (tolerance 0)".format(
            expected, after, result.tolist(), base.tolist()))
    return {"sum": result.tolist(), "storage": base.tolist()}


def _apart(storage):
    """Arguments of the first call, which share no element."""
    if storage == "one":
        base = torch.ones(8)
        return base[:4], base[4:]
    return torch.ones(4), torch.ones(4)


def _twice(first, second, storage):
    first(*_apart(storage))
    base, x, y = _overlapping()
    return _judge(second(x, y), base)


def control(backend="aot_eager", storage="two"):
    return _twice(_double_and_add, _double_and_add, storage)


def baseline(backend="aot_eager", storage="two"):
    compiled = torch.compile(_double_and_add, backend=backend)
    return _twice(compiled, compiled, storage)


def views_inside(backend="aot_eager", storage="two"):
    """The base is the argument, so that the graph itself knows that its views overlap."""
    compiled = torch.compile(_double_and_add, backend=backend)
    compiled(*_apart(storage))
    base = torch.ones(8)
    return _judge(torch.compile(_on_halves, backend=backend)(base), base)


def own_function(backend="aot_eager", storage="two"):
    """A function of its own, compiled for arguments that overlap and called with no others."""
    def double_and_add_overlapping(x, y):
        x.mul_(2)
        return x + y

    return _twice(torch.compile(_double_and_add, backend=backend),
                  torch.compile(double_and_add_overlapping, backend=backend), storage)


def reset_between(backend="aot_eager", storage="two"):
    """Everything compiled so far is forgotten before the arguments overlap."""
    compiled = torch.compile(_double_and_add, backend=backend)

    def second(x, y):
        torch._dynamo.reset()
        return compiled(x, y)

    return _twice(compiled, second, storage)


def dynamic_true(backend="aot_eager", storage="two"):
    compiled = torch.compile(_double_and_add, backend=backend, dynamic=True)
    return _twice(compiled, compiled, storage)


def clone_argument(backend="aot_eager", storage="two"):
    """The copy overlaps nothing, and does not see what is written either."""
    compiled = torch.compile(_double_and_add, backend=backend)
    return _twice(compiled, lambda x, y: compiled(x, y.clone()), storage)


def overlap_first(backend="aot_eager", storage="two"):
    """Warmed up with arguments that overlap, called with others, and then as the baseline is."""
    compiled = torch.compile(_double_and_add, backend=backend)
    compiled(*_overlapping()[1:])
    apart = compiled(*_apart(storage)).tolist()
    if apart != [3.0] * 4:
        raise WrongResult("expected the sum [3.0, 3.0, 3.0, 3.0] and the storage unread, got {} (tolerance 0)".format(apart))
    base, x, y = _overlapping()
    return _judge(compiled(x, y), base)


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
