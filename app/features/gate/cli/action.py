"""`python -m knowngood.app.features.gate.cli.action`: the question that ci/gate.sh asks, from the inputs of the Action.

They come as GATE_... in the environment. With a server this needs Python and nothing else. Where the gate does not
pass, the job's summary ends with the note on which build to move to.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from knowngood.app.cli.exit_codes import exit_of
from knowngood.app.cli.loading import load
from knowngood.app.domain.errors import KnownGoodError
from knowngood.app.features.gate.cli.asking import NAMES, answer_in, finish, server_of
from knowngood.app.features.gate.cli.result import Answer, append_to_summary, has_summary, say

TEXTS = ("build", "requirements", "lock", "severity", "policy", "server", "snapshot", "public_key")

_HERE = "knowngood.app.features.upgrade.cli:note_here"
_FROM_SERVER = "knowngood.app.features.gate.cli.from_server:note_from_server"


def main() -> int:
    inputs: dict[str, Any] = {name: os.environ.get(f"GATE_{name.upper()}", "") for name in (*TEXTS, *NAMES)}
    names = {name: [part.strip() for part in inputs.pop(name).split(",") if part.strip()] for name in NAMES}
    keys = [key for key in (inputs.pop("public_key"),) if key]
    is_advice = os.environ.get("GATE_ENFORCE", "") != "true"
    unsaid = {"here": False, "stdin": "", "python": "", "base": "", "only_new": False, "output": ""}
    asked = {**inputs, **names, **unsaid, "public_keys": keys, "form": "github", "advisory": is_advice}
    try:
        answer = answer_in(["github", "json"] if has_summary() else ["github"], asked)
        code = finish(answer, asked)
    except KnownGoodError as error:
        say(str(error))
        return exit_of(error)
    if answer.decision != "pass" and has_summary():
        _add_note(answer, asked)
    return code


def _add_note(answer: Answer, asked: Mapping[str, Any]) -> None:
    """The decision stands without it: what fails here is told, and changes no exit code."""
    document = json.loads(answer.texts["json"])
    if not document["build"]:
        return
    issues = list(dict.fromkeys(reason["issue"] for reason in document["reasons"]))
    about = (document["build"], issues, document["hardware"])
    try:
        if asked["snapshot"] or not server_of(asked):
            note = load(_HERE)(*about, asked["snapshot"], asked["public_keys"])
        else:
            note = load(_FROM_SERVER)(server_of(asked), *about)
    except KnownGoodError as error:
        say(f"no note on an upgrade: {error}")
        return
    append_to_summary(f"\n{note}")


if __name__ == "__main__":
    sys.exit(main())
