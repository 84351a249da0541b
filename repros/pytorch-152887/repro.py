"""pytorch-152887: what a function with CUDA graphs returned is overwritten before the next one can take it.

Two calls of functions compiled with mode="reduce-overhead", the second on the first one's output, repeated so that the
graphs are warmed up, recorded and replayed. Each round must give (x + 1) * 2, or x + 2 where one function is called
twice.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run"

ROUNDS = 4


class WrongResult(Exception):
    """The chain ran, and its numbers are wrong."""


def _add(x):
    return x + 1


def _double(x):
    return x * 2


def _pair(functions, how):
    """The two functions of the chain, each as `how` makes it; one and the same where there is only one."""
    first = how(_add)
    return (first, first) if functions == 1 else (first, how(_double))


def _graphs(function):
    return torch.compile(function, mode="reduce-overhead")


def _observe(chain, functions):
    total = 0.0
    for at in range(ROUNDS):
        x = torch.arange(8, device="cuda", dtype=torch.float32) + at
        expected = x + 2 if functions == 1 else (x + 1) * 2
        got = chain(x).clone()
        torch.cuda.synchronize()
        if not torch.equal(got, expected):
            raise WrongResult("expected {}, got {}, tolerance 0".format(expected.tolist(), got.tolist()))
        print("round", at, "is right")
        total += float(got.sum())
    return {"rounds": ROUNDS, "sum": total, "gpu": torch.cuda.get_device_name()}


def control(functions=1):
    """Not compiled."""
    first, second = _pair(functions, lambda function: function)
    return _observe(lambda x: second(first(x)), functions)


def baseline(functions=1):
    first, second = _pair(functions, _graphs)
    return _observe(lambda x: second(first(x)), functions)


def mark_once(functions=1):
    """Both calls belong to one step."""
    first, second = _pair(functions, _graphs)

    def chain(x):
        torch.compiler.cudagraph_mark_step_begin()
        return second(first(x))

    return _observe(chain, functions)


def clone_between(functions=1):
    """The copy is no output of a CUDA graph."""
    first, second = _pair(functions, _graphs)
    return _observe(lambda x: second(first(x).clone()), functions)


def one_graph(functions=1):
    """Nothing is handed over between graphs."""
    first, second = _pair(functions, lambda function: function)
    return _observe(_graphs(lambda x: second(first(x))), functions)


def no_cuda_graphs(functions=1):
    """The default mode."""
    first, second = _pair(functions, torch.compile)
    return _observe(lambda x: second(first(x)), functions)


def mark_each(functions=1):
    """A step of its own for each call: the advice of the message."""
    first, second = _pair(functions, _graphs)

    def chain(x):
        torch.compiler.cudagraph_mark_step_begin()
        y = first(x)
        torch.compiler.cudagraph_mark_step_begin()
        return second(y)

    return _observe(chain, functions)


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
