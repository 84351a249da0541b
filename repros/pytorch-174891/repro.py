"""pytorch-174891: adding a complex constant of one value adds its real part to the imaginary part as well.

1 + 0j everywhere plus a column of 1 + 0j that is made in the compiled function must be 2 + 0j everywhere.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected \[2, 2\] and \[0, 0\] in each row, got \[\[2\.0, 2\.0\], \[2\.0, 2\.0\]\] and \[\[1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _suspect(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return x + column, scale * 2


def _by_parts(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return torch.complex(x.real + column.real, x.imag + column.imag), scale * 2


def _as_pairs(x, scale):
    column = torch.ones(2, 1, dtype=torch.complex64)
    return torch.view_as_complex(torch.view_as_real(x) + torch.view_as_real(column)), scale * 2


def _observe(function):
    x = torch.full((2, 2), 1.0, dtype=torch.complex64)
    total, doubled = function(x, torch.ones(2))
    real, imaginary = total.real.tolist(), total.imag.tolist()
    if (real, imaginary) != ([[2.0, 2.0]] * 2, [[0.0, 0.0]] * 2):
        raise WrongResult("expected [2, 2] and [0, 0] in each row, got {} and {}".format(real, imaginary))
    return {"real": real, "imaginary": imaginary, "doubled": doubled.tolist()}


def control():
    return _observe(_suspect)


def baseline():
    return _observe(torch.compile(_suspect))


def by_parts():
    return _observe(torch.compile(_by_parts))


def as_pairs():
    """Tensors of floats are added, whose last dimension is the pair of real and imaginary part."""
    return _observe(torch.compile(_as_pairs))


def disabled():
    """A graph break around the addition."""
    add = torch.compiler.disable(torch.add)
    return _observe(torch.compile(lambda x, scale: (add(x, torch.ones(2, 1, dtype=torch.complex64)), scale * 2)))


def aot_eager():
    return _observe(torch.compile(_suspect, backend="aot_eager"))


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
