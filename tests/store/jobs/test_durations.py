"""Durations that plans are priced by, on both databases."""

from dataclasses import replace

from knowngood.domain.issue import EnvironmentRequest, Packages, digest, environment_request
from knowngood.domain.measuring.job import EnvironmentReady
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.jobs.durations import load_environment_s, load_locks
from knowngood.store.jobs.event_recorder import record_event
from tests.make import NOON, make_build, make_issue
from tests.store.given import claim, ended, finished, given_catalogue, given_run, started

BARE, EINOPS = make_issue("toy-1"), make_issue("toy-2", packages=Packages(("einops==0.8.1",)))
BUILD = make_build()


def locks(engine: Engine) -> dict[EnvironmentRequest, str]:
    with reading(engine) as s:
        return load_locks(s, [BARE, EINOPS], [BUILD])


def ran_with(engine: Engine, *, lock: str) -> None:
    spec = claim(engine)
    with unit_of_work(engine) as s:
        record_event(s, started(spec), NOON)
        record_event(s, EnvironmentReady(spec.job, 1, lock, digest(lock), {}, {}, 3.5), NOON)
        for arm in spec.arms:
            record_event(s, replace(finished(spec, arm), lock_digest=digest(lock)), NOON)
        record_event(s, ended(spec), NOON)


def test_an_environment_is_known_by_the_newest_lock_that_counted_attempts_ran_with(engine: Engine) -> None:
    given_run(engine, [BARE, EINOPS], [BUILD])
    assert (locks(engine), load_seconds(engine)) == ({}, None)
    ran_with(engine, lock="a")
    ran_with(engine, lock="b")
    bare, einops = (environment_request(issue, BUILD) for issue in (BARE, EINOPS))
    assert locks(engine) == {bare: "a", einops: "b"}
    assert load_seconds(engine) == 3.5
    given_catalogue(engine, [make_issue("toy-1", packages=Packages(("einops==0.8.2",))), EINOPS], [BUILD])
    assert locks(engine) == {einops: "b"}, "what ran in another environment is superseded"


def load_seconds(engine: Engine) -> float | None:
    with reading(engine) as s:
        return load_environment_s(s)
