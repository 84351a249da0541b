"""pytorch-191821: a nested compile region is traced once and reused where the global that it reads has been rebound.

A loop binds a global to a new object twice and runs a marked region that adds 1 to what the object holds: 0 becomes 2.
The reused region still reads the first object, and the result is 1.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 2 after two rounds, got 1\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class NotApplicable(Exception):
    """This build has no torch.compiler.nested_compile_region."""


class _Box:
    def __init__(self, hidden):
        self.hidden = hidden


_box = None


def _region():
    return _box.hidden + 1


def _region_of(hidden):
    return hidden + 1


def _loop(region):
    def rounds(hidden):
        global _box
        for _ in range(2):
            _box = _Box(hidden)
            hidden = region()
        return hidden
    return rounds


def _loop_of_one_box(region):
    def rounds(hidden):
        for _ in range(2):
            _box.hidden = hidden
            hidden = region()
        return hidden
    return rounds


def _loop_of_arguments(region):
    def rounds(hidden):
        for _ in range(2):
            hidden = region(hidden)
        return hidden
    return rounds


def _mark(function):
    mark = getattr(torch.compiler, "nested_compile_region", None)
    if mark is None:
        raise NotApplicable("torch {} has no torch.compiler.nested_compile_region".format(torch.__version__))
    return mark(function)


def _observe(rounds):
    global _box
    _box = _Box(torch.tensor(0))
    got = int(rounds(torch.tensor(0)))
    if got != 2:
        raise WrongResult("expected 2 after two rounds, got {} (exact, tolerance 0)".format(got))
    return {"result": got}


def control(backend="eager"):
    """Not compiled, and not marked; `backend` is what it would have had."""
    return _observe(_loop(_region))


def baseline(backend="eager"):
    return _observe(torch.compile(_loop(_mark(_region)), backend=backend, fullgraph=True))


def argument(backend="eager"):
    """What the region reads comes as its argument."""
    return _observe(torch.compile(_loop_of_arguments(_mark(_region_of)), backend=backend, fullgraph=True))


def unmarked(backend="eager"):
    """The region is inlined twice."""
    return _observe(torch.compile(_loop(_region), backend=backend, fullgraph=True))


def same_object(backend="eager"):
    """The global stays bound to one object, and that is changed."""
    return _observe(torch.compile(_loop_of_one_box(_mark(_region)), backend=backend, fullgraph=True))


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
