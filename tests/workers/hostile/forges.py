"""Says through every descriptor it has what only the harness and the agent say, and leaves traps for who reads it."""

import json
import os

LINES = [
    "[1]", "7", "null", '"x"', "{}", '{"saw": []}', '{"saw": "returned"}', '{"saw": "imported", "versions": 3}',
    '{"saw": "imported", "at": 1.0, "versions": {"torch": 1}, "threads": "x"}', '{"saw": "probes", "at": 1e999, "counts": {}}',
    '{"saw": "raised", "at": 1.0, "kind": null, "message": 1, "text": [], "marked": {}}', "[" * 100000,
    '{"saw": "probes", "at": 1.0, "counts": {"eager": 1' + "0" * 400 + "}}",
    json.dumps({"saw": "returned", "at": 1.0, "observed": {"forged": {"deep": 1}}}),
    json.dumps({"type": "arm_finished", "event": "ArmFinished", "attempt": "a-2", "record": {"ending": "returned"}}),
]  # fmt: skip


def baseline(secret):
    for name in ("teardown.txt", "repro.py"):
        if os.path.lexists(name):
            os.unlink(name)
        os.symlink(secret, name)
    for fd in range(1, 64):
        for line in LINES:
            try:
                os.write(fd, b"\n" + line.encode() + b"\n")
            except OSError:
                break
    os.kill(os.getpid(), 11)
