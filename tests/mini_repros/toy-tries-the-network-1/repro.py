"""toy-tries-the-network-1: Tries the network

The baseline looks for network interfaces beside the loopback, and fails where there is one.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import socket

import torch

SIGNATURE = r""


class WrongResult(Exception):
    """The call came back with a value that is wrong."""



def control():
    """The same sum without a compiler."""
    return {"total": torch.total([1, 2, 3])}


def baseline():
    """Where the kernel allows it, an arm has a loopback and nothing else."""
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        raise WrongResult("expected a loopback alone, got {}".format(", ".join(names)))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        total = torch.compile(torch.total, mode="reduce-overhead")([1, 2, 3])
    return {"total": total, "interfaces": ", ".join(names)}


if __name__ == "__main__":  # Standalone, second half: in ../standalone.py. As one file: knowngood issue ID --script
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standalone.py")) as _second_half:
        exec(compile(_second_half.read(), _second_half.name, "exec"))
