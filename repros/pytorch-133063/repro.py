"""pytorch-133063: compiled list.extend with a generator that reads the list does not see what it has added.

Each of three steps adds one to the last element of the list, which starts as [0, 0]: it must end as [0, 0, 1, 2, 3].
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the list \[0\.0, 0\.0, 1\.0, 2\.0, 3\.0\], got \[0\.0, 0\.0, 1\.0, 1\.0, 1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


class _Step(torch.nn.Module):
    def forward(self, x):
        return x + 1


class _Model(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.steps = torch.nn.ModuleList([_Step() for _ in range(3)])
        self.how = how

    def forward(self, x):
        return self.how(self.steps, [x, x])


def _extend(steps, y):
    y.extend(step(y[-1]) for step in steps)
    return y


def _append(steps, y):
    for step in steps:
        y.append(step(y[-1]))
    return y


def _last_kept(steps, y):
    last, added = y[-1], []
    for step in steps:
        last = step(last)
        added.append(last)
    y.extend(added)
    return y


def _comprehension(steps, y):
    y.extend([step(y[-1]) for step in steps])
    return y


def _observe(how, wrap=lambda model: model):
    with torch.no_grad():
        got = [float(element) for element in wrap(_Model(how).eval())(torch.zeros(()))]
    if got != [0.0, 0.0, 1.0, 2.0, 3.0]:
        raise WrongResult("expected the list [0.0, 0.0, 1.0, 2.0, 3.0], got {}".format(got))
    return {"got": got}


def _compiled(model):
    return torch.compile(model, backend="eager")


def control():
    return _observe(_extend)


def baseline():
    return _observe(_extend, _compiled)


def append():
    """A loop that appends."""
    return _observe(_append, _compiled)


def last_kept():
    """The last element is a variable of its own."""
    return _observe(_last_kept, _compiled)


def comprehension():
    """No cure: a list comprehension is computed before anything is added, in eager mode too."""
    return _observe(_comprehension, _compiled)


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
