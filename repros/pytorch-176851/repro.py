"""pytorch-176851: a class attribute that is changed between two calls keeps its old value in compiled code.

A function multiplies by an attribute of a class, which is 1 at the first call and 10 at the second.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import enum

import torch

SIGNATURE = r"expected 4 and then 40, got 4\.0 and 4\.0"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Size(enum.Enum):
    SMALL = 1.0
    LARGE = 10.0


class _State:
    factor = 1.0
    size = _Size.SMALL


class _Settings:
    def __init__(self):
        self.factor = 1.0
        self.size = _Size.SMALL


_SETTINGS = _Settings()


def _by_float(x):
    return x * _State.factor


def _by_enum(x):
    if _State.size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


def _by_float_of_instance(x):
    return x * _SETTINGS.factor


def _by_enum_of_instance(x):
    if _SETTINGS.size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


def _by_float_given(x, factor):
    return x * factor


def _by_enum_given(x, size):
    if size is _Size.LARGE:
        return x * 10.0
    return x * 1.0


_KINDS = {"float": _by_float, "enum": _by_enum}


def _set(factor):
    _State.factor = _SETTINGS.factor = factor
    _State.size = _SETTINGS.size = _Size(factor)


def _observe(function):
    got = []
    for factor in (1.0, 10.0):
        _set(factor)
        got.append(function(torch.tensor([4.0])).item())
    if got != [4.0, 40.0]:
        raise WrongResult("expected 4 and then 40, got {} and {}".format(*got))
    return {"got": got}


def control(kind="float"):
    return _observe(_KINDS[kind])


def baseline(kind="float"):
    return _observe(torch.compile(_KINDS[kind], backend="eager"))


def instance(kind="float"):
    """The value is an attribute of an object instead of its class."""
    function = {"float": _by_float_of_instance, "enum": _by_enum_of_instance}[kind]
    return _observe(torch.compile(function, backend="eager"))


def argument(kind="float"):
    """The value is read outside and handed over."""
    if kind == "enum":
        by_enum = torch.compile(_by_enum_given, backend="eager")
        return _observe(lambda x: by_enum(x, _State.size))
    by_float = torch.compile(_by_float_given, backend="eager")
    return _observe(lambda x: by_float(x, _State.factor))


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
