"""pytorch-178244: a mask composed of closures makes Inductor emit C++ that uses a variable before it is declared.

An attention mask is put together of two closures, causal and padding; the padding one looks its tensor up by position.
With sizes that are not known while compiling, the bounds check of that look-up stands above what it checks. The mask
must come out as it does without compiling.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))

import torch
import torch.nn.functional as F

SIGNATURE = r"error: (['\u2018]tmp\d+['\u2019] was not declared in this scope|use of undeclared identifier 'tmp\d+')"

ENV = {"env_variable": {"TORCHINDUCTOR_DISABLE_CPP_BOUNDS_CHECK": "1"}}


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _causal(batch, head, query, key):
    return key <= query


def _padding(allowed):
    def look_up(batch, head, query, key):
        return allowed[batch, key]
    return look_up


def _both(*masks):
    def every(batch, head, query, key):
        result = query.new_ones((), dtype=torch.bool)
        for mask in masks:
            result = result & mask(batch, head, query, key)
        return result
    return every


def _positions(allowed, start, queries, keys):
    batch = torch.arange(allowed.shape[0]).view(-1, 1, 1, 1)
    head = torch.arange(1).view(1, -1, 1, 1)
    query = (torch.arange(queries) + start).view(1, 1, -1, 1)
    key = torch.arange(keys).view(1, 1, 1, -1)
    return batch, head, query, key


def _composed(allowed, start, queries, keys):
    return _both(_causal, _padding(allowed))(*_positions(allowed, start, queries, keys))


def _looked_up_first(allowed, start, queries, keys):
    return _both(_padding(allowed), _causal)(*_positions(allowed, start, queries, keys))


def _inline(allowed, start, queries, keys):
    _, _, query, key = _positions(allowed, start, queries, keys)
    return (key <= query) & allowed[:, None, None, :]


def _attention(query, key, value, allowed, start):
    mask = _composed(allowed, start, query.shape[2], key.shape[2])
    mask = mask.expand(query.shape[0], 1, query.shape[2], key.shape[2])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def _attention_looked_up_first(query, key, value, allowed, start):
    mask = _looked_up_first(allowed, start, query.shape[2], key.shape[2])
    mask = mask.expand(query.shape[0], 1, query.shape[2], key.shape[2])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def _allowed(keys):
    allowed = torch.ones(2, keys, dtype=torch.bool)
    allowed[0, 1] = False
    return allowed


def _masks(function):
    """The mask of one decoding step: 1 query, 10 keys."""
    got = function(_allowed(10), 9, 1, 10)
    expected = _composed(_allowed(10), 9, 1, 10)
    if not torch.equal(got, expected):
        raise WrongResult("expected {}, got {}".format(expected.tolist(), got.tolist()))
    return {"shape": list(got.shape), "allowed": int(got.sum())}


def _generation(function):
    """The report's order of calls: a prompt of 9, then two tokens, which is when sizes become unknown."""
    torch.manual_seed(0)
    largest = 0.0
    with torch.no_grad():
        for queries, keys in ((9, 9), (1, 10), (1, 11)):
            tensors = [torch.randn(2, 2, length, 16) for length in (queries, keys, keys)]
            got = function(*tensors, _allowed(keys), keys - queries)
            expected = _attention(*tensors, _allowed(keys), keys - queries)
            largest = max(largest, float((got - expected).abs().max()))
    if largest > 1e-4:
        raise WrongResult("expected attention within 1e-4 of what it is uncompiled, got {} off".format(largest))
    return {"steps": 3, "largest_difference": largest}


def control(case="mask"):
    return _masks(_composed) if case == "mask" else _generation(_attention)


def baseline(case="mask"):
    if case == "mask":
        return _masks(torch.compile(_composed, dynamic=True))
    return _generation(torch.compile(_attention))


def no_bounds_check(case="mask"):
    """Inductor's own switch: no check of indices that are looked up."""
    return _masks(torch.compile(_composed, dynamic=True, options={"assert_indirect_indexing": False}))


def inline_mask(case="mask"):
    """Nothing is looked up by position: the padding is broadcast."""
    return _masks(torch.compile(_inline, dynamic=True))


def look_up_first(case="mask"):
    """The padding stands before the comparison, so that its check stands after what it checks."""
    if case == "mask":
        return _masks(torch.compile(_looked_up_first, dynamic=True))
    return _generation(torch.compile(_attention_looked_up_first))


def static_sizes(case="mask"):
    """Sizes that are known leave nothing to check."""
    return _masks(torch.compile(_composed, dynamic=False))


def no_simd(case="mask"):
    """Without vectors."""
    return _masks(torch.compile(_composed, dynamic=True, options={"cpp.simdlen": 0}))


def env_variable(case="mask"):
    """ENV sets a variable that no release reads."""
    return _masks(torch.compile(_composed, dynamic=True))


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
