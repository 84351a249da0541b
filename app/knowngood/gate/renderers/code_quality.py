"""A ruling as GitLab's code quality report, which stands at the line of a merge request that states torch.

GitLab wants of each finding a description, a name, a fingerprint that stays, a severity and a place; it shows plain
text. As in SARIF what passes is left out, and the fingerprint holds issue, class and file but not the build.
"""

import json
from typing import Any

from knowngood.gate.decision import Decision, Ruling
from knowngood.gate.policy import Effect
from knowngood.gate.renderers.common import active_reasons, best_workaround, fix_in_words, is_explained, named, one_line
from knowngood.gate.renderers.sarif import NO_ANSWER, PLACEHOLDER, fingerprint

_SEVERITIES = {Effect.BLOCK: "blocker", Effect.INSUFFICIENT: "major", Effect.WARN: "minor"}


def answer_code_quality(ruling: Ruling, base: str = "", *, where: str = "") -> str:
    """A JSON list. `where` is the environment's file, relative to the repository."""
    del base  # the report holds no addresses
    place = {"path": one_line(where).removeprefix("./") or PLACEHOLDER, "lines": {"begin": ruling.line or 1}}
    reasons = active_reasons(ruling)
    findings: list[dict[str, Any]] = []
    for reason in reasons:
        workaround = best_workaround(reason)
        help_ = f"workaround {one_line(workaround.how)}: {one_line(workaround.title)}" if workaround else ""
        says = [
            f"{one_line(reason.issue)} on {named(reason.hardware)}: {one_line(reason.why)}",
            fix_in_words(reason),
            help_,
        ]
        findings.append(
            {
                "description": "; ".join(part for part in says if part),
                "check_name": one_line(reason.issue),
                "fingerprint": fingerprint(reason.issue, reason.hardware, where),
                "severity": _SEVERITIES[reason.effect],
                "location": place,
            }
        )
    if not is_explained(ruling, reasons):
        findings.append(
            {
                "description": " ".join(map(one_line, (ruling.why, *ruling.notes))),
                "check_name": NO_ANSWER,
                "fingerprint": fingerprint(NO_ANSWER, "", where),
                "severity": _SEVERITIES[Effect.BLOCK if ruling.decision is Decision.BLOCK else Effect.INSUFFICIENT],
                "location": place,
            }
        )
    return json.dumps(findings, ensure_ascii=False, indent=2) + "\n"
