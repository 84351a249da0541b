"""Two `up` at once, on either database: one run is queued, and nothing that was measured meanwhile is asked again."""

import threading
from collections.abc import Callable, Sequence

from knowngood.cli.choice import Chosen
from knowngood.domain.measuring.planning import PlannedJob, PlanRequest
from knowngood.measure.jobs import plan, queue
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.job_queue import create_run
from knowngood.store.queries import load_run, load_runs
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.store.given import given_catalogue, given_results, planned

ISSUE, BUILD = make_issue(), make_build()
ASKED = {"by": "up"}


def plan_on(engine: Engine) -> Callable[[], Sequence[PlannedJob]]:
    chosen = Chosen((ISSUE,), (BUILD,), (HARDWARE,))
    return lambda: plan(engine, chosen, PlanRequest(), only_local=True)


def test_of_many_that_start_together_one_queues_and_the_others_follow_it(engine: Engine) -> None:
    """They wait for each other in the database, so that it holds for hosts that share nothing else."""
    given_catalogue(engine, [ISSUE], [BUILD])
    together, found = threading.Barrier(6), list[tuple[str, bool]]()

    def start() -> None:
        jobs = plan_on(engine)()
        together.wait()
        found.append(queue(engine, jobs, ASKED, (), plan_on(engine)))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with reading(engine) as s:
        (run,) = load_runs(s, 10)
    assert sorted(found) == [(run.id, False)] * 5 + [(run.id, True)]
    assert run.arms_total == len(ISSUE.arms)


def test_what_another_up_measured_between_planning_and_queueing_is_not_asked_again(engine: Engine) -> None:
    """A price is told in between, which takes seconds; by then the other one may have come to its end."""
    given_catalogue(engine, [ISSUE], [BUILD])
    jobs = plan_on(engine)()
    assert jobs
    with unit_of_work(engine) as s:
        create_run(s, planned([ISSUE], [BUILD]), ASKED, NOON)
    given_results(engine)
    run, is_own = queue(engine, jobs, ASKED, (), plan_on(engine))
    with reading(engine) as s:
        assert (load_run(s, run).arms_total, is_own) == (0, True)
