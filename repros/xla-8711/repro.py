"""xla-8711: a buffer that the program has marked to be given away is not given away at a step.

t0 is needed no more after t0 + t1, and is marked so; t1 is updated in place. Both buffers may be used again for results
of the step. PyTorch/XLA counts how many inputs of the compiled graph are given away: there must be two.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected 2 input buffers to be given away in the step, got [01]\b"

ENV = {
    "control": {"PJRT_DEVICE": "CPU"},
    "baseline": {"PJRT_DEVICE": "CPU"},
    "in_place": {"PJRT_DEVICE": "CPU"},
    "copy_into": {"PJRT_DEVICE": "CPU"},
    "compiled": {"PJRT_DEVICE": "CPU"},
    "delete": {"PJRT_DEVICE": "CPU"},
}


class WrongResult(Exception):
    """The step ran, with fewer buffers given away than were marked, or with wrong numbers."""


def _add(t0, t1):
    return t0 + t1


def _values(combine, t0, t1):
    """t0 + t1 in whatever way, then t1 in place."""
    total = combine(t0, t1)
    t1 += 2
    return total, t1


def _compare(total, t1, **more):
    got = total.flatten().tolist(), t1.flatten().tolist()
    expected = [float(i + 1) for i in range(16)], [3.0] * 16
    if got != expected:
        raise WrongResult("expected the sum {} and t1 {}, got {} and {}".format(*expected, *got))
    return {"total": got[0], "t1": got[1], **more}


def _inputs(device):
    return torch.arange(16.0).view(4, 2, 2).to(device), torch.ones(4, 2, 2).to(device)


def _step(combine):
    """One step on the XLA device, with donation as the user marks it switched on, and a look at the counter."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.debug.metrics as metrics
    from torch_xla.core.dynamo_bridge import alias_with_buffer_donor_config

    with alias_with_buffer_donor_config():
        inputs = list(_inputs(xm.xla_device()))
        xm.mark_step()
        metrics.clear_all()
        total, t1 = combine(inputs)
        xm.mark_step()
    given = int((metrics.metric_data("InputOutputAliasCount") or (0, 0))[1])
    compiled = metrics.counter_value("UncachedCompile") or 0
    print("torch_xla", torch_xla.__version__, "gave away", given, "buffers")
    observed = _compare(total, t1, given=given)
    if given != 2:
        raise WrongResult("expected 2 input buffers to be given away in the step, got {}".format(given))
    print("compiled", compiled)
    return observed


def _mark(tensor):
    """The call is taken, in every release: what it marks is asked for again."""
    import torch_xla

    if not (torch_xla._XLAC._set_buffer_donation(tensor, True) and torch_xla._XLAC._get_buffer_donation(tensor)):
        raise WrongResult("expected the tensor to be marked, got no mark")


def _marked(inputs):
    t0, t1 = inputs
    _mark(t0)
    return _values(_add, t0, t1)


def control():
    """The same on torch's own CPU device."""
    return _compare(*_values(_add, *_inputs("cpu")))


def baseline():
    return _step(_marked)


def in_place():
    """An update in place is what the lazy tensors see by themselves."""
    return _step(lambda inputs: _values(lambda t0, t1: t0.add_(t1), *inputs))


def copy_into():
    """The sum is copied into the tensor that is no longer needed."""
    return _step(lambda inputs: _values(lambda t0, t1: t0.copy_(t0 + t1), *inputs))


def compiled():
    """The mark inside a function that Dynamo hands to the openxla backend, for which it was made."""
    import torch_xla.experimental.dynamo_set_buffer_donor

    def marked_sum(t0, t1):
        torch.ops.xla.dynamo_set_buffer_donor_(t0, True)
        return t0 + t1

    return _step(lambda inputs: _values(torch.compile(marked_sum, backend="openxla"), *inputs))


def delete():
    """No name holds t0 any more when the step comes; its buffer is a parameter of the graph all the same."""
    def forgotten(inputs):
        total = inputs[0] + inputs[1]
        del inputs[0]
        inputs[0] += 2
        return total, inputs[0]

    return _step(forgotten)


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
