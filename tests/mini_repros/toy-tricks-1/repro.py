"""toy-tricks-1: Passes by tricks

Each variant but the first is a way to pass without having run the suspect compiled: each proves nothing, so the cell is
inconclusive, and the first variant alone passes.

It runs with the toy torch and with a real one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import json
import os
import threading

import torch

SIGNATURE = r"conflicting declaration .*tmp_acc\d+_arr"


def _number():
    return torch.ones(()) if hasattr(torch, "ones") else 1.0


def _suspect(x):
    return x + x


def _helper(x):
    return x * 2


def _compiled(function, backend="eager"):
    return torch.compile(function, backend=backend)(_number())


def _broken(graph, inputs):
    raise RuntimeError("this backend compiles nothing")


def _raising(graph, inputs):
    def call(*args):
        raise RuntimeError("this compiled function raises")

    return call


def _honest():
    return _compiled(_suspect)


def _decoy():
    _compiled(_helper)
    return _suspect(_number())


def _swallowed(backend=_broken):
    try:
        return _compiled(_suspect, backend)
    except Exception:
        return _suspect(_number())


def _suppressed():
    torch._dynamo.config.suppress_errors = True
    return _compiled(_suspect, _broken)


def _counter():
    torch._dynamo.utils.counters["stats"]["unique_graphs"] += 1
    return _suspect(_number())


def _forged(is_end=False):
    path = {"kind": "frame", "name": "_suspect", "backend": "eager", "compiled": 1, "ran": 1}
    path.update(raised=0, gave_up=0, refused=0, objects=0, kernels=0)
    for saw in (
        {"saw": "probes", "counts": {"dynamo_graph": 1}, "paths": [path]},
        {"saw": "returned", "observed": {"total": "2.0"}},
    ):
        line = json.dumps({"at": 1.0, "nonce": "", **saw}).encode() + b"\n"
        for fd in range(3, 64):
            try:
                os.write(fd, line)
            except OSError:
                pass
    if is_end:
        os._exit(0)
    return _suspect(_number())


def _forged_end():
    return _forged(is_end=True)


def _raises():
    return _swallowed(_raising)


def _namesake():
    def _suspect(x):
        return x * 2

    _compiled(_suspect)
    return globals()["_suspect"](_number())


def _renamed():
    _helper.__name__ = _helper.__qualname__ = "_suspect"
    return _compiled(_helper)


def _unwrapped():
    torch.compile = lambda function, **options: function
    return _compiled(_suspect)


def _in_child():
    child = os.fork()
    if child == 0:
        _compiled(_suspect)
        os._exit(0)
    os.waitpid(child, 0)
    return _suspect(_number())


def _in_thread():
    thread = threading.Thread(target=lambda: _compiled(_suspect, _raising))
    thread.start()
    thread.join()
    return _suspect(_number())


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return True


def _quietly():
    with _Quiet():
        return _compiled(_suspect, _raising)
    return _suspect(_number())


TRICKS = {
    "honest": _honest,
    "decoy": _decoy,
    "swallowed": _swallowed,
    "suppressed": _suppressed,
    "counter": _counter,
    "forged": _forged,
    "forged_end": _forged_end,
    "raising": _raises,
    "namesake": _namesake,
    "renamed": _renamed,
    "unwrapped": _unwrapped,
    "in_child": _in_child,
    "in_thread": _in_thread,
    "quietly": _quietly,
}


def control():
    """The same sum without a compiler."""
    return {"total": float(torch.add(_number(), _number()))}


def baseline(trick="honest"):
    """The sum of two ones, whatever way it came about."""
    return {"total": float(TRICKS[trick]())}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
