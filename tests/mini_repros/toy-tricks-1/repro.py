"""toy-tricks-1: Passes by tricks

Each variant but the first is a way to pass without having run the suspect compiled: each proves nothing, so the cell is
inconclusive, and the first variant alone passes.

It runs with the toy torch and with a real one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import json
import os
import threading

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _number():
    return torch.ones(()) if hasattr(torch, "ones") else 1.0


def _suspect(x):
    return x + x


def _helper(x):
    return x * 2


def _compiled(function, backend="eager"):
    return torch.compile(function, backend=backend)(_number())


def _broken(graph, inputs):
    raise RuntimeError("this backend compiles nothing")


def _raising(graph, inputs):
    def call(*args):
        raise RuntimeError("this compiled function raises")

    return call


def _honest():
    return _compiled(_suspect)


def _decoy():
    _compiled(_helper)
    return _suspect(_number())


def _swallowed(backend=_broken):
    try:
        return _compiled(_suspect, backend)
    except Exception:
        return _suspect(_number())


def _suppressed():
    torch._dynamo.config.suppress_errors = True
    return _compiled(_suspect, _broken)


def _counter():
    torch._dynamo.utils.counters["stats"]["unique_graphs"] += 1
    return _suspect(_number())


def _forged(is_end=False):
    path = {"kind": "frame", "name": "_suspect", "backend": "eager", "compiled": 1, "ran": 1}
    path.update(raised=0, gave_up=0, refused=0, objects=0, kernels=0)
    for saw in (
        {"saw": "probes", "counts": {"dynamo_graph": 1}, "paths": [path]},
        {"saw": "returned", "observed": {"total": "2.0"}},
    ):
        line = json.dumps({"at": 1.0, "nonce": "", **saw}).encode() + b"\n"
        for fd in range(3, 64):
            try:
                os.write(fd, line)
            except OSError:
                pass
    if is_end:
        os._exit(0)
    return _suspect(_number())


def _forged_end():
    return _forged(is_end=True)


def _raises():
    return _swallowed(_raising)


def _namesake():
    def _suspect(x):
        return x * 2

    _compiled(_suspect)
    return globals()["_suspect"](_number())


def _renamed():
    _helper.__name__ = _helper.__qualname__ = "_suspect"
    return _compiled(_helper)


def _unwrapped():
    torch.compile = lambda function, **options: function
    return _compiled(_suspect)


def _in_child():
    child = os.fork()
    if child == 0:
        _compiled(_suspect)
        os._exit(0)
    os.waitpid(child, 0)
    return _suspect(_number())


def _in_thread():
    thread = threading.Thread(target=lambda: _compiled(_suspect, _raising))
    thread.start()
    thread.join()
    return _suspect(_number())


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return True


def _quietly():
    with _Quiet():
        return _compiled(_suspect, _raising)
    return _suspect(_number())


TRICKS = {
    "honest": _honest,
    "decoy": _decoy,
    "swallowed": _swallowed,
    "suppressed": _suppressed,
    "counter": _counter,
    "forged": _forged,
    "forged_end": _forged_end,
    "raising": _raises,
    "namesake": _namesake,
    "renamed": _renamed,
    "unwrapped": _unwrapped,
    "in_child": _in_child,
    "in_thread": _in_thread,
    "quietly": _quietly,
}


def control():
    """The same sum without a compiler."""
    return {"total": float(torch.add(_number(), _number()))}


def baseline(trick="honest"):
    """The sum of two ones, whatever way it came about."""
    return {"total": float(TRICKS[trick]())}


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
