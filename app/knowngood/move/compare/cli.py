"""`knowngood compare A B`: what is fixed, what breaks and what stays, from one build to another."""

import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from knowngood.cli.choice import one_of
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import knowledge_here
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_FORMAT_JSON,
    FORMS,
    ISSUES,
    PUBLIC_KEY,
    SNAPSHOT_FILE,
    argument,
    flag,
    names,
    option,
    text,
)
from knowngood.domain.errors import BadRequest
from knowngood.gate.asking import say
from knowngood.move.compare.comparison import CompareRequest, Comparison, read_comparison
from knowngood.move.compare.renderers import comparison_markdown, comparison_text
from knowngood.move.pair import Transition
from knowngood.store.knowledge.model import Knowledge


@command(
    "Compare two builds, issue by issue; the first line is the answer. Only a proven pass counts as fixed.\n\n"
    "Exit codes: 0 compared; 1 a transition of --fail-on was found; 2 the question cannot be understood, for "
    "example an unknown build; 3 no issue has an answer on both builds, so nothing was compared; 4 the store "
    "cannot be used.",
    argument("a", "The build you are on, such as torch-2.5.1+cu124, or 2.5.1.", default=""),
    argument("b", "The build to move to.", default=""),
    text(
        "--from-diff", "Instead of A and B: what this checkout's files state at this git revision, and now.", "REVISION"
    ),
    text("--hardware", "One class. Default: cpu-x86_64, if it was measured.", "CLASS"),
    ISSUES,
    option("--format", "form", type=FORMS, default="text", help="The form of the answer."),
    AS_FORMAT_JSON,
    flag("--all", "in_full", help_="Every issue in words, not only what fits on a screen."),
    names("--fail-on", "Transitions that lead to exit code 1, such as regressed."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="compare 2.5.1 2.6.0 --fail-on regressed",
)
def compare(
    *,
    a: str,
    b: str,
    from_diff: str,
    hardware: str,
    issues: Sequence[str],
    form: str,
    as_json: bool,
    in_full: bool,
    fail_on: Sequence[str],
    snapshot: str,
    public_keys: Sequence[str],
) -> Exit:
    failing = one_of(Transition, fail_on, "--fail-on", "transition")
    if bool(from_diff) == bool(a or b) or bool(a) != bool(b):
        raise BadRequest("name two builds, such as 2.5.1 2.6.0, or --from-diff and the revision to compare with")
    now = datetime.now(UTC)
    knowledge = knowledge_here(snapshot, public_keys)
    pairs = _pairs_in(from_diff, knowledge) if from_diff else [(a, b)]
    compared = [
        read_comparison(CompareRequest(hardware, tuple(issues), a=pair[0], b=pair[1]), knowledge.known, now)
        for pair in pairs
        if pair
    ]
    texts = [_render(comparison, "json" if as_json else form, now, in_full=in_full) for comparison in compared]
    is_list = bool(from_diff) and (as_json or form == "json")
    sys.stdout.write(f"[{','.join(texts)}]\n" if is_list else "\n".join(texts))
    ends = [Exit.INSUFFICIENT if None in pairs else Exit.OK, *(_end(comparison, failing) for comparison in compared)]
    return max(ends, key=_GRAVITY.index)


_GRAVITY = (Exit.OK, Exit.INSUFFICIENT, Exit.FINDING)


def _end(compared: Comparison, failing: Collection[str]) -> Exit:
    if any(pair.transition in failing for pair in compared.pairs):
        return Exit.FINDING
    return Exit.INSUFFICIENT if compared.is_blind else Exit.OK


def _pairs_in(revision: str, knowledge: Knowledge) -> list[tuple[str, str] | None]:
    """The builds that files move between, each pair once; None stands for files whose builds cannot be compared. Files
    are named on standard error.
    """
    from knowngood.move.compare.git_changes import torch_changes

    changes = torch_changes(revision, knowledge)
    if not changes:
        say(f"no file that differs from {revision} states another torch")
    for change in changes:
        say(f"{change.path}: {change.sentence}")
    return list(dict.fromkeys(change.builds for change in changes))


def _render(compared: Comparison, form: str, now: datetime, *, in_full: bool) -> str:
    if form == "json":
        from knowngood.move.schemas import compare_body

        return f"{compare_body(compared, now).model_dump_json(indent=2)}\n"
    return comparison_markdown(compared) if form == "markdown" else comparison_text(compared, in_full=in_full)
