"""The answer to a question of the gate, and what is done with it. Standard library only, as asking.py says."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from knowngood.app.cli.exit_codes import Exit
from knowngood.app.domain.errors import BadRequest

CODES = {"pass": Exit.OK, "block": Exit.FINDING, "insufficient_evidence": Exit.INSUFFICIENT}


class Answer:
    """`decision` is a key of CODES; `text` the answer in the form asked for. `summary` is Markdown, where asked for.

    No dataclass: that module takes 15 ms to import.
    """

    def __init__(self, decision: str, text: str, summary: str = "", remarks: Sequence[str] = ()) -> None:
        self.decision = decision
        self.text = text
        self.summary = summary
        self.remarks = tuple(remarks)


def deliver(answer: Answer, *, form: str, output: str) -> None:
    for remark in answer.remarks:
        say(remark)
    if answer.summary:
        _append("GITHUB_STEP_SUMMARY", answer.summary)
    if form == "github":
        _append("GITHUB_OUTPUT", f"decision={answer.decision}\n")
    if not output:
        sys.stdout.buffer.write(answer.text.encode())
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(answer.text.encode())
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror}") from None
    say(f"{answer.decision}; {output} says why")


def _append(variable: str, text: str) -> None:
    """To the file that GitHub names in this variable; outside of its jobs there is none."""
    if path := os.environ.get(variable, ""):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def end(answer: Answer, *, is_advisory: bool) -> Exit:
    code = CODES[answer.decision]
    if is_advisory and code is not Exit.OK:
        say(f"advisory: without --advisory this ends {code.value} ({answer.decision})")
        return Exit.OK
    return code


def say(text: str) -> None:
    sys.stderr.write(f"knowngood: {text}\n")
