"""The question that ci/gate.sh asks, from the inputs of the Action.

They come as GATE_... in the environment. With a server this needs Python and nothing else. Where the gate does not
pass, the job's summary ends with the note on which build to move to.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from knowngood.cli.encoding import write_what_can_be_read
from knowngood.cli.exit_codes import exit_of
from knowngood.cli.loading import load
from knowngood.domain.errors import BadRequest, KnownGoodError
from knowngood.gate.cli.asking import NAMES, answer_in, finish, server_of
from knowngood.gate.cli.result import Answer, append_to_summary, has_summary, say
from knowngood.store.knowledge.trust import UNSIGNED

TEXTS = ("build", "requirements", "lock", "platform", "severity", "policy", "server", "snapshot", "public_key")

_HERE = "knowngood.move.upgrade.cli:note_here"
_FROM_SERVER = "knowngood.gate.cli.from_server:note_from_server"


def main() -> int:
    write_what_can_be_read()
    try:
        asked = _asked()
        answer = answer_in(["github", "json"] if has_summary() else ["github"], asked)
        code = finish(answer, asked)
    except KnownGoodError as error:
        say(str(error))
        return exit_of(error)
    if answer.decision != "pass" and has_summary():
        _add_note(answer, asked)
    return code


def _asked() -> dict[str, Any]:
    """The question, as the command has it. Raises BadRequest."""
    inputs: dict[str, Any] = {name: os.environ.get(f"GATE_{name.upper()}", "").strip() for name in (*TEXTS, *NAMES)}
    names = {name: [part.strip() for part in re.split(r"[,\r\n]", inputs.pop(name)) if part.strip()] for name in NAMES}
    for name, text in (*inputs.items(), *((name, part) for name, parts in names.items() for part in parts)):
        if not text.isprintable():
            raise BadRequest(f'the input {name.replace("_", "-")} is not one line of printable text: "{text}"')
    keys = [key for key in (inputs.pop("public_key"),) if key]
    if os.environ.get("GATE_UNSIGNED", "") == "true":
        keys.append(UNSIGNED)
    if keys[1:]:
        raise BadRequest("public-key and unsigned exclude each other; leave one of them out")
    is_advice = os.environ.get("GATE_ENFORCE", "") != "true"
    unsaid = {"here": False, "stdin": "", "python": "", "base": "", "only_new": False, "output": ""}
    return {**inputs, **names, **unsaid, "public_keys": keys, "form": "github", "advisory": is_advice}


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
