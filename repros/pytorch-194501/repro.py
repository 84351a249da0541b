"""pytorch-194501: a compiled smooth_l1_loss takes a negative beta and returns a loss.

Plain torch refuses beta = -1.0. Each arm first computes the loss with beta = 1.0, which must come out as 1.5, and
then asks for beta = -1.0, which must be refused with a message that says so.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import re

import torch
import torch.nn.functional as F

SIGNATURE = r"expected beta = \S+ to be refused, got the loss"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _loss(a, b):
    return F.smooth_l1_loss(a, b, beta=1.0)


def _negative_loss(a, b):
    return F.smooth_l1_loss(a, b, beta=-1.0)


def _huber(a, b):
    return F.huber_loss(a, b, delta=1.0) / 1.0


def _negative_huber(a, b):
    return F.huber_loss(a, b, delta=-1.0) / -1.0


def _checked(a, b):
    torch._check(1.0 >= 0, lambda: "negative beta")
    return F.smooth_l1_loss(a, b, beta=1.0)


def _negative_checked(a, b):
    torch._check(-1.0 >= 0, lambda: "negative beta")
    return F.smooth_l1_loss(a, b, beta=-1.0)


def _observe(how, good=_loss, negative=_negative_loss):
    a, b = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])
    plain = float(how(good)(a, b))
    if abs(plain - 1.5) > 1e-6:
        raise WrongResult("expected the loss 1.5 with beta = 1.0, got {} (tolerance 1e-6)".format(plain))
    try:
        got = float(how(negative)(a, b))
    except Exception as refusal:
        if not re.search(r"negative (values|beta)|non-positive values", str(refusal)):
            raise
        return {"loss": plain, "refused_by": type(refusal).__name__}
    raise WrongResult("expected beta = -1.0 to be refused, got the loss {}".format(got))


def control():
    return _observe(lambda function: function)


def baseline():
    return _observe(torch.compile)


def check_before():
    """The caller looks at beta before the compiled loss sees it."""
    def how(function):
        compiled, beta = torch.compile(function), {"_loss": 1.0, "_negative_loss": -1.0}[function.__name__]

        def guarded(a, b):
            if beta < 0:
                raise ValueError("negative beta")
            return compiled(a, b)

        return guarded

    return _observe(how)


def huber_loss():
    """delta of the Huber loss is checked while the graph is traced."""
    return _observe(torch.compile, _huber, _negative_huber)


def eager_loss():
    """The rest of the model may stay compiled."""
    return _observe(torch.compiler.disable)


def aot_eager():
    """The operator is not decomposed, and so keeps its check."""
    return _observe(lambda function: torch.compile(function, backend="aot_eager"))


def torch_check():
    return _observe(torch.compile, _checked, _negative_checked)


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
