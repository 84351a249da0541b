"""The clock of a run: simulated runs whose end is known, and what is said of each on the way."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from knowngood.domain.measuring.worker_stats import JobAt, Key, seconds_left


@dataclass(frozen=True)
class World:
    """A run as it will be: jobs one after another, each an environment (seconds) and arms on so many lanes."""

    jobs: Sequence[tuple[str, float, Sequence[tuple[Key, float]]]]
    lanes: int = 2
    before: Mapping[Key, float] | None = None
    environment_s: float | None = None


def played(world: World) -> list[JobAt]:
    at, jobs = 0.0, []
    for build, making, arms in world.jobs:
        ready, done = at + making, []
        lanes = [ready] * world.lanes
        for key, seconds in arms:
            lane = lanes.index(min(lanes))
            done.append((key, (lanes[lane], lanes[lane] + seconds)))
            lanes[lane] += seconds
        jobs.append(JobAt(build, is_over=True, is_ready=True, environment=(at, ready), to_do=(), running=(), done=done))
        at = max(lanes) + 0.3
    return jobs


def seen(jobs: Sequence[JobAt], now: float) -> list[JobAt]:
    """As the store has it at this moment."""
    return [_seen(job, now) for job in jobs]


def _seen(job: JobAt, now: float) -> JobAt:
    assert job.environment is not None
    begin, ready = job.environment
    done = [(key, span) for key, span in job.done if span[1] <= now]
    left = [key for key, span in job.done if span[0] > now]
    running = [(key, (span[0], now)) for key, span in job.done if span[0] <= now < span[1]]
    environment = (begin, min(ready, now)) if begin <= now else None
    return replace(
        job,
        is_over=not left and not running,
        is_ready=ready <= now,
        environment=environment,
        to_do=left,
        running=running,
        done=done,
    )


def times(seed: int, issues: int, builds: int, making: Sequence[float], *, spread: float) -> World:
    """Issues with times of their own, on all builds alike but for some noise; nothing is known before."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, no secret
    usual = {(f"toy-{issue}", arm, ""): draw.lognormvariate(1.5, spread) for issue in range(issues) for arm in "abc"}
    order = sorted(usual, key=lambda key: key[1])
    draw.shuffle(order)
    return World(
        [
            (f"b{build}", making[build % len(making)], [(key, usual[key] * draw.uniform(0.7, 1.4)) for key in order])
            for build in range(builds)
        ]
    )


WORLDS = {
    "varied arms, environments that are ready": times(1, 12, 5, (0.3,), spread=0.5),
    "varied arms, environments as dear as their arms": times(2, 8, 6, (90.0,), spread=0.6),
    "one lane, few builds": replace(times(3, 20, 3, (30.0, 20.0, 25.0), spread=0.7), lanes=1),
    "an issue that nobody has timed hangs": World(
        [
            (build, 1.0, [(("slow", "a", ""), 30.0), *((("quick", f"{n}", ""), 1.0) for n in range(30))])
            for build in ("one", "two")
        ]
    ),
    "a build with further packages": World(
        [
            (build, making, [((f"{issue}{making}", "a", ""), 4.0 + issue) for issue in range(6)])
            for build in ("one", "two", "three")
            for making in (200.0, 8.0, 6.0)
        ]
    ),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_after_a_tenth_of_the_arms_it_is_right_within_a_factor_of_two(world: World) -> None:
    jobs = played(world)
    ends = sorted(span[1] for job in jobs for _, span in job.done)
    for now in ends[len(ends) // 10 : -len(ends) // 10]:
        said = seconds_left(seen(jobs, now), world.before or {}, world.environment_s)
        assert said is not None
        assert 0.5 <= said / (ends[-1] - now) <= 2, f"at {now:.0f} s of {ends[-1]:.0f}: {said:.0f} s"


def test_what_was_timed_before_counts_at_this_runs_pace() -> None:
    arms: list[tuple[Key, float]] = [((f"quick-{n}", "a", ""), 2.0) for n in range(20)]
    arms += [((f"slow-{n}", "a", ""), 100.0) for n in range(20)]
    jobs = played(World([("one", 0.1, arms)]))
    halved = {key: seconds / 2 for key, seconds in arms}
    said = seconds_left(seen(jobs, 20.0), halved, None)
    assert said is not None
    assert 0.5 <= said / (max(span[1] for _, span in jobs[0].done) - 20.0) <= 2


def test_nothing_is_said_before_an_arm_has_run() -> None:
    job = JobAt(
        "one", is_over=False, is_ready=False, environment=(0.0, 9.0), to_do=[("toy-1", "a", "")], running=(), done=()
    )
    assert seconds_left([job], {("toy-1", "a", ""): 3.0}, 20.0) is None


@pytest.mark.parametrize(
    ("spent", "left"), [(0.0, 80.0 / 2 + 40.0), (9.0, 80.0 / 2 + 31.0), (100.0, 80.0 / 2 + 100.0 + 200.0)]
)
def test_on_known_slots_the_plan_is_the_first_time_left_and_a_slow_download_revises_it(
    spent: float, left: float
) -> None:
    """Two builds of four arms; their environments used to take 20 s each."""
    keys = [(f"toy-{n}", "a", "") for n in range(4)]
    one = JobAt("one", is_over=False, is_ready=False, environment=(0.0, spent), to_do=keys, running=(), done=())
    jobs = [one, replace(one, build="two", environment=None)]
    assert seconds_left(jobs, dict.fromkeys(keys, 10.0), 20.0, slots=2) == pytest.approx(left)


def test_arms_of_an_environment_that_cannot_be_made_say_nothing_of_others() -> None:
    key = ("toy-1", "a", "")
    failed = JobAt(
        "one", is_over=True, is_ready=False, environment=(0.0, 5.0), to_do=(), running=(), done=[(key, (5.0, 5.0))]
    )
    after = JobAt("two", is_over=False, is_ready=True, environment=(5.0, 9.0), to_do=[key], running=(), done=())
    assert seconds_left([failed, after], {}, None) is None
    running = replace(after, done=[(("toy-2", "a", ""), (9.0, 19.0))])
    assert seconds_left([failed, running], {}, None) == pytest.approx(10.0, rel=0.5)
