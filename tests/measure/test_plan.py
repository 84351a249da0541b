"""What is planned while rows are edited, on either database."""

from dataclasses import replace

from knowngood.cli.choice import Chosen
from knowngood.domain.measuring.planning import PlanRequest
from knowngood.measure.jobs import plan
from knowngood.store.engine import Engine
from tests.make import HARDWARE, make_build, make_issue
from tests.store.given import given_catalogue, planned

ISSUE, BUILD = make_issue(), make_build()


def test_a_row_that_was_edited_since_it_was_chosen_is_planned_as_it_is_now(engine: Engine) -> None:
    """Else a result would be filed under what the row no longer is, or an arm be asked for that it no longer has."""
    newer = replace(ISSUE, arms=tuple(replace(arm, code=f"{arm.id}-2") for arm in ISSUE.arms))
    given_catalogue(engine, [newer], [BUILD])
    found = plan(engine, Chosen((ISSUE,), (BUILD,), (HARDWARE,)), PlanRequest())
    bindings = [arm.binding for job in found for arm in job.arms]
    assert bindings
    assert bindings == [arm.binding for job in planned([newer], [BUILD]) for arm in job.arms]
