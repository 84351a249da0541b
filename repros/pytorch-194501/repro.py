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


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
