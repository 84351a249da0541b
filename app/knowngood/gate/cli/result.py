"""The answer to a question of the gate, and what is done with it. Standard library only, as asking.py says."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from knowngood.cli.encoding import defused, one_printable_line
from knowngood.cli.exit_codes import Exit
from knowngood.domain.errors import BadRequest

SUMMARY = "summary"
_SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
CODES = {"pass": Exit.OK, "block": Exit.FINDING, "insufficient_evidence": Exit.INSUFFICIENT}


class Answer:
    """`decision` is a key of CODES; `texts` has the answer in each form that was asked for.

    No dataclass: that module takes 15 ms to import.
    """

    def __init__(self, decision: str, texts: Mapping[str, str], remarks: Sequence[str] = ()) -> None:
        self.decision = decision
        self.texts = texts
        self.remarks = tuple(remarks)


def deliver(answer: Answer, *, form: str, output: str) -> None:
    for remark in answer.remarks:
        say(remark)
    text = answer.texts[form]
    if form == "github":
        append_to_summary(answer.texts.get(SUMMARY, ""))
        _append("GITHUB_OUTPUT", f"decision={answer.decision}\n")
    if not output:
        sys.stdout.buffer.write((text if form == "github" else defused(text)).encode())
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(text.encode())
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror}") from None
    say(f"{answer.decision}; {output} says why")


def has_summary() -> bool:
    return bool(os.environ.get(_SUMMARY_FILE))


def append_to_summary(text: str) -> None:
    if text:
        _append(_SUMMARY_FILE, text)


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
    sys.stderr.write(f"knowngood: {one_printable_line(text)}\n")
