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


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
