"""pytorch-175855: compiled iteration over a list does not see what is appended on the way.

A list of one element grows to three while it is iterated over. As in Python, 1, 2 and 3 must be visited.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected the elements 1, 2 and 3, got \[1\.0\]"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _by_generator(x):
    values = [x.sum()]

    def grow_and_read():
        for item in values:
            if len(values) < 3:
                values.append(item + 1)
            yield item

    return torch.stack(list(grow_and_read()))


def _by_loop(x):
    values, seen = [x.sum()], []
    for item in values:
        if len(values) < 3:
            values.append(item + 1)
        seen.append(item)
    return torch.stack(seen)


def _by_index(x):
    values, seen, index = [x.sum()], [], 0
    while index < len(values):
        item = values[index]
        index += 1
        if len(values) < 3:
            values.append(item + 1)
        seen.append(item)
    return torch.stack(seen)


def _by_queue(x):
    waiting, seen, made = [x.sum()], [], 1
    while waiting:
        item = waiting.pop(0)
        if made < 3:
            waiting.append(item + 1)
            made += 1
        seen.append(item)
    return torch.stack(seen)


_KINDS = {"generator": _by_generator, "loop": _by_loop}


def _observe(function):
    got = function(torch.ones(1)).tolist()
    if got != [1.0, 2.0, 3.0]:
        raise WrongResult("expected the elements 1, 2 and 3, got {}".format(got))
    return {"got": got}


def control(kind="generator"):
    return _observe(_KINDS[kind])


def baseline(kind="generator"):
    return _observe(torch.compile(_KINDS[kind], backend="eager"))


def index(kind="generator"):
    """The length is asked for again before each element."""
    return _observe(torch.compile(_by_index, backend="eager"))


def queue(kind="generator"):
    """What is still to be visited is taken out of a list; nothing iterates over it."""
    return _observe(torch.compile(_by_queue, backend="eager"))


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
