"""`python -m knowngood.app.features.gate.cli.action`: the question that ci/gate.sh asks, from the inputs of the Action.

They come as GATE_... in the environment. With a server this needs Python and nothing else.
"""

import os
import sys

from knowngood.app.cli.exit_codes import exit_of
from knowngood.app.domain.errors import KnownGoodError
from knowngood.app.features.gate.cli.asking import NAMES, ask
from knowngood.app.features.gate.cli.result import say

TEXTS = ("build", "requirements", "lock", "severity", "policy", "server", "snapshot", "public_key")


def main() -> int:
    inputs = {name: os.environ.get(f"GATE_{name.upper()}", "") for name in (*TEXTS, *NAMES)}
    names = {name: [part.strip() for part in inputs.pop(name).split(",") if part.strip()] for name in NAMES}
    unsaid = {"here": False, "stdin": "", "python": "", "base": "", "only_new": False, "output": ""}
    keys = [key for key in (inputs.pop("public_key"),) if key]
    is_advice = os.environ.get("GATE_ENFORCE", "") != "true"
    try:
        return ask(**inputs, **names, **unsaid, public_keys=keys, form="github", advisory=is_advice)
    except KnownGoodError as error:
        say(str(error))
        return exit_of(error)


if __name__ == "__main__":
    sys.exit(main())
