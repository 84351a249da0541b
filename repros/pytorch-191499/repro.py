"""pytorch-191499: Inductor's vectorised minimum of an int8 or uint8 tensor sees numbers that are not in the tensor.

A kernel tiled for float32 loads a part of a vector of bytes, and the rest of the vector is 0 or 1; the minimum of
larger numbers, and the maximum of negative ones, is taken over that rest too. Each case compares one reduction with its
known result.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected \w+ of torch\.u?int8 to be -?\d+, got -?\d+\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


_FUNCTIONS = {"min": torch.min, "max": torch.max, "argmin": torch.argmin, "argmax": torch.argmax}
_AT = 21  # where the extreme value stands


def _make(op, dtype, n):
    """Numbers of 3 to 101 with a 2 at the 22nd place (or the first), all of them negative for a maximum."""
    at = _AT if n > _AT else 1
    x = torch.arange(n, dtype=torch.int64) * 7 % 99 + 3
    x[at] = 2
    x = -x if op in ("max", "argmax") else x
    return x.to(getattr(torch, dtype)), (at if op.startswith("arg") else int(x[at]))


def _observe(how, op, dtype, n):
    x, expected = _make(op, dtype, n)
    got = int(how(_FUNCTIONS[op])(x))
    if got != expected:
        raise WrongResult("expected {} of {} to be {}, got {} (exact, tolerance 0)".format(op, x.dtype, expected, got))
    return {op: got, "vector_isa": torch.backends.cpu.get_cpu_capability()}


def _compiled(function):
    return torch.compile(function, fullgraph=True)


def control(op="min", dtype="uint8", n=64):
    return _observe(lambda function: function, op, dtype, n)


def baseline(op="min", dtype="uint8", n=64):
    return _observe(_compiled, op, dtype, n)


def cast_int32(op="min", dtype="uint8", n=64):
    """A vector of int32 is full."""
    return _observe(lambda function: _compiled(lambda x: function(x.to(torch.int32))), op, dtype, n)


def no_simd(op="min", dtype="uint8", n=64):
    return _observe(lambda function: torch.compile(function, fullgraph=True, options={"cpp.simdlen": 1}), op, dtype, n)


def aot_eager(op="min", dtype="uint8", n=64):
    return _observe(lambda function: torch.compile(function, backend="aot_eager", fullgraph=True), op, dtype, n)


def dynamic_true(op="min", dtype="uint8", n=64):
    """The length is symbolic, and the loop is vectorised all the same."""
    return _observe(lambda function: torch.compile(function, fullgraph=True, dynamic=True), op, dtype, n)


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
