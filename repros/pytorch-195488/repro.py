"""pytorch-195488: autocast stays nested after an exception inside a compiled `with torch.autocast`.

A compiled function opens autocast and reads a row that does not exist. The error is caught, as a training loop would,
and the state of autocast before and after is compared: how deeply it is nested, and whether it is on for the CPU.
Where it is left nested, the casts of weights that it keeps are never thrown away; the arm shows that, too.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected autocast to be left as it was, \(depth 0, off\), got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _state():
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return "(depth {}, {})".format(depth, "on" if torch.is_autocast_cpu_enabled() else "off")


def _weight_seen():
    """What a plain, later autocast takes a weight for that has changed from 1.0 to 2.0 since the autocast before it."""
    weight = torch.ones(1, 1, requires_grad=True)
    for value in (1.0, 2.0):
        with torch.no_grad():
            weight.fill_(value)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen = float(torch.mm(torch.ones(1, 1), weight))
    return seen


def _rows(x, index):
    return x.index_select(0, index)


def _rows_in_autocast(x, index):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x.index_select(0, index)


def _observe(function, calls):
    x, good, bad = torch.ones(4, 4), torch.tensor([1]), torch.tensor([99])
    if function(x, good).shape != (1, 4) or _state() != "(depth 0, off)":
        raise RuntimeError("autocast is not off after a call without an error: " + _state())
    refused = 0
    for _ in range(calls):
        try:
            function(x, bad)
        except (IndexError, RuntimeError) as failure:
            if "out of " not in str(failure):
                raise
            refused += 1
    if refused != calls:
        raise RuntimeError("row 99 of 4 was read")
    after, weight = _state(), _weight_seen()
    if after != "(depth 0, off)":
        raise WrongResult("expected autocast to be left as it was, (depth 0, off), got {} after {} caught errors; a "
                          "later autocast sees a weight set to 2.0 as {}".format(after, calls, weight))
    return {"state": after, "weight": weight, "caught": refused}


def control(calls=2):
    return _observe(_rows_in_autocast, calls)


def baseline(calls=2):
    return _observe(torch.compile(_rows_in_autocast, backend="eager", fullgraph=True), calls)


def autocast_outside(calls=2):
    """Python's own `with` is around the compiled call."""
    compiled = torch.compile(_rows, backend="eager", fullgraph=True)

    def call(x, index):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return compiled(x, index)

    return _observe(call, calls)


def aot_eager(calls=2):
    """The graph that runs holds casts, and no context any more."""
    return _observe(torch.compile(_rows_in_autocast, backend="aot_eager", fullgraph=True), calls)


def look_first(calls=2):
    """The index is looked at before autocast is opened."""
    compiled = torch.compile(_rows_in_autocast, backend="eager", fullgraph=True)

    def call(x, index):
        if int(index.max()) >= x.shape[0]:
            raise IndexError("index out of range")
        return compiled(x, index)

    return _observe(call, calls)


def outer_autocast(calls=2):
    """An autocast that is off, around the call, to put things back."""
    compiled = torch.compile(_rows_in_autocast, backend="eager", fullgraph=True)

    def call(x, index):
        with torch.autocast("cpu", enabled=False):
            return compiled(x, index)

    return _observe(call, calls)


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
