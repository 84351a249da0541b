"""pytorch-194976: a changing Python float is replaced by an earlier value in a compiled, differentiated clamp.

A clamped gate is called with four limits, one after the other, and differentiated; output and gradient are compared
with plain torch. From the second limit on Dynamo makes the float dynamic, and from then on the compile caches may
answer.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"expected the values of limit \S+, got others"

ENV = {"no_autograd_cache": {"TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}}

_LIMITS = (7.0, 1.5, 0.5, 7.0)


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _gate(x, limit):
    gate, up = torch.chunk(x, 2, dim=-1)
    return F.silu(gate).clamp(max=limit) * up.clamp(min=-limit, max=limit)


def _run(function, x, limit, train):
    x = x.clone().requires_grad_(train)
    result = function(x, limit)
    if not train:
        return result, torch.zeros(())
    result.sum().backward()
    return result.detach(), x.grad


def _observe(function, train, wrap=float):
    torch.manual_seed(0)
    x = torch.randn(64, 32) * 8
    last = None
    for limit in _LIMITS:
        expected, got = _run(_gate, x, limit, train), _run(function, x, wrap(limit), train)
        off = [float((one - other).abs().max()) for one, other in zip(expected, got)]
        if max(off) > 1e-3:
            raise WrongResult("expected the values of limit {}, got others: output off by {:.3g}, gradient by {:.3g} "
                              "(tolerance 1e-3)".format(limit, *off))
        last = float(got[0].abs().max())
    return {"limits": len(_LIMITS), "largest": last}


def control(train=True):
    return _observe(_gate, train)


def baseline(train=True):
    return _observe(torch.compile(_gate), train)


def specialize_float(train=True):
    """Every value of the float is a constant of its own graph."""
    import torch._dynamo

    torch._dynamo.config.specialize_float = True
    return _observe(torch.compile(_gate), train)


def tensor_limit(train=True):
    """The limit travels as a tensor of no dimensions."""
    return _observe(torch.compile(_gate), train, wrap=torch.tensor)


def no_autograd_cache(train=True):
    """ENV switches the cache of AOTAutograd off."""
    return _observe(torch.compile(_gate), train)


def aot_eager(train=True):
    return _observe(torch.compile(_gate, backend="aot_eager"), train)


def dynamic_false(train=True):
    return _observe(torch.compile(_gate, dynamic=False), train)


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
