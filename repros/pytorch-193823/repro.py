"""pytorch-193823: LSTMCell kills the process when the hidden state is one tensor instead of a pair.

An unbatched input of three features and one tensor of zeros of shape (2, 3, 3) in the place of (hx, cx), as in the report.
Well-formed states must give what lstm_cell computes; the malformed ones must be refused.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"line \d{1,5} in _malformed_cell\b"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _cell():
    cell = torch.nn.LSTMCell(3, 3)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.fill_(0.25)
    return cell


def _good(cell):
    x, zero = torch.tensor([[1.0, 2.0, -1.0]]), torch.zeros(1, 3)
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    with torch.no_grad():
        h, c = torch.ops.aten.lstm_cell(x, [zero, zero], *weights)
        gate = torch.sigmoid(torch.tensor(1.0))
        expected = gate * torch.tanh(torch.tensor(1.0))
    if not torch.allclose(c, expected.expand(1, 3)):
        raise WrongResult("expected the cell state {}, got {}".format(expected.item(), c.tolist()))
    return {"h": h.flatten().tolist(), "c": c.flatten().tolist()}


def _malformed_cell(cell, x, state):
    return cell(x, state)


def _checked_cell(cell, x, state):
    if not isinstance(state, (tuple, list)) or any(one.dim() != x.dim() for one in state):
        raise ValueError("Expected hidden states of the input's number of dimensions")
    return cell(x, state)


def _one_step(cell, x, state):
    """One step of nn.LSTM, with the weights of the cell: it knows the shapes of its states."""
    lstm = torch.nn.LSTM(3, 3)
    lstm.load_state_dict({name + "_l0": value for name, value in cell.state_dict().items()})
    h, c = state
    _, (h, c) = lstm(x.unsqueeze(0), (h.unsqueeze(0), c.unsqueeze(0)))
    return h[0], c[0]


def _observe(function):
    cell = _cell()
    observed = _good(cell)
    try:
        with torch.no_grad():
            got = function(cell, torch.ones(3), torch.zeros(2, 3, 3))
    except (RuntimeError, ValueError) as refusal:
        if not any(words in str(refusal) for words in ("xpected", "should also be")):
            raise
        return dict(observed, refused=True)
    raise WrongResult("expected a refusal, got shapes {}".format([tuple(one.shape) for one in got]))


def control():
    return _good(_cell())


def baseline():
    return _observe(_malformed_cell)


def check_first():
    return _observe(_checked_cell)


def one_step_of_lstm():
    cell, x, state = _cell(), torch.tensor([[1.0, 2.0, -1.0]]), (torch.full((1, 3), 0.5), torch.full((1, 3), -0.5))
    with torch.no_grad():
        if not all(map(torch.allclose, _one_step(cell, x, state), cell(x, state))):
            raise WrongResult("expected what the cell computes")
    return _observe(_one_step)


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
