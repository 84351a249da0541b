"""pytorch-175903: index_put_ through an overlapping view of torch.randperm adds twice when compiled with Inductor.

The index names one random row several times. The rows are read, 1 is added, and they are written back: that row of a
tensor of zeros must hold exactly 1, and all others 0, whichever row the permutation begins with.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch

SIGNATURE = r"expected one 1\.0 and zeros elsewhere \(exactly\), got "


N = 100  # the report's five rows fit into one vector, and then newer releases are right by luck


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _strided(x):
    index = torch.as_strided(torch.randperm(N), (N,), (0,))
    values = x[index] + 1.0
    x.index_put_((index,), values, accumulate=False)
    return x


def _expanded(x):
    """The same view in common words."""
    index = torch.randperm(N)[:1].expand(N)
    x[index] += 1.0
    return x


_CASES = {"strided": _strided, "expanded": _expanded}


def _index_cloned(x):
    index = torch.as_strided(torch.randperm(N), (N,), (0,)).clone()
    values = x[index] + 1.0
    x.index_put_((index,), values, accumulate=False)
    return x


def _new_tensor(x):
    index = torch.as_strided(torch.randperm(N), (N,), (0,))
    return torch.index_put(x, (index,), x[index] + 1.0)


def _values_cloned(x):
    index = torch.as_strided(torch.randperm(N), (N,), (0,))
    values = (x[index] + 1.0).clone()
    x.index_put_((index,), values, accumulate=False)
    return x


def _observe(function):
    torch.manual_seed(42)
    result = function(torch.zeros(N))
    if sorted(result.tolist()) != [0.0] * (N - 1) + [1.0]:
        raise WrongResult("expected one 1.0 and zeros elsewhere (exactly), got {}".format(result.tolist()))
    return {"result": result.tolist()}


def control(case="strided"):
    return _observe(_CASES[case])


def baseline(case="strided"):
    return _observe(torch.compile(_CASES[case], fullgraph=True))


def clone_index(case="strided"):
    """A copied index is no view of the permutation any more."""
    return _observe(torch.compile(_index_cloned, fullgraph=True))


def out_of_place(case="strided"):
    """index_put into a new tensor: what is read is not what is written."""
    return _observe(torch.compile(_new_tensor, fullgraph=True))


def aot_eager(case="strided"):
    return _observe(torch.compile(_CASES[case], fullgraph=True, backend="aot_eager"))


def clone_values(case="strided"):
    """The clone is taken out again."""
    return _observe(torch.compile(_values_cloned, fullgraph=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
