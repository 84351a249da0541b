"""Write `repros/known.answers`: what the gate says of every shipped cell, for programs that ask about themselves.

Made of `repros/known.snapshot` alone: run it after tools/shipped.py, and after a change of what the gate says.
"""

import sys
from dataclasses import asdict

from knowngood.app.features.environments.resolve import resolve_build
from knowngood.app.features.in_code.finding import Finding
from knowngood.app.features.in_code.from_gate import findings_of
from knowngood.app.features.in_code.shipped_answers import FILE, write_answers
from knowngood.app.knowledge.model import Knowledge
from knowngood.app.knowledge.shipped import read_shipped


def shipped_answers(knowledge: Knowledge) -> bytes:
    """The same snapshot gives the same bytes."""
    known = knowledge.known
    issues = {
        issue.id: (
            issue.title,
            issue.signature.kind.value,
            issue.report.url if issue.report else "",
            issue.requires.package,
        )
        for issue in known.issues.values()
    }
    builds = [asdict(build) for build in known.builds.values()]
    return write_answers(issues, builds, {id_: answers_on(id_, knowledge) for id_ in sorted(knowledge.tested)})


def answers_on(build: str, knowledge: Knowledge) -> list[Finding]:
    """Of every issue that concerns each user of torch, on each class."""
    known = knowledge.known
    issues = [issue for issue in known.issues.values() if not issue.requires.package]
    resolved = resolve_build(build, known.builds, knowledge.tested)
    return [finding for hardware in known.hardware for finding in findings_of(issues, resolved, (hardware,), knowledge)]


if __name__ == "__main__":
    FILE.write_bytes(shipped_answers(read_shipped().knowledge))
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes\n")
