"""toy-looks-for-secrets-1: Looks for secrets

The baseline prints every variable it can see, its own and its parent's, and fails where one looks like a secret.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import os
import pathlib
import re

import torch

SIGNATURE = r""


class WrongResult(Exception):
    """The call came back with a value that is wrong."""



def _visible():
    """Names and values of this process and of the one that started it."""
    texts = []
    for process in ("self", str(os.getppid())):
        try:
            texts.append(pathlib.Path("/proc", process, "environ").read_bytes())
        except OSError:  # what cannot be read is not seen
            pass
    parent = b"\0".join(texts).decode(errors="replace").split("\0")
    return sorted({"{}={}".format(*item) for item in os.environ.items()} | set(parent))


def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """Nothing that looks like a secret may be seen."""
    print(*_visible(), sep="\n")
    found = [text for text in _visible() if re.match(r"KNOWNGOOD_|PG|.*(TOKEN|SECRET|PASSWORD|DATABASE|CREDENTIAL)", text)]
    if found:
        raise WrongResult("expected no secret, got {}".format(", ".join(found)))
    return {"total": torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
