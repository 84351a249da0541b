"""Write `repros/known.answers`: what the gate says of every shipped cell, for programs that ask about themselves.

Made of `repros/known.snapshot` alone: run it after tools/shipped.py, and after a change of what the gate says.
"""

import sys
from dataclasses import asdict

from knowngood.domain.issue import Issue
from knowngood.environments.resolve import ResolvedBuild, resolve_build
from knowngood.gate.in_code.finding import Finding
from knowngood.gate.in_code.from_gate import findings_of
from knowngood.gate.in_code.shipped_answers import FILE, AboutIssue, cell_of, write_answers
from knowngood.store.knowledge.model import Knowledge
from knowngood.store.knowledge.shipped import read_shipped


def shipped_answers(knowledge: Knowledge) -> bytes:
    """The same snapshot gives the same bytes."""
    known = knowledge.known
    issues = {issue.id: _about(issue, knowledge) for issue in known.issues.values()}
    builds = [asdict(build) for build in known.builds.values()]
    return write_answers(issues, builds, {id_: answers_on(id_, knowledge) for id_ in sorted(knowledge.tested)})


def answers_on(build: str, knowledge: Knowledge) -> list[Finding]:
    """Of every issue that concerns each user of torch, on each class."""
    known = knowledge.known
    issues = [issue for issue in known.issues.values() if not issue.requires.package]
    resolved = resolve_build(build, known.builds, knowledge.tested)
    return [one for class_ in known.hardware for one in findings_of(issues, resolved, (class_,), knowledge)]


def _about(issue: Issue, knowledge: Knowledge) -> AboutIssue:
    facts = (issue.title, issue.signature.kind.value, issue.report.url if issue.report else "")
    if not issue.requires.package:
        return facts, "", ()
    without = ResolvedBuild(None, "any build", packages={"another": "1"})
    (elsewhere,) = findings_of([issue], without, (), knowledge)
    return facts, issue.requires.package, cell_of(elsewhere)


if __name__ == "__main__":
    FILE.write_bytes(shipped_answers(read_shipped().knowledge))
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes\n")
