"""`knowngood compare A B`: what is fixed, what breaks and what stays, from one build to another."""

import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from knowngood.cli.choice import issues_of, one_of
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import knowledge_here
from knowngood.cli.lazy import command
from knowngood.cli.loading import load
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_FORMAT_JSON,
    FORMS,
    ISSUES,
    PUBLIC_KEY,
    SNAPSHOT_FILE,
    argument,
    names,
    option,
    text,
)
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import asked_build
from knowngood.domain.errors import BadRequest, UnknownBuild, UnknownIssue
from knowngood.domain.hardware_names import measured_classes
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.verdicts.known import Known
from knowngood.gate.asking import say
from knowngood.move.compare.comparison import Comparison, Transition
from knowngood.move.compare.comparison import compare as compare_builds
from knowngood.move.compare.renderers import comparison_markdown, comparison_text
from knowngood.store.knowledge.model import Knowledge

if TYPE_CHECKING:
    from knowngood.move.compare.git_changes import ChangedTorch

_TORCH_CHANGES = "knowngood.move.compare.git_changes:torch_changes"
_BODY = "knowngood.move.compare.schemas:compare_body"


@command(
    "Compare two builds, issue by issue; the first line is the answer. Only a proven pass counts as fixed.\n\n"
    "Exit codes: 0 compared; 1 a transition of --fail-on was found; 2 the question cannot be understood, such as a "
    "build that is not known; 3 no issue answers on both builds, so that nothing was compared; 4 the store cannot be "
    "used.",
    argument("a", "The build that is left, such as torch-2.5.1+cu124, or 2.5.1.", default=""),
    argument("b", "The build that is moved to.", default=""),
    text("--from-diff", "In place of A and B: what this checkout's files state now, and at this revision.", "REVISION"),
    text("--hardware", "One class; cpu-x86_64 unless said, where it was measured.", "CLASS"),
    ISSUES,
    option("--format", "form", type=FORMS, default="text", help="How it is told."),
    AS_FORMAT_JSON,
    names("--fail-on", "Transitions that end in exit code 1 where one is found, such as regressed."),
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
    fail_on: Sequence[str],
    snapshot: str,
    public_keys: Sequence[str],
) -> Exit:
    failing = one_of(Transition, fail_on, "--fail-on", "transition")
    if bool(from_diff) == bool(a or b) or bool(a) != bool(b):
        raise BadRequest("name two builds, such as 2.5.1 2.6.0, or --from-diff and the revision to compare with")
    now = datetime.now(UTC)
    knowledge = knowledge_here(snapshot, public_keys)
    ends: list[Exit] = []
    pairs = _pairs_in(from_diff, knowledge, ends) if from_diff else [(a, b)]
    compared = [_compared(knowledge.known, pair, hardware, issues, now) for pair in pairs]
    texts = [_told(one, "json" if as_json else form, now) for one in compared]
    is_list = bool(from_diff) and (as_json or form == "json")
    sys.stdout.write(f"[{','.join(texts)}]\n" if is_list else "\n".join(texts))
    return max([*ends, *(_end(one, failing) for one in compared)], key=_GRAVITY.index, default=Exit.OK)


_GRAVITY = (Exit.OK, Exit.INSUFFICIENT, Exit.FINDING)


def _end(compared: Comparison, failing: Collection[str]) -> Exit:
    if any(pair.transition in failing for pair in compared.pairs):
        return Exit.FINDING
    return Exit.INSUFFICIENT if compared.is_blind else Exit.OK


def _pairs_in(revision: str, knowledge: Knowledge, ends: list[Exit]) -> list[tuple[str, str]]:
    """The builds that files move between, each pair once. Files are named on standard error; for one whose builds
    cannot be compared `ends` gets an end.
    """
    pairs: dict[tuple[str, str], None] = {}
    changes: list[ChangedTorch] = load(_TORCH_CHANGES)(revision, knowledge)
    if not changes:
        say(f"no file that differs from {revision} states another torch")
    for change in changes:
        say(f"{change.path}: {change.sentence}")
        if change.before and change.after and change.before.build and change.after.build:
            pairs[change.before.build, change.after.build] = None
        else:
            ends.append(Exit.INSUFFICIENT)
    return list(pairs)


def _compared(known: Known, sides: tuple[str, str], hardware: str, issues: Sequence[str], now: datetime) -> Comparison:
    """As the page compares (service.py), without what it takes to refuse in HTTP."""
    before, after = (_found(text, side, known) for text, side in zip(sides, "ab", strict=True))
    try:
        wanted = issues_of(known.issues, issues)
    except UnknownIssue as error:
        raise BadRequest(f"issues: {error}") from None
    return compare_builds(wanted, before, after, _class(hardware, known.hardware), known, now=now)


def _found(text: str, side: str, known: Known) -> Build:
    try:
        return asked_build(text, known.builds)
    except UnknownBuild as error:
        near = f"; nearest: {', '.join(error.nearest)}" if error.nearest else ""
        raise BadRequest(f"{side}: {error.problem}{near}") from None


def _class(asked: str, measured: Sequence[str]) -> str:
    if asked:
        return measured_classes([asked], measured)[0]
    return CPU_CLASS if CPU_CLASS in measured or not measured else measured[0]


def _told(compared: Comparison, form: str, now: datetime) -> str:
    if form == "json":
        return f"{load(_BODY)(compared, now).model_dump_json(indent=2)}\n"
    return comparison_markdown(compared) if form == "markdown" else comparison_text(compared)
