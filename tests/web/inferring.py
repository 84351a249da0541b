"""A notebook in which answers are inferred: from another Python of the same wheel, and from the CPU to a GPU."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast

from knowngood.domain.access import Actor
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Device, Issue, Requires, Variant
from knowngood.domain.measuring.job import ArmSpec, Attempt, JobSpec
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.share.bundle import BundleHeader, write_bundle
from knowngood.share.store import take_in_bundle
from knowngood.store.engine import Engine
from tests.make import NOON, make_attempt, make_build, make_issue
from tests.web import given
from tests.web.given import BAD, BUILDS, GOOD, GPU_CLASS, GPU_ONLY, MASK, Asked

BAD_312, GOOD_312 = (make_build(one.torch, pinned_triton=one.pinned_triton, python="3.12") for one in (BAD, GOOD))

PAIRS = 120
AGREED = PAIRS - 1
PAIRED = tuple(make_issue(f"pair-{number}", component="Paired", workarounds=()) for number in range(PAIRS))
DIFFERING = PAIRED[0]
SMOKE = make_issue("smoke-1", title="torch.compile runs at all", is_smoke=True, workarounds=())
HALF = make_issue(
    "half-1",
    title="A workaround helps with one shape",
    workarounds=("eager", "flags", "narrow"),
    variants=(
        Variant("as_reported", "", is_reported=True),
        Variant("big", ""),
        Variant("odd", "", arms=("control", "baseline", "eager"), why_not="There is no block in it."),
    ),
)
ANYWHERE = make_issue(
    "any-1", title="A hook runs twice", component="Dynamo", requires=Requires(device=Device.ANY), workarounds=()
)
ISSUES: tuple[Issue, ...] = (SMOKE, HALF, ANYWHERE, MASK, GPU_ONLY, *PAIRED)


def fill(engine: Engine) -> None:
    """Python 3.12 of 2.7.1 agrees with 3.11 in all cells but one and was asked nothing else; 2.8.0 has no smoke row."""
    given.save(engine, ISSUES, [*BUILDS, BAD_312, GOOD_312])
    _import(engine, [_attempt(issue, build, arm) for issue in (SMOKE, *PAIRED) for build in BOTH for arm in ARMS])
    given.run(engine, Asked([BAD, GOOD], NOON, issues=[HALF, ANYWHERE, MASK]), _half)
    given.run(engine, Asked([BAD], NOON, hardware=GPU_CLASS, issues=[GPU_ONLY]))


BOTH, ARMS = (BAD, BAD_312), ("control", "baseline")


def _attempt(issue: Issue, build: Build, arm: str) -> Attempt:
    fails = (issue, build, arm) == (DIFFERING, BAD, "baseline")
    return make_attempt(Outcome.MATCH if fails else Outcome.PASS, issue=issue, build=build, arm=arm)


def _import(engine: Engine, attempts: Iterable[Attempt]) -> None:
    """As a bundle: to run so many takes half a minute."""
    with NamedTemporaryFile(suffix=".jsonl.gz") as file:
        write_bundle(cast("BinaryIO", file), BundleHeader(NOON, "lab"), attempts)
        file.flush()
        take_in_bundle(engine, Path(file.name), NOON, by=Actor("ada"))


def _half(spec: JobSpec, arm: ArmSpec) -> Outcome:
    """Both shapes but the reported one fail on 2.7.1; `eager` helps with one of them, `flags` with none."""
    if arm.issue != HALF.id:
        return given.outcome_of(spec, arm)
    fails = spec.build.build_id.release == "2.7.1" and arm.variant != "as_reported"
    helped = arm.arm == "control" or (arm.arm == "eager" and arm.variant == "big")
    return Outcome.MATCH if fails and not helped else Outcome.PASS
