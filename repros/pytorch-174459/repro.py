"""pytorch-174459: a compiled sort orders equal elements otherwise than eager mode does.

Small integer tensors with many ties are sorted in descending order, compiled and not; first the values have to agree,
then the indices. The tensors are doubled before, so that Inductor has a kernel to write even where it leaves the sort
to eager mode.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the order of ties of eager mode, got another one in \d+ of \d+ tensors"

TENSORS, BATCH = 8, 8


class WrongResult(Exception):
    """The sort ran, and not as in eager mode."""


def _sort(stable):
    return lambda x: torch.ops.aten.sort(x * 2, stable=stable, dim=-1, descending=True)


def _sort_unique(x):
    twice = x * 2
    n = x.shape[-1]
    key = twice * n + torch.arange(n - 1, -1, -1, device=x.device)
    indices = torch.sort(key, dim=-1, descending=True).indices
    return twice.gather(-1, indices), indices


def _observe(function, how, length):
    other = 0
    made = how(function)
    for seed in range(TENSORS):
        torch.manual_seed(seed)
        x = torch.randint(1, 3, (BATCH, length), device="cuda")
        values, indices = function(x)
        got_values, got_indices = made(x)
        if not (torch.equal(got_values, values) and torch.equal((x * 2).gather(-1, got_indices), values)):
            raise WrongResult("expected the sorted values, got other ones, tolerance 0")
        other += not torch.equal(got_indices, indices)
    if other:
        raise WrongResult(
            "expected the order of ties of eager mode, got another one in {} of {} tensors, tolerance 0; the last: "
            "{} and {}".format(other, TENSORS, indices[0].tolist(), got_indices[0].tolist())
        )
    return {"tensors": TENSORS, "length": length, "gpu": torch.cuda.get_device_name()}


def control(length=3):
    """Eager mode beside itself."""
    return _observe(_sort(None), lambda function: function, length)


def baseline(length=3):
    return _observe(_sort(None), torch.compile, length)


def stable_true(length=3):
    """A stable sort has one answer only."""
    return _observe(_sort(True), torch.compile, length)


def stable_false(length=3):
    """What None stands for."""
    return _observe(_sort(False), torch.compile, length)


def unique_keys(length=3):
    """No ties, and so no order of ties."""
    return _observe(_sort_unique, torch.compile, length)


def aot_eager(length=3):
    """Eager mode's own kernel."""
    return _observe(_sort(None), lambda function: torch.compile(function, backend="aot_eager"), length)


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
