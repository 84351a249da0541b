"""pytorch-140171: an in-place write through as_strided beyond the view that is the argument cannot be compiled.

The argument is the first half of a tensor; as_strided takes ten elements from the middle of its storage and adds 1 to
them. The elements that come back and the whole storage are compared with what must come out.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"as_strided_scatter: sizes [^:\n]* out of bounds for storage|expected the elements [^gx\n]* in the storage [^gx\n]*, got [^x\n]* \(tolerance 0\)"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _beyond(x):
    v = x.as_strided((10,), (1,), storage_offset=5)
    v.add_(1)
    return v


def _slice(base):
    v = base[5:15]
    v.add_(1)
    return v


def _add_one(v):
    v.add_(1)
    return v


def _judge(result, base):
    storage = list(range(5)) + list(range(6, 16)) + list(range(15, 20))
    if result.tolist() != storage[5:15] or base.tolist() != storage:
        raise WrongResult("expected the elements {} in the storage {}, got {} in {} (tolerance 0)".format(
            storage[5:15], storage, result.tolist(), base.tolist()))
    return {"elements": result.tolist(), "storage": base.tolist()}


def control(backend="inductor"):
    base = torch.arange(20)
    return _judge(_beyond(base[:10]), base)


def baseline(backend="inductor"):
    base = torch.arange(20)
    return _judge(torch.compile(_beyond, backend=backend)(base[:10]), base)


def base_argument(backend="inductor"):
    """The base is the argument and is sliced inside."""
    base = torch.arange(20)
    return _judge(torch.compile(_slice, backend=backend)(base), base)


def strided_outside(backend="inductor"):
    """as_strided is called before the compiled function."""
    base = torch.arange(20)
    return _judge(torch.compile(_add_one, backend=backend)(base[:10].as_strided((10,), (1,), 5)), base)


def copy_back(backend="inductor"):
    """The sum is computed out of place and copied into the storage outside."""
    base = torch.arange(20)
    target = base[:10].as_strided((10,), (1,), 5)
    target.copy_(torch.compile(lambda v: v + 1, backend=backend)(target))
    return _judge(target, base)


def dynamic_true(backend="inductor"):
    base = torch.arange(20)
    return _judge(torch.compile(_beyond, backend=backend, dynamic=True)(base[:10]), base)


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
