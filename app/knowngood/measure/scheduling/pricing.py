"""The price of jobs before they are run: at once from what is known here, then with what the index says.

Every command that prints a price prints this one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from rich.console import Console

from knowngood.cli.console import in_words, print_price, print_sizes, to_do_in_words
from knowngood.cli.context import root
from knowngood.cli.output import err, out, print_json
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.measuring.planning import ENVIRONMENT_S, PlannedJob, Price, price_of
from knowngood.domain.vocabulary import many
from knowngood.measure.jobs import Work
from knowngood.store.engine import Engine, reading
from knowngood.store.jobs.durations import load_environment_s, load_locks
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import recorded_with_shipped
from knowngood.store.queries import load_builds, load_durations, load_issues
from knowngood_workers.provision.download_estimate import Estimate
from knowngood_workers.provision.provisioner import Provisioner
from knowngood_workers.provision.pylock import Lock, read_lock

SIZES_S = 20.0
"""How long the package index is asked. What it says is kept: the next time goes on from there."""


def appraise(
    engine: Engine,
    work: Work,
    planned: Sequence[PlannedJob],
    on_asked: Callable[[int, int], None] = lambda _at, _of: None,
    on_price: Callable[[Price, Estimate], None] = lambda _price, _here: None,
    *,
    asks: bool,
) -> tuple[Price, Estimate]:
    """Appraise by what is known here, which `on_price` gets at once; then, if that leaves sizes open and it `asks`,
    with what the index says. No wheel is fetched.
    """
    settings = work.settings
    with reading(engine) as s:
        known = recorded_with_shipped(Recorded(load_durations(s), load_environment_s(s)))
        stored = _readable(load_locks(s, load_issues(s), load_builds(s)))
    provisioner = Provisioner(
        root(settings), limit_bytes=settings.envs_limit, environ=work.environ, adopted=work.adopted
    )
    pairs = [(job.build, job.request) for job in planned]
    estimate = provisioner.estimate(pairs, stored)
    environment_s = known.environment_s or ENVIRONMENT_S
    price = price_of(planned, known.durations, slots=settings.slots, environment_s=environment_s, ready=estimate.ready)
    on_price(price, estimate)
    if asks and estimate.is_open:
        troubles = provisioner.look_up(pairs, stored, seconds=SIZES_S, on_asked=on_asked)
        estimate = provisioner.estimate(pairs, stored, troubles)
    return price, estimate


def _readable(texts: Mapping[EnvironmentRequest, str]) -> dict[EnvironmentRequest, Lock]:
    locks = {}
    for request, text in texts.items():
        with suppress(ValueError, KeyError):  # the list of what a machine had already
            locks[request] = read_lock(text)
    return locks


def tell_price(
    engine: Engine,
    work: Work,
    planned: Sequence[PlannedJob],
    console: Console = out,
    *,
    asks: bool = True,
    as_json: bool = False,
) -> None:
    """Print what the jobs would cost: the time at once, and the sizes when the index was asked for those not known."""
    if as_json:
        print_json(price_as_json(engine, work, planned, asks=asks))
        return
    if not planned:
        console.print("nothing to run: every cell asked for has its answer (--force runs it again)")
        return
    console.print(to_do_in_words(planned), highlight=False)
    with _asking() as on_asked:
        price, estimate = appraise(engine, work, planned, on_asked, partial(print_price, console), asks=asks)
    if estimate.ready < price.environments:
        print_sizes(console, estimate)


def price_as_json(engine: Engine, work: Work, planned: Sequence[PlannedJob], *, asks: bool) -> dict[str, Any]:
    price, estimate = appraise(engine, work, planned, asks=asks)
    return {**vars(price), **sizes_as_json(estimate)}


@contextmanager
def _asking() -> Iterator[Callable[[int, int], None]]:
    """A function that tells how far the index was asked: a line that goes away, or in a log one that stays."""
    status = err.status("")

    def tell(at: int, of: int) -> None:
        status.update(f"asking the package index for what is not known here: {at} of {many(of, 'environment')}")
        if at == of:
            status.stop()
        elif not at and err.is_terminal:
            status.start()
        elif not at:
            err.print(f"asking the package index about {many(of, 'environment')}, for at most {in_words(SIZES_S)}")

    try:
        yield tell
    finally:
        status.stop()


def sizes_as_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "ready": estimate.ready,
        "download_bytes": estimate.download_bytes,
        "guessed_bytes": estimate.guessed_bytes,
        "disk_bytes": estimate.disk_bytes,
        "free_bytes": estimate.space.free_bytes,
        "fit": estimate.fit.value,
        "unknown": list(estimate.unknown),
        "unresolved": estimate.unresolved,
        "cannot_be_made": {name: trouble.sentence for name, trouble in estimate.troubles.items()},
    }
